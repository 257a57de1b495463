"""The most frequent element of many values on a GPU, and how many different ones each has: keys are sorted within each
value, and runs of equal ones are counted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.cuda.picks.kernels import KEYS_OF_VALUES, TAKE_RUNS, kernel
from warpfold.kernels.cuda.ranks.kernels import elements_of
from warpfold.kernels.cuda.ranks.rows import THREADS, ValueRows
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import Index

BYTES = 64
"""Bytes that sorting takes on the GPU for each element."""

_COUNT, _LONGEST, _FIRST = range(3)
"""What is made of runs, as in include/picks.cuh."""


class RunsOnGpu:
    """The values of `op` of rows of which `nans` says how many elements are NaN; with `omit_nan` these are left out. To
    be used while `gpu.active()`."""

    def __init__(self, gpu: Gpu, rows: ValueRows, dtype: DType, op: Op, nans: Index, *, omit_nan: bool) -> None:
        self._gpu, self._rows, self._dtype, self._op, self._nans = gpu, rows, dtype, op, nans
        self._omit_nan = omit_nan
        self._word = np.dtype(f"uint{8 * dtype.itemsize}")
        self._made: tuple[Any, Any] | None = None

    def start(self) -> None:
        """Have the elements sorted, and their runs counted."""
        import cupy

        values = self._rows.lengths.size
        keys, ids = self._sorted()
        ends = cupy.asarray(self._rows.starts - self._rows.starts[:1] + self._rows.lengths)
        frequent = self._op.fold == "mode"
        leaves = self._dtype.is_float and (frequent or self._omit_nan)
        none = np.uint64(np.iinfo(self._word).max if leaves else 0)

        def take(what: int, longest: Any, taken: Any) -> Any:
            if keys.size:
                grid, threads = GRID_STRIDE.grid(int(keys.size), self._word.itemsize, self._gpu.multiprocessors)
                given = (keys, np.uint64(keys.size), np.uint64(0) if ids is None else ids, ends, none)
                kernel(self._gpu, TAKE_RUNS, self._dtype)(grid, threads, (*given, np.int32(what), longest, taken))
            return taken

        if not frequent:
            self._made = keys, take(_COUNT, np.uint64(0), cupy.zeros(values, np.uint64))
            return
        longest = take(_LONGEST, np.uint64(0), cupy.zeros(values, np.uint64))
        self._made = keys, take(_FIRST, longest, cupy.full(values, np.iinfo(np.uint64).max, np.uint64))

    def _sorted(self) -> tuple[Any, Any]:
        """The keys, sorted within each value, and the number of the value at each place; None of a single one."""
        import cupy

        rows = self._rows
        begin, size = int(rows.starts[0]) if rows.starts.size else 0, int(rows.lengths.sum())
        array = rows.array[begin : begin + size]
        keys = cupy.empty(size, self._word)
        if size:
            arguments = (array, np.uint64(size), keys)
            kernel(self._gpu, KEYS_OF_VALUES, self._dtype)(-(-size // THREADS), THREADS, arguments)
        if rows.lengths.size == 1 or not size:
            keys.sort()
            return keys, None
        ids = cupy.asarray(np.repeat(np.arange(rows.lengths.size, dtype=np.uint64), rows.lengths))
        return keys[cupy.lexsort(cupy.stack([keys.astype(np.uint64), ids]))], ids

    def values(self) -> NDArray[Any]:
        """The values; arbitrary where no element entered. Waits for the work."""
        import cupy

        assert self._made is not None, "start comes first"
        keys, taken = self._made
        if self._op.fold == "distinct":
            counted: NDArray[np.int64] = taken.get().astype(np.int64)
            return counted
        first = taken.get()
        there = first < np.uint64(keys.size)
        modes = np.zeros(first.size, self._word)
        if there.any():
            modes[there] = keys[cupy.asarray(first[there].astype(np.int64))].get()
        elements = elements_of(modes, self._dtype)
        if not self._dtype.is_float:
            return elements
        frequent = elements.astype(np.float64)
        if not self._omit_nan:
            frequent[self._nans > 0] = np.nan
        return frequent
