"""The puzzles' additions in their order, on the CPU: NumPy float32 rounds each as the GPU does, to nearest."""

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.puzzles.puzzle import WARP, ClusterShape, Puzzle, elements

Floats = NDArray[np.float32]


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
