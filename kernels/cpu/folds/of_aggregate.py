"""A whole array by an aggregate, to which it is one group."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Folded, One
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Op, Value


class AggregateFold:
    """All elements as the only group of an aggregate."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._aggregate = aggregate_of(op, dtype)
        self._folded = Folded(self._aggregate, 1)
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        places = None
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        elif self._omit and (missing := is_nan(part, self._dtype)).any():
            kept = np.flatnonzero(~missing)
            part, places = part[kept], start + kept
        self.count += part.size
        self._folded.update((part,), One(start, places))

    def merge(self, other: "AggregateFold") -> None:
        self.count += other.count
        self._folded.merge(other._folded.state)

    def value(self) -> Value:
        value: Value = self._aggregate.finish(self._folded.state, np.array([self.count])).tolist()[0]
        return value

    def state(self) -> None:
        return None
