"""Quantiles along axes and by segments on a GPU: a warp or a block of threads has all elements of a value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.folds import COUNT_NAN, GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.ranks.digits import DigitCounts
from warpfold.kernels.cuda.ranks.kernels import ROWS, SHORT_ROWS, kernel
from warpfold.kernels.cuda.ranks.whole import values_of
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op

_SHORT = 64
"""Elements that a warp puts in order."""

_LONG = 1 << 18
"""Values of more elements have launches of their own, with all blocks."""

_THREADS = 256
_WARPS = _THREADS // 32
_BLOCKS = 1 << 16


class GroupedQuantiles:
    """The quantiles of the values of a layout of `array`, a CuPy array of one dimension and of `dtype`. With `omit_nan`
    elements that are NaN are left out; otherwise they make their value NaN. To be used while `gpu.active()`."""

    def __init__(self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, op: Op, *, omit_nan: bool) -> None:
        self._gpu, self._dtype, self._op, self._omit_nan = gpu, dtype, op, omit_nan
        self._array, self._layout = array, layout
        self._lengths = _lengths(layout)
        self._nans = GroupedFolds(gpu, array, layout, dtype, COUNT_NAN) if dtype.is_float else None
        self._placed: Any = None
        self._ranks: Ranks | None = None

    @property
    def kernel(self) -> str:
        """The name of what the shape chose."""
        return "ranks_of_short_rows" if self._lengths.max(initial=0) <= _SHORT else "ranks_of_rows"

    def start(self) -> None:
        """Have the keys in all ranks found. This waits for the numbers of NaNs, on which the ranks depend."""
        import cupy

        if self._nans is not None:
            self._nans.start()
        counts = self._lengths - self.omitted()
        ranks = self._ranks = Ranks(self._op, counts)
        rows, wanted = counts.size, ranks.sorted.shape[1]
        self._placed = cupy.zeros((rows, wanted), np.dtype(f"uint{8 * self._dtype.itemsize}"))
        array, layout = self._array, self._layout
        if isinstance(layout, ColumnsLayout):
            array = cupy.ascontiguousarray(array.reshape(layout.height, layout.width).T).reshape(-1)
            layout = RowsLayout(layout.width, layout.height, layout.total)
        none = np.uint64(0)
        offsets = layout.offsets if isinstance(layout, OffsetsLayout) else none
        length = none if isinstance(layout, OffsetsLayout) else np.uint64(layout.length)
        arguments = (
            array, offsets, length, np.uint64(layout.total), np.uint64(rows), cupy.asarray(ranks.sorted),
            cupy.asarray(ranks.which), np.int32(wanted), self._placed,
        )  # fmt: skip
        if ((self._lengths > 0) & (self._lengths <= _SHORT)).any():
            kernel(self._gpu, SHORT_ROWS, self._dtype)(min(_BLOCKS, -(-rows // _WARPS)), _THREADS, arguments)
        if ((self._lengths > _SHORT) & (self._lengths <= _LONG)).any():
            kernel(self._gpu, ROWS, self._dtype)(min(_BLOCKS, rows), _THREADS, (*arguments, np.uint64(_LONG)))
        starts = np.cumsum(self._lengths) - self._lengths
        if isinstance(layout, OffsetsLayout):
            starts = layout.host[:-1]
        for row in np.flatnonzero(self._lengths > _LONG).tolist():
            part = array[int(starts[row]) : int(starts[row] + self._lengths[row])]
            digits = DigitCounts(self._gpu, self._dtype, lambda part=part: iter((part,)))  # type: ignore[misc]
            keys = digits.keys(ranks.sorted[ranks.which[row]].tolist())
            self._placed[row] = cupy.asarray(keys.astype(self._placed.dtype))

    def omitted(self) -> NDArray[np.int64]:
        """How many elements are left out of each value; waits for the work."""
        if self._nans is None or not self._omit_nan:
            return np.zeros(1, np.int64)
        return self._nan_counts()

    def values(self) -> NDArray[Any]:
        """The values, of several quantiles side by side; arbitrary where no element entered."""
        assert self._ranks is not None, "start comes first"
        nans = None if self._nans is None or self._omit_nan else self._nan_counts() > 0
        return values_of(self._placed.get(), self._ranks, nans, self._op, self._dtype)

    def _nan_counts(self) -> NDArray[np.int64]:
        assert self._nans is not None, "only floats have NaNs"
        return self._nans.words()[:, 0].astype(np.int64)


def _lengths(layout: Layout) -> NDArray[np.int64]:
    if isinstance(layout, OffsetsLayout):
        return np.diff(layout.host)
    if isinstance(layout, ColumnsLayout):
        return np.full(layout.width, layout.height, np.int64)
    lengths = np.full(layout.count, layout.length if layout.total else 0, np.int64)
    if layout.total:
        lengths[-1] = layout.total - (layout.count - 1) * layout.length
    return lengths
