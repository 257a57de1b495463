"""Every fold of one source, by the name that rows of `kernels/ops.py` give.

The exact strategy folds whole arrays by these. An op that adds nothing up has an aggregate in place of a fold.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.aggregates.by_name import AGGREGATES
from warpfold.kernels.cpu.folds import sums
from warpfold.kernels.cpu.folds.fold import Fold, StartFold
from warpfold.kernels.cpu.folds.of_aggregate import AggregateFold
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Op

FOLDS: Mapping[str, StartFold] = MappingProxyType({**sums.FOLDS, **dict.fromkeys(AGGREGATES, AggregateFold)})
_INTERPRETED: Mapping[str, StartFold] = MappingProxyType({**FOLDS, **sums.INTERPRETED})


def fold_for(
    op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True
) -> Fold[NDArray[Any]]:
    """An empty fold of `op`, an op of one source, over elements of `dtype`. One that is not `compiled` needs no
    compiler."""
    return (FOLDS if compiled else _INTERPRETED)[op.fold](op, dtype, nan_policy, ddof)
