"""Solves a puzzle by clusters where the device has them, else by the model, and the answer says which."""

import time

from warpfold.kernels.backend import Backend
from warpfold.kernels.puzzles.model import model
from warpfold.kernels.puzzles.puzzle import ClusterShape, Puzzle, Solution


def solve(backend: Backend, puzzle: Puzzle, shape: ClusterShape) -> Solution:
    """Solve `puzzle` on the device of `backend`. Raises CudaError, and Unavailable for a cluster of 16 blocks that the
    chip refuses."""
    if backend.device.backend == "cuda":
        from warpfold.kernels.cuda.backend import CudaBackend
        from warpfold.kernels.cuda.puzzles import CLUSTERS_SINCE, run

        assert isinstance(backend, CudaBackend)
        if int(backend.gpu.arch.removeprefix("sm_")) >= CLUSTERS_SINCE:
            return run(backend.gpu, puzzle, shape)
        why = f"{backend.device.name} has no clusters (they came with compute capability 9.0)"
    else:
        why = "a CPU has no clusters"
    started = time.perf_counter()
    values = model(puzzle, shape)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    answer = tuple(float(value) for value in values)
    return Solution(puzzle, shape, answer, True, backend.device.name, elapsed_ms, why)
