"""The puzzles on chips that have thread-block clusters."""

from pathlib import Path

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.errors import CudaError, Unavailable
from warpfold.kernels.puzzles.puzzle import MAX_CLUSTER, PORTABLE_CLUSTER, ClusterShape, Puzzle, Solution, elements

CLUSTERS_SINCE = 90
"""The first architecture that has clusters: Hopper, sm_90."""

SIZES = (*range(1, PORTABLE_CLUSTER + 1), MAX_CLUSTER)
_NON_PORTABLE = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


def puzzle_unit(puzzle: Puzzle) -> Unit:
    """The kernel of a puzzle for every size of a cluster."""
    return Unit(Path(__file__).parent / f"{puzzle}.cu", tuple(_name(puzzle, blocks) for blocks in SIZES))


def run(gpu: Gpu, puzzle: Puzzle, shape: ClusterShape) -> Solution:
    """Solve `puzzle` by one cluster. Raises Unavailable where the chip refuses a cluster of 16, and CudaError."""
    import cupy

    before_ms = gpu.preparation.total_ms
    with gpu.active(), cuda_errors(f"puzzle {puzzle}"):
        name = _name(puzzle, shape.cluster_size)
        kernel = gpu.kernel(puzzle_unit(puzzle), name)
        data = cupy.asarray(elements(puzzle, shape))
        # A value that no kernel writes must be noticed.
        answer = cupy.full(1 if puzzle is Puzzle.REDUCTION else shape.cluster_size, np.nan, dtype=np.float32)
        partials = (cupy.full(shape.cluster_size, np.nan, dtype=np.float32),) if puzzle is Puzzle.REDUCTION else ()
        args = (data, np.uint32(shape.size), *partials, answer)
        if shape.cluster_size > PORTABLE_CLUSTER:
            _allow_large_clusters(kernel)
        if name not in gpu.preparation.ready:
            with gpu.preparation:
                _launch(kernel, shape, args)  # the first launch of a kernel loads it
                gpu.stream.synchronize()
            gpu.preparation.ready.add(name)
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            _launch(kernel, shape, args)
        kernel_ms = stopwatch.total_ms()
        values = tuple(float(value) for value in answer.get())
    prepare_ms = gpu.preparation.total_ms - before_ms
    return Solution(puzzle, shape, values, False, gpu.name, kernel_ms, prepare_ms=prepare_ms)


def _name(puzzle: Puzzle, blocks: int) -> str:
    return f"{puzzle}<{blocks}>"


def _launch(kernel: Kernel, shape: ClusterShape, args: tuple[object, ...]) -> None:
    try:
        kernel(shape.cluster_size, shape.threads, args, 4 * shape.threads)
    except CudaError as error:
        if shape.cluster_size > PORTABLE_CLUSTER:
            raise Unavailable(f"this chip does not run clusters of {shape.cluster_size} blocks: {error}") from error
        raise


def _allow_large_clusters(kernel: Kernel) -> None:
    from cupy.cuda import driver

    driver.funcSetAttribute(kernel.function.kernel.ptr, _NON_PORTABLE, 1)
