"""Ops that test each element against zero: count_nonzero, any, all. NaN is not zero, −0 is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.folds.nans import is_nan, refuse_nan
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Op, Value


class NonzeroFold:
    """How many elements there are, and how many are not zero."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._nonzero = 0
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        self.count += part.size
        if not self._dtype.is_float:
            self._nonzero += int(np.count_nonzero(part))
            return
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        width = 8 * self._dtype.itemsize
        bits = part.view(f"uint{width}")
        self._nonzero += int(np.count_nonzero(bits & bits.dtype.type((1 << (width - 1)) - 1)))
        if self._omit:
            missing = int(np.count_nonzero(is_nan(part, self._dtype)))
            self.count -= missing
            self._nonzero -= missing

    def merge(self, other: "NonzeroFold") -> None:
        self.count += other.count
        self._nonzero += other._nonzero

    def value(self) -> Value:
        match self._op.name:
            case "any":
                return self._nonzero > 0
            case "all":
                return self._nonzero == self.count
        return self._nonzero

    def state(self) -> None:
        return None
