"""The run of a program that compute-sanitizer watches."""

from collections.abc import Callable

from warpfold.kernels.cuda.gpu.launch import Gpu


def watch(what: str, *programs: Callable[[Gpu], int]) -> None:
    """Run `programs` on the first GPU, and print how many reductions they made, and `what` these are."""
    gpu = Gpu(0)
    with gpu.active():
        print(f"{sum(program(gpu) for program in programs)} {what}")
    gpu.close()
