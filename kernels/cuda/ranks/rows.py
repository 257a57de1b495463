"""The elements of many values as rows, each value side by side, and the keys in given ranks of each: a warp or a block
of threads has all elements of a value, or the whole GPU."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.ranks.digits import DigitCounts
from warpfold.kernels.cuda.ranks.kernels import ROWS, SHORT_ROWS, kernel
from warpfold.kernels.dtypes import DType
from warpfold.kernels.parts.grouping import Index

SHORT = 64
"""Elements that a warp puts in order."""

LONG = 1 << 18
"""Values of more elements have launches of their own, with all blocks."""

THREADS = 256
_WARPS = THREADS // 32
BLOCKS = 1 << 16


class ValueRows:
    """The rows of the values of a layout of `array`, a CuPy array of one dimension. Columns are put in rows first. To
    be used while the GPU is active."""

    def __init__(self, array: Any, layout: Layout) -> None:
        import cupy

        if isinstance(layout, ColumnsLayout):
            array = cupy.ascontiguousarray(array.reshape(layout.height, layout.width).T).reshape(-1)
            layout = RowsLayout(layout.width, layout.height, layout.total)
        self.array, self.layout = array, layout
        self.lengths: Index = layout.lengths
        self.starts: Index = np.cumsum(self.lengths) - self.lengths
        if isinstance(layout, OffsetsLayout):
            self.starts = layout.host[:-1]

    @property
    def bounds(self) -> tuple[Any, ...]:
        """Where the rows lie, as kernels take it: offsets or a length, the number of elements, and that of rows."""
        layout, rows = self.layout, np.uint64(self.lengths.size)
        if isinstance(layout, OffsetsLayout):
            return layout.offsets, np.uint64(0), np.uint64(layout.total), rows
        return np.uint64(0), np.uint64(layout.length), np.uint64(layout.total), rows

    def elements(self, value: int) -> Any:
        """The elements of one value."""
        return self.array[int(self.starts[value]) : int(self.starts[value] + self.lengths[value])]

    def long(self) -> list[int]:
        """The values that have launches of their own."""
        return np.flatnonzero(self.lengths > LONG).tolist()


def keys_of_rows(gpu: Gpu, rows: ValueRows, dtype: DType, ranks: NDArray[np.int64], which: NDArray[np.int64]) -> Any:
    """The keys of `include/sorting_keys.cuh` in the sorted ranks[which[value]] of each value, a CuPy array of shape
    (values, ranks); 0 of a value without elements."""
    import cupy

    lengths, wanted = rows.lengths, ranks.shape[1]
    placed = cupy.zeros((lengths.size, wanted), np.dtype(f"uint{8 * dtype.itemsize}"))
    asked = (cupy.asarray(ranks), cupy.asarray(which), np.int32(wanted), placed)
    arguments = (rows.array, *rows.bounds, *asked)
    if ((lengths > 0) & (lengths <= SHORT)).any():
        kernel(gpu, SHORT_ROWS, dtype)(min(BLOCKS, -(-lengths.size // _WARPS)), THREADS, arguments)
    if ((lengths > SHORT) & (lengths <= LONG)).any():
        kernel(gpu, ROWS, dtype)(min(BLOCKS, lengths.size), THREADS, (*arguments, np.uint64(LONG)))
    for value in rows.long():
        digits = DigitCounts(gpu, dtype, partial(iter, (rows.elements(value),)))
        placed[value] = cupy.asarray(digits.keys(ranks[which[value]].tolist()).astype(placed.dtype))
    return placed
