"""The keys in given ranks of a whole array: digits of keys are counted, from the highest one down, until one key is
left for each rank. Each digit takes one read of the elements, which need not fit into the GPU's memory.

The method is radix selection (Alabi, Blanchard, Gordon, Steinbach: Fast k-selection algorithms for graphics processing
units, 2012).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.ranks.kernels import COUNT_DIGITS, kernel
from warpfold.kernels.dtypes import DType

MOST_RANKS = 32
"""As many ranks are looked for at a time; `sources/ranks.cu` has counters for so many."""

_DIGITS = 256
_NOWHERE = 255
THREADS = 256
_SHAPE = LaunchShape(threads=THREADS, blocks_per_multiprocessor=6)

Pieces = Callable[[], Iterator[Any]]
"""Brings all elements once, as CuPy arrays of one dimension."""


@dataclass
class Search:
    """A rank that is looked for: how many elements of its slot come before it, and the digits of its key so far."""

    rank: int
    slot: int = 0
    key: int = 0


class DigitCounts:
    """Looks for keys in `pieces` of elements of `dtype`, which sort as the keys in `include/sorting_keys.cuh` do: −0
    before +0, NaN last. `stopwatch` takes the time of the
    launches. To be used while `gpu.active()`."""

    def __init__(
        self, gpu: Gpu, dtype: DType, pieces: Pieces, stopwatch: AbstractContextManager[object] | None = None
    ) -> None:
        self._gpu, self._dtype, self._pieces = gpu, dtype, pieces
        self._stopwatch = stopwatch or nullcontext()
        self._kernel = kernel(gpu, COUNT_DIGITS, dtype)
        self._following = np.full((dtype.itemsize, MOST_RANKS, _DIGITS), _NOWHERE, np.uint8)
        self._first = self._counted(0, [Search(0)])

    @property
    def count(self) -> int:
        """How many elements there are, NaNs among them."""
        return int(self._first.sum())

    def keys(self, ranks: Sequence[int]) -> NDArray[np.uint64]:
        """The keys in these ranks, from 0, shape (ranks,). All elements are read once for each byte of an element but
        the first, and again for `MOST_RANKS` more ranks."""
        distinct = sorted(set(ranks))
        of_rank: dict[int, int] = {}
        for first in range(0, len(distinct), MOST_RANKS):
            some = distinct[first : first + MOST_RANKS]
            searches = [Search(rank) for rank in some]
            self._following[:] = _NOWHERE
            counts = self._first
            for level in range(self._dtype.itemsize):
                descend(searches, counts, self._following[level])
                if level + 1 < self._dtype.itemsize:
                    counts = self._counted(level + 1, searches)
            of_rank.update(zip(some, (search.key for search in searches), strict=True))
        return np.array([of_rank[rank] for rank in ranks], np.uint64)

    def _counted(self, level: int, searches: Sequence[Search]) -> NDArray[np.int64]:
        """How many elements lead to the slot of each search, by their digit there."""
        import cupy

        spread = (MOST_RANKS // (1 + max(search.slot for search in searches))).bit_length() - 1
        shift, prefixes = 8 * (self._dtype.itemsize - level), [search.key for search in searches]
        lowest, highest = np.uint64(min(prefixes) << shift), np.uint64(((max(prefixes) + 1) << shift) - 1)
        counts = cupy.zeros((MOST_RANKS >> spread, _DIGITS), np.uint64)
        tables = cupy.asarray(self._following)
        for piece in self._pieces():
            if piece.size:
                grid, threads = _SHAPE.grid(piece.size, piece.itemsize, self._gpu.multiprocessors)
                wanted = (np.int32(level), tables, lowest, highest, np.int32(spread))
                with self._stopwatch:
                    self._kernel(grid, threads, (piece, np.uint64(piece.size), *wanted, counts))
        counted: NDArray[np.int64] = counts.get().astype(np.int64)
        return counted


def descend(searches: Sequence[Search], counts: NDArray[np.int64], following: NDArray[np.uint8]) -> None:
    """Give each search its next digit, and the slot to which this digit leads from its slot, noted in `following`."""
    up_to = counts.cumsum(axis=1)
    slots = 0
    for search in searches:
        digit = int(np.searchsorted(up_to[search.slot], search.rank, side="right"))
        if digit:
            search.rank -= int(up_to[search.slot, digit - 1])
        if following[search.slot, digit] == _NOWHERE:
            following[search.slot, digit] = slots
            slots += 1
        search.key = search.key << 8 | digit
        search.slot = int(following[search.slot, digit])
