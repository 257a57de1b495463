"""Solves a puzzle by clusters where the device has them, else by the model, and checks what comes out.

The model makes the puzzle's additions in their order on the CPU: NumPy float32 rounds each as the GPU does, to nearest.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.driver import Backend
from warpfold.kernels.puzzles.puzzle import WARP, ClusterShape, Puzzle, Solution, elements

Floats = NDArray[np.float32]

_ROUNDOFF = 2.0**-24
"""The unit roundoff of float32: half the distance from 1 to the next number."""


@dataclass(frozen=True, slots=True)
class Check:
    """A property that the answer must have."""

    name: str
    passed: bool


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


def model(puzzle: Puzzle, shape: ClusterShape) -> Floats:
    """The answer, shape (cluster_size,), or (1,) for the reduction."""
    padded = np.zeros(shape.padded, dtype=np.float32)
    padded[: shape.size] = elements(puzzle, shape)
    blocks = padded.reshape(shape.cluster_size, shape.threads)
    if puzzle is Puzzle.REDUCTION:
        return in_order(tree(blocks)[np.newaxis, :])
    scaled = blocks * np.arange(1, shape.cluster_size + 1, dtype=np.float32)[:, np.newaxis]
    if puzzle is Puzzle.COORDINATION:
        return in_order(scaled)
    return in_order(in_order(scaled.reshape(shape.cluster_size, -1, WARP)))


def in_order(values: Floats) -> Floats:
    """Sums along the last axis, first element to last, starting from 0."""
    total = np.zeros(values.shape[:-1], dtype=np.float32)
    for k in range(values.shape[-1]):
        total = total + values[..., k]
    return total


def tree(values: Floats) -> Floats:
    """Sums along the last axis, whose length is a power of two: the upper half onto the lower, until one is left."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def checks(solution: Solution) -> tuple[Check, ...]:
    """The checks of the puzzles' own texts, and more."""
    values, shape = solution.values, solution.shape
    if solution.puzzle is Puzzle.REDUCTION:
        exact = math.fsum(elements(solution.puzzle, shape).tolist())
        # Sums of whole numbers below 2²⁴ are exact in any order; beyond, a tree of 10 levels and 16 more may round.
        allowed = 0.0 if exact <= 1 << 24 else 26 * exact * _ROUNDOFF
        return (Check(f"the sum is {exact:.0f}", abs(values[0] - exact) <= allowed),)
    sums = _exact_sums(solution.puzzle, shape)
    # Every element is scaled with one rounding and enters through at most `threads` additions.
    bound = (shape.threads + 1) * _ROUNDOFF
    close = all(abs(value - exact) <= bound * exact for value, exact in zip(values, sums, strict=True))
    passed = [Check("each block's sum is the exact one but for rounding", close)]
    if all(a < b for a, b in pairwise(sums)):
        passed.append(Check("each block's sum is above that of the block before", _rises(values)))
    return tuple(passed)


def _exact_sums(puzzle: Puzzle, shape: ClusterShape) -> list[float]:
    """Each block's sum of its elements times its number, rounded once."""
    padded = np.zeros(shape.padded)
    padded[: shape.size] = elements(puzzle, shape)
    blocks = padded.reshape(shape.cluster_size, shape.threads)
    return [math.fsum(part.tolist()) * (rank + 1) for rank, part in enumerate(blocks)]


def _rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))
