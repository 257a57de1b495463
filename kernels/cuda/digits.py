"""Exact sums of floats on the GPU, digit by digit: the simplest way that is right for every input.

`sources/digits.cu` explains the bins. What a launch leaves is added up in Python integers, so the state is that of
the portable definition, `kernels.exact.ExactState.add`, bit for bit.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.cuda.compile import Unit
from kernels.cuda.launch import Gpu
from kernels.cuda.reductions import element
from kernels.dtypes import DTYPES, DType, Kind
from kernels.exact.state import ExactState, Flags
from kernels.ops import Terms

SOURCE = Path(__file__).parent / "sources" / "digits.cu"
MOST_ELEMENTS = 1 << 28
"""A launch may add so many without a bin overflowing."""

MOST_THREADS = 512
ROWS = 64
"""Launches whose sums wait on the GPU before they are fetched."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The digits that a sum needs: how many of 32 bits, the lowest with the weight 2**`exponent`."""

    digits: int
    exponent: int


# The last exponent at which a significand starts, the digits above it that it reaches, and one for what comes before:
# float32 253, 7 + 2 and 506, 15 + 3; float64 2045, 63 + 3 and 4090, 127 + 5.
_GRIDS = {
    (4, Terms.VALUES): Grid(9, -149),
    (4, Terms.PRODUCTS): Grid(18, -298),
    (8, Terms.VALUES): Grid(66, -1074),
    (8, Terms.PRODUCTS): Grid(132, -2148),
}


def grid_of(dtype: DType, terms: Terms) -> Grid:
    """The digits for sums of a float `dtype`; the types below float32 are widened to it."""
    return _GRIDS[8 if dtype.itemsize == 8 else 4, terms]


def digits_unit(dtype: DType) -> Unit:
    """The kernels that add values, magnitudes and squares of a float `dtype`."""
    values, products = grid_of(dtype, Terms.VALUES), grid_of(dtype, Terms.PRODUCTS)
    kinds = (("VALUES", values), ("MAGNITUDES", values), ("SQUARES", products))
    return Unit(SOURCE, tuple(_kernel(dtype, kind, grid) for kind, grid in kinds))


def exact_units() -> tuple[Unit, ...]:
    """All units of the exact accumulator, for the compile matrix."""
    return tuple(digits_unit(dtype) for dtype in DTYPES.values() if dtype.kind is Kind.FLOAT)


class DigitAccumulator:
    """The exact sum of what is added to it: values of a float `dtype` (their `magnitudes` if so), or squares."""

    def __init__(self, gpu: Gpu, dtype: DType, terms: Terms, *, magnitudes: bool = False) -> None:
        import cupy

        self._gpu, self._terms, self._grid = gpu, terms, grid_of(dtype, terms)
        kind = "SQUARES" if terms is Terms.PRODUCTS else "MAGNITUDES" if magnitudes else "VALUES"
        self._kernel = gpu.kernel(digits_unit(dtype), _kernel(dtype, kind, self._grid))
        room = gpu.shared_per_block // (8 * self._grid.digits)
        self._threads = min(MOST_THREADS, room // 32 * 32)
        self._shared = 8 * self._grid.digits * self._threads
        self._blocks = self._kernel.blocks_per_multiprocessor(self._threads, self._shared) * gpu.multiprocessors
        self._rows = cupy.zeros((ROWS, self._grid.digits + 1), dtype=np.uint64)
        self._used = 0
        self._state = ExactState.empty(terms)
        self._count = 0

    def add(self, array: Any) -> None:
        """Add a CuPy array of one dimension; the work goes to the current stream."""
        for start in range(0, array.size, MOST_ELEMENTS):
            part = array[start : start + MOST_ELEMENTS]
            if self._used == ROWS:
                self._fetch()
            blocks = min(self._blocks, -(-part.size // self._threads))
            row = self._rows[self._used]
            self._kernel(blocks, self._threads, (part, np.uint64(part.size), row), shared=self._shared)
            self._used += 1
            self._count += part.size

    def state(self) -> ExactState:
        """The sum so far; waits for the work."""
        self._fetch()
        return self._state

    def _fetch(self) -> None:
        rows = self._rows[: self._used].get()
        self._rows.fill(0)
        limbs = [sum(map(int, column)) for column in rows[:, :-1].view(np.int64).T]
        flags = Flags(int(np.bitwise_or.reduce(rows[:, -1], initial=0)))
        added = ExactState.from_limbs(self._terms, limbs, self._grid.exponent, self._count, flags)
        self._state = self._state.merge(added)
        self._used = self._count = 0


def _kernel(dtype: DType, kind: str, grid: Grid) -> str:
    return f"digits<{element(dtype)}, {kind}, {grid.digits}>"
