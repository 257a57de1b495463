"""Sums and means of values that no window holds, or that are too long for a warp: blocks add up each as a whole array.

The kernels are `wide_sums` and `round_totals` of `../sources/grouped.cu`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import Layout
from warpfold.kernels.cuda.grouped.shapes import (
    WIDE_BLOCKS,
    WIDE_BYTES,
    WIDE_PART,
    WIDE_THREADS,
    WORDS,
    round_kernel,
    unit_of,
    wide_kernel,
)
from warpfold.kernels.dtypes import DType


@dataclass(frozen=True, slots=True)
class WideSums:
    """Such values of a layout of `array`. They go to `values`, and how many NaNs were left out of each to `omitted`
    unless that is None; both are CuPy arrays with a place for each value of the layout."""

    gpu: Gpu
    array: Any
    layout: Layout
    dtype: DType
    values: Any
    omitted: Any
    mean: bool

    def add(self, listed: Any) -> None:
        """Start the launches for the values that are `listed`, a CuPy array of at least one int64."""
        import cupy

        size, members = int(listed.size), self.layout.members
        totals = cupy.zeros(size * WORDS, dtype=np.uint64)
        room = self.gpu.multiprocessors * WIDE_BLOCKS[self.dtype.name]
        parts = max(1, min(-(-self.layout.longest // WIDE_PART), room // size))
        self._run(
            wide_kernel(self.dtype), size * parts, WIDE_THREADS,
            (self.array, *members, listed, np.uint32(parts), totals), WIDE_THREADS * WIDE_BYTES[self.dtype.name],
        )  # fmt: skip
        omitted = np.uint64(0) if self.omitted is None else self.omitted
        flags = (np.uint32(self.mean), np.uint32(self.omitted is not None))
        self._run(
            round_kernel(self.dtype), -(-size // 64), 64,
            (totals, np.uint64(size), *members, listed, self.values, omitted, *flags),
        )  # fmt: skip

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self.gpu.kernel(unit_of(name), name)(grid, block, args, shared)
