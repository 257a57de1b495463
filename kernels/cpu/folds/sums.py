"""Ops that add exactly and round once: sum, mean, sum_squares, norm1, norm2."""

from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.folds.nans import is_nan, refuse_nan
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState, Flags, value_of
from warpfold.kernels.ops import NanPolicy, Op, Value


class SumFold:
    """An exact accumulator and the states merged into it."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._accumulator = accumulator(dtype, op.terms, magnitudes=op.magnitudes)
        self._merged = ExactState.empty(op.terms)

    @property
    def count(self) -> int:
        return self.state().count

    def add(self, start: int, part: NDArray[Any]) -> None:
        if self._omit:
            missing = is_nan(part, self._dtype)
            part = part[~missing] if missing.any() else part
        flags = self._accumulator.add(part)
        if self._refuse and flags & Flags.NAN:
            refuse_nan(start, part, self._dtype)

    def merge(self, other: "SumFold") -> None:
        self._merged = self._merged.merge(other.state())

    def value(self) -> Value:
        return value_of(self._op, self.state(), self._op.result_dtype(self._dtype))

    def state(self) -> ExactState:
        return self._merged.merge(self._accumulator.state())
