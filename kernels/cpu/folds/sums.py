"""Ops that add exactly and round once: sums and means, norms, variances, and dot products of two arrays."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan
from warpfold.kernels.cpu.accumulator import FloatAccumulator, accumulator
from warpfold.kernels.cpu.claims import ClaimJob, Claims
from warpfold.kernels.cpu.folds.fold import StartFold
from warpfold.kernels.cpu.pairs import pair_accumulator
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, Flags, deviation, value_of, variance
from warpfold.kernels.ops import Finish, NanPolicy, Op, Terms, Value
from warpfold.kernels.ops.operands import check_freedom, result_dtype


class SumFold:
    """An exact accumulator and the states merged into it."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._accumulator = accumulator(dtype, op.terms, magnitudes=op.magnitudes, compiled=compiled)
        self._merged: ExactState | None = None
        self._whole: ExactState | None = None

    @property
    def count(self) -> int:
        return self.state().count

    def add(self, start: int, part: NDArray[Any]) -> None:
        if self._omit:
            missing = is_nan(part, self._dtype)
            part = part[~missing] if missing.any() else part
        self._whole = None
        flags = self._accumulator.add(part)
        if self._refuse and flags & Flags.NAN:
            refuse_nan(start, part, self._dtype)

    def claiming(self, claims: Claims) -> ClaimJob:
        """A job that takes in all pieces that no other thread takes, NaNs among them; `claimed` ends it."""
        assert isinstance(self._accumulator, FloatAccumulator), "pieces of floats are claimed"
        return self._accumulator.claiming(claims)

    def claimed(self, job: ClaimJob) -> None:
        """Count what a job, which is done, has taken in."""
        assert isinstance(self._accumulator, FloatAccumulator), "pieces of floats are claimed"
        self._whole = None
        self._accumulator.claimed(job)

    def merge(self, other: "SumFold") -> None:
        self._merged = other.state() if self._merged is None else self._merged.merge(other.state())
        self._whole = None

    def value(self) -> Value:
        return value_of(self._op, self.state(), self._op.result_dtype(self._dtype))

    def state(self) -> ExactState:
        # The state is asked for several times, and making it takes longer than adding a few elements.
        if self._whole is None:
            own = self._accumulator.state()
            self._whole = own if self._merged is None else self._merged.merge(own)
        return self._whole


PIECE = 1 << 17
"""Elements that the second accumulator finds in the cache where the first left them: at most 1 MiB. With fewer the
calls cost as much as the additions."""


class MomentsFold:
    """Two exact accumulators over the same elements, and the states merged into them."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True) -> None:
        self._op = op
        self._dtype = dtype
        self._ddof = ddof
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._values = accumulator(dtype, Terms.VALUES, compiled=compiled)
        self._squares = accumulator(dtype, Terms.PRODUCTS, compiled=compiled)
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
        """The states of the elements and of their squares."""
        return self._merged[0].merge(self._values.state()), self._merged[1].merge(self._squares.state())

    def state(self) -> None:
        """None: a single state cannot hold both sums. The states of sum and sum_squares of the same elements do."""


Pair = tuple[NDArray[Any], NDArray[Any]]
"""Elements of the same indices of two arrays."""


class DotFold:
    """An exact accumulator of products and the states merged into it. OMIT leaves out pairs in which either element is
    NaN. The product ∞ · 0 is NaN and stays."""

    def __init__(self, op: Op, x: DType, y: DType, nan_policy: NanPolicy, *, compiled: bool = True) -> None:
        self._op = op
        self._dtypes = x, y
        self._policy = nan_policy if x.is_float else NanPolicy.PROPAGATE
        self._accumulator = pair_accumulator(x, y, compiled=compiled)
        self._merged = ExactState.empty(op.terms)

    @property
    def count(self) -> int:
        return self.state().count

    def add(self, start: int, part: Pair) -> None:
        x, y = (np.ascontiguousarray(array) for array in part)
        if self._policy is NanPolicy.RAISE:
            refuse_nan(start, x, self._dtypes[0])
            refuse_nan(start, y, self._dtypes[1], "other element")
        elif self._policy is NanPolicy.OMIT:
            missing = is_nan(x, self._dtypes[0]) | is_nan(y, self._dtypes[1])
            if missing.any():
                x, y = x[~missing], y[~missing]
        self._accumulator.add(x, y)

    def merge(self, other: "DotFold") -> None:
        self._merged = self._merged.merge(other.state())

    def value(self) -> Value:
        return value_of(self._op, self.state(), result_dtype(self._op, *self._dtypes))

    def state(self) -> ExactState:
        return self._merged.merge(self._accumulator.state())


FOLDS: Mapping[str, StartFold] = MappingProxyType({"sum": SumFold, "moments": MomentsFold})
"""The folds of one source, by the names that rows of `kernels/ops/table.py` give."""

INTERPRETED: Mapping[str, StartFold] = MappingProxyType(
    {"sum": partial(SumFold, compiled=False), "moments": partial(MomentsFold, compiled=False)}
)
"""The same, which need no compiler."""
