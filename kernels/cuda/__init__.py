"""Reductions on NVIDIA GPUs, by kernels of our own (`strategies/*.cu`, `sources/*.cu`, `include/*.cuh`) and by peers.

The steps from a source to a value, and their modules:

    compile      makes machine code of CUDA C++, without a GPU; `compile_all` does so for the `matrix` of all kernels
    gpu          loads machine code as a kernel on a GPU, and records launches that are started again with little of the
                 host's time, for `bench`, `profile` and `scaling`
    staging      brings the elements of a source to the GPU in pieces
    strategies   reduce pieces to words, and words to the value of the op; peers are in `baselines`
    exact        holds fixed-point totals, which the exact strategy rounds once
    backend      does all of it, as the `Backend` that the rest of the project knows
"""
