"""Counts of bins of many values on a GPU."""

from typing import Any

import numpy as np

from warpfold.kernels.aggregates.aggregate import State
from warpfold.kernels.aggregates.histogram import Histogram
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.picks.kernels import COUNT_BINS, kernel, launches
from warpfold.kernels.cuda.ranks.kernels import keys_of
from warpfold.kernels.cuda.ranks.rows import THREADS, ValueRows
from warpfold.kernels.dtypes import DType

_COUNTERS, _CELLS = 1 << 12, 1 << 11
"""Counters of a block, and cells of keys, for which `sources/picks.cu` has room."""

_BLOCKS_EACH = 6
"""Blocks of a multiprocessor."""


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
