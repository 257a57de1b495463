"""What is counted of many values on a GPU: the elements in each bin, and runs of equal elements, which tell how many
different ones there are and the most frequent one. For runs, keys are sorted within each value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import State
from warpfold.kernels.aggregates.histogram import Histogram
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.cuda.picks.kernels import COUNT_BINS, KEYS_OF_VALUES, TAKE_RUNS, kernel, launches
from warpfold.kernels.cuda.ranks.kernels import elements_of, keys_of
from warpfold.kernels.cuda.ranks.rows import THREADS, ValueRows
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import Index

_COUNTERS, _CELLS = 1 << 12, 1 << 11
"""Counters of a block, and cells of keys, for which `sources/picks.cu` has room."""

_BLOCKS_EACH = 6
"""Blocks of a multiprocessor."""

SORTED = ("mode", "distinct")
"""Folds of which all elements are sorted."""

BYTES = 64
"""Bytes that sorting takes on the GPU for each element."""

_MOST = 1 << 32
"""Elements of which a word holds the length of a run and its place."""

_WORD = 64
"""Bits of what is sorted at once: a key of fewer has the number of its value above it."""


class BinsOnGpu:
    """How many elements of each row lie in each bin: the state that `aggregate` has; to be used while
    `gpu.active()`."""

    def __init__(self, gpu: Gpu, rows: ValueRows, dtype: DType, aggregate: Histogram) -> None:
        self._gpu, self._rows, self._dtype = gpu, rows, dtype
        self._edges, self._last = aggregate.ends()
        self._bins = aggregate.bins
        self._counts: Any = None

    def start(self) -> None:
        """Have the elements counted."""
        import cupy

        self._counts = cupy.zeros((self._rows.lengths.size, self._bins), np.uint64)
        if self._last is None or not self._edges.size:
            return  # no element of the dtype lies among the edges
        edges = keys_of(self._edges, self._dtype).astype(np.uint64)
        last = int(keys_of(self._last, self._dtype)[0])
        span = max(0, last - int(edges[0]))
        shift = max(0, span.bit_length() - _CELLS.bit_length() + 1)
        cells = (span >> shift) + 1
        firsts = np.arange(cells + 1, dtype=np.uint64) << np.uint64(shift)
        starts = np.searchsorted(edges - edges[0], firsts, "right") - 1
        starts[-1] = edges.size - 1  # the key behind the last cell may be beyond 64 bits
        spread = max(0, min(5, (_COUNTERS // self._bins).bit_length() - 1))
        of_bins = (
            cupy.asarray(edges), cupy.asarray(starts.astype(np.uint16)), np.int32(self._bins), np.int32(edges.size),
            np.int32(cells), np.uint32(shift), np.uint64(last), np.uint32(spread),
        )  # fmt: skip
        count = kernel(self._gpu, COUNT_BINS, self._dtype)
        for launch in launches(self._rows):
            grid = min(launch.rows, _BLOCKS_EACH * self._gpu.multiprocessors)
            counts = self._counts[launch.value :]
            count(grid, THREADS, (launch.array, *launch.bounds, *of_bins, launch.step, counts))

    def state(self) -> State:
        """The counts; waits for the work."""
        return (self._counts.get().astype(np.int64),)


class RunsOnGpu:
    """The values of `op` of rows of which `nans` says how many elements are NaN; with `omit_nan` these are left out. To
    be used while `gpu.active()`."""

    def __init__(self, gpu: Gpu, rows: ValueRows, dtype: DType, op: Op, nans: Index, *, omit_nan: bool) -> None:
        self._gpu, self._rows, self._dtype, self._op, self._nans = gpu, rows, dtype, op, nans
        self._omit_nan = omit_nan
        self._word = np.dtype(f"uint{8 * dtype.itemsize}")
        self._made: tuple[Any, Any] | None = None

    def start(self) -> None:
        """Have the elements sorted, and their runs counted. Raises OutOfMemory for more than can be."""
        import cupy

        size, values = int(self._rows.lengths.sum()), self._rows.lengths.size
        if size >= _MOST:
            raise OutOfMemory(f"{size:,} elements are too many to be sorted on a GPU")
        ends = cupy.asarray(self._rows.starts - self._rows.starts[:1] + self._rows.lengths)
        keys, ids = self._sorted(size, ends)
        frequent = self._op.fold == "mode"
        leaves = self._dtype.is_float and (frequent or self._omit_nan)
        none = np.uint64(np.iinfo(self._word).max if leaves else 0)
        taken = cupy.zeros(values, np.uint64)
        if size:
            grid, threads = GRID_STRIDE.grid(size, self._word.itemsize, self._gpu.multiprocessors)
            runs = (keys, np.uint64(size), np.uint64(0) if ids is None else ids, ends, none, np.uint32(frequent), taken)
            kernel(self._gpu, TAKE_RUNS, self._dtype)(grid, threads, runs)
        self._made = keys, taken

    def _sorted(self, size: int, ends: Any) -> tuple[Any, Any]:
        """The keys, sorted within each value, and the number of the value at each place; None of a single one."""
        import cupy

        rows, width = self._rows, np.uint64(8 * self._word.itemsize)
        begin = int(rows.starts[0]) if rows.starts.size else 0
        keys = cupy.empty(size, self._word)
        if size:
            arguments = (rows.array[begin : begin + size], np.uint64(size), keys)
            kernel(self._gpu, KEYS_OF_VALUES, self._dtype)(-(-size // THREADS), THREADS, arguments)
        if rows.lengths.size == 1 or not size:
            keys.sort()
            return keys, None
        ids = cupy.searchsorted(ends, cupy.arange(size, dtype=np.int64), side="right").astype(np.uint64)
        if width < _WORD:
            ids = ids << width | keys
            ids.sort()
            return ids.astype(self._word), ids >> width
        order = cupy.argsort(keys)
        order = order[cupy.argsort(ids[order])]
        return keys[order], ids[order]

    def values(self) -> NDArray[Any]:
        """The values; arbitrary where no element entered. Waits for the work."""
        import cupy

        assert self._made is not None, "start comes first"
        keys, taken = self._made
        if self._op.fold == "distinct":
            counted: NDArray[np.int64] = taken.get().astype(np.int64)
            return counted
        runs = taken.get()
        known, modes = runs > 0, np.zeros(runs.size, self._word)
        if known.any():
            first = _MOST - 1 - (runs[known] % np.uint64(_MOST)).astype(np.int64)
            modes[known] = keys[cupy.asarray(first)].get()
        elements = elements_of(modes, self._dtype)
        if not self._dtype.is_float:
            return elements
        frequent = elements.astype(np.float64)
        if not self._omit_nan:
            frequent[self._nans > 0] = np.nan
        return frequent
