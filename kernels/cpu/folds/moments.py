"""Ops that need the elements and their squares, both added exactly in one read: var, std."""

from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.folds.nans import is_nan, refuse_nan
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, Flags, deviation, variance
from warpfold.kernels.operands import check_freedom
from warpfold.kernels.ops import Finish, NanPolicy, Op, Terms, Value

PIECE = 1 << 17
"""Elements that the second accumulator finds in the cache where the first left them: at most 1 MiB. With fewer the
calls cost as much as the additions."""


class MomentsFold:
    """Two exact accumulators over the same elements, and the states merged into them."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> None:
        self._op = op
        self._dtype = dtype
        self._ddof = ddof
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._values = accumulator(dtype, Terms.VALUES)
        self._squares = accumulator(dtype, Terms.PRODUCTS)
        self._merged = ExactState.empty(Terms.VALUES), ExactState.empty(Terms.PRODUCTS)

    @property
    def count(self) -> int:
        return self.states()[0].count

    def add(self, start: int, part: NDArray[Any]) -> None:
        for at in range(0, part.size, PIECE):
            piece = part[at : at + PIECE]
            if self._omit:
                missing = is_nan(piece, self._dtype)
                piece = piece[~missing] if missing.any() else piece
            flags = self._values.add(piece)
            if self._refuse and flags & Flags.NAN:
                refuse_nan(start + at, piece, self._dtype)
            self._squares.add(piece)

    def merge(self, other: "MomentsFold") -> None:
        values, squares = other.states()
        self._merged = self._merged[0].merge(values), self._merged[1].merge(squares)

    def value(self) -> Value:
        check_freedom(self._op, self.count, self._ddof)
        finish = variance if self._op.finish is Finish.VARIANCE else deviation
        return finish(*self.states(), self._ddof, DTYPES[self._op.result_dtype(self._dtype)])

    def states(self) -> tuple[ExactState, ExactState]:
        """Of the elements and of their squares."""
        return self._merged[0].merge(self._values.state()), self._merged[1].merge(self._squares.state())

    def state(self) -> None:
        """None: one state has not both. Those of sum and sum_squares of the same elements are the two."""
