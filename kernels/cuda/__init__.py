"""Reductions on NVIDIA GPUs, by kernels of our own (`strategies/*.cu`, `sources/*.cu`, `include/*.cuh`) and by peers.

From sources to a value, a step a module:

    compile      CUDA C++ → machine code, without a GPU; `compile_all` does it for the `matrix` of all kernels
    gpu          machine code → a kernel on a GPU; launches that are recorded and started again with little of the
                 host's time, for `bench`, `profile` and `scaling`
    staging      the elements of a source → pieces on the GPU
    strategies   pieces → words → the value of the op: ours, CuPy's; other peers in `baselines`
    exact        fixed-point totals, which the exact strategy rounds once
    backend      all of it, as the `Backend` that the rest of the project knows
"""
