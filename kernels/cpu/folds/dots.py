"""The sum of the products of two arrays, exact and rounded once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.folds.nans import is_nan, refuse_nan
from warpfold.kernels.cpu.pairs import pair_accumulator
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState, value_of
from warpfold.kernels.operands import result_dtype
from warpfold.kernels.ops import NanPolicy, Op, Value

Pair = tuple[NDArray[Any], NDArray[Any]]
"""Elements of the same indices of two arrays."""


class DotFold:
    """An exact accumulator of products and the states merged into it. OMIT leaves out pairs in which either is NaN; a
    product ∞ · 0 is NaN and stays."""

    def __init__(self, op: Op, x: DType, y: DType, nan_policy: NanPolicy) -> None:
        self._op = op
        self._dtypes = x, y
        self._policy = nan_policy if x.is_float else NanPolicy.PROPAGATE
        self._accumulator = pair_accumulator(x, y)
        self._merged = ExactState.empty(op.terms)

    @property
    def count(self) -> int:
        return self.state().count

    def add(self, start: int, part: Pair) -> None:
        x, y = (np.ascontiguousarray(one) for one in part)
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
