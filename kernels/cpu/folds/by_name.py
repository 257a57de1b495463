"""Every fold of one source, by the name that rows of `kernels/ops/table.py` give.

The exact strategy folds whole arrays by these. An op that adds nothing up has an aggregate in place of a fold.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import One
from warpfold.kernels.aggregates.by_name import AGGREGATES, aggregate_of
from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan
from warpfold.kernels.cpu.folds import sums
from warpfold.kernels.cpu.folds.fold import Fold, StartFold
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Op, Value


class AggregateFold:
    """All elements as the only group of an aggregate."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> None:
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._aggregate = aggregate_of(op, dtype)
        self._folded = self._aggregate.begun(1)
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
        self._folded.merge(other._folded.rows(0, 1))

    def values(self) -> NDArray[Any]:
        """The value, or the values of an op that has several."""
        return self._aggregate.finish(self._folded.rows(0, 1), np.array([self.count]))

    def value(self) -> Value:
        value: Value = self.values().tolist()[0]
        return value

    def state(self) -> None:
        return None


FOLDS: Mapping[str, StartFold] = MappingProxyType({**sums.FOLDS, **dict.fromkeys(AGGREGATES, AggregateFold)})
_INTERPRETED: Mapping[str, StartFold] = MappingProxyType({**FOLDS, **sums.INTERPRETED})


def fold_for(
    op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True
) -> Fold[NDArray[Any]]:
    """An empty fold of `op`, an op of one source, over elements of `dtype`. One that is not `compiled` needs no
    compiler."""
    return (FOLDS if compiled else _INTERPRETED)[op.fold](op, dtype, nan_policy, ddof)
