"""The puzzles: their shapes, their elements and their solutions."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import GeneratedSource

WARP = 32
PORTABLE_CLUSTER = 8
MAX_CLUSTER = 16
"""Blocks a cluster: 8 on every chip that has clusters, 16 where the chip and the kernel allow it."""


class Puzzle(StrEnum):
    """The three exercises."""

    COORDINATION = "coordination"  # each block sums its part, scaled by its number; all meet between arrive and wait
    REDUCTION = "reduction"  # a tree in each block, then one elected thread adds the blocks' sums
    ADVANCED = "advanced"  # an elected lane sums each warp's 32, thread 0 the warps; blocks meet as in the first


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """`size` elements for one cluster of `cluster_size` blocks of `threads` each, an element a thread.

    Raises InvalidInput naming the field: threads are a power of two from 32 to 1024 (the tree halves them), a cluster
    has 1 to 8 blocks or 16, and there must be a thread for each element.
    """

    size: int = 1024
    threads: int = 256
    cluster_size: int = 4

    def __post_init__(self) -> None:
        if self.threads & (self.threads - 1) or not WARP <= self.threads <= 1024:
            raise InvalidInput(f"threads a block must be a power of two from 32 to 1024, not {self.threads}", "threads")
        if not (1 <= self.cluster_size <= PORTABLE_CLUSTER or self.cluster_size == MAX_CLUSTER):
            raise InvalidInput(f"a cluster has 1 to 8 blocks, or 16, not {self.cluster_size}", "cluster_size")
        most = self.threads * self.cluster_size
        if not 1 <= self.size <= most:
            raise InvalidInput(
                f"{self.size} elements do not fit {self.cluster_size} blocks of {self.threads} threads: "
                f"there must be 1 to {most}",
                "size",
            )

    @property
    def padded(self) -> int:
        """One element a thread; those from `size` on are 0."""
        return self.threads * self.cluster_size


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer: a float32 for each block, or the single sum. With `model` the device had no clusters, and the CPU did
    the same additions in the same order. `kernel_ms` is the time of the kernel, or of the model; `prepare_ms` that of
    compiling and loading the kernel, 0 where it was loaded."""

    puzzle: Puzzle
    shape: ClusterShape
    values: tuple[float, ...]
    model: bool
    device: str
    kernel_ms: float
    why_model: str | None = None
    prepare_ms: float = 0.0


def elements(puzzle: Puzzle, shape: ClusterShape) -> NDArray[np.float32]:
    """The elements of the puzzle, shape (size,): (i % 10) · 0.1, i, or (i % 50) · 0.02, multiplied in float32."""
    match puzzle:
        case Puzzle.COORDINATION:
            source = _modulo(shape.size, 10, 0.1)
        case Puzzle.REDUCTION:
            source = GeneratedSource("arange", shape.size, 0, DTYPES["float32"])
        case Puzzle.ADVANCED:
            source = _modulo(shape.size, 50, 0.02)
    return source.read(0, shape.size)


def _modulo(size: int, period: int, scale: float) -> GeneratedSource:
    return GeneratedSource("modulo", size, 0, DTYPES["float32"], {"m": period, "scale": scale})
