"""The values of sums, magnitudes, squares and moments of floats, rounded on a GPU, by the kernels that serve their
layout: most squares and moments by those of `squares.py`, and what these mark, as all else, by those of `totals.py`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import Layout
from warpfold.kernels.cuda.grouped.squares import GroupedSquares, SquaresEnd, squares_serve
from warpfold.kernels.cuda.grouped.states import KeptTotals
from warpfold.kernels.cuda.grouped.sums import MARKS
from warpfold.kernels.cuda.grouped.totals import GroupedTotals, Rounding
from warpfold.kernels.dtypes import DType


class FinishedValues:
    """The values of a layout of `array`, a CuPy array of a float `dtype` of one dimension. To be used while
    `gpu.active()`.

    `values` is a CuPy array of a result each, `omitted` of how many elements were left out of each. With `keep` the
    totals are `kept` before they are rounded. `kernel` names what the shape chose.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, kind: SumKind, rounding: Rounding,
        *, keep: bool = False,
    ) -> None:  # fmt: skip
        self._totals = GroupedTotals(gpu, array, layout, dtype, kind, rounding=rounding, keep=keep)
        self._dtype, self._squares, self._rounding = dtype, None, rounding
        if not keep and squares_serve(gpu, dtype, kind, layout):
            spread = SquaresEnd(kind, rounding.finish, rounding.ddof, rounding.omit_nan)
            self._squares = GroupedSquares(gpu, array, layout, dtype, spread)
        self.values: Any = None
        self.omitted: Any = None

    @property
    def kernel(self) -> str:
        return self._totals.kernel if self._squares is None else self._squares.kernel

    @property
    def kept(self) -> Sequence[KeptTotals]:
        return self._totals.kept

    def start(self) -> None:
        """Have all values made; waits for most of the work."""
        import cupy

        if self._squares is None:
            self._totals.start()
            self.values, self.omitted = self._totals.values, self._totals.omitted
            return
        self._squares.marked.fill(0)
        self._squares.start()
        self.values = self._squares.values
        self.omitted = cupy.zeros(self.values.size if self._rounding.omit_nan else 1, dtype=np.uint32)
        if int(self._squares.marked.get()[0]):
            bits, mark = MARKS[self._dtype.name]
            listed = cupy.flatnonzero(self.values.view(bits) == bits(mark)).astype(np.int64)
            self._totals.replace(listed, self.values, self.omitted)
