"""Reductions on NVIDIA GPUs, by kernels of our own (`strategies/*.cu`, `sources/*.cu`, `include/*.cuh`) and by peers.

From sources to a value, a step a module:

    compile     CUDA C++ → machine code, without a GPU; `compile_all` does it for the `matrix` of all kernels
    launch      machine code → a kernel on a GPU; `tuning` and `exact.shapes` say with how many threads
    feed        the elements of a source → pieces on the GPU; `generator` makes generated ones there
    methods     one reduction under way, by a strategy of ours; also `exact_method`, `cupy_method`, `baselines.method`
    outcomes    the words that kernels leave → the value of the op
    backend     all of it, as the `Backend` that the rest of the project knows

`prepared` records launches and starts them again with little of the host's time: for `bench`, `profile` and `scaling`.
"""
