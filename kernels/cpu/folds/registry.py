"""Which fold computes which op of one source. An op without a row here is not claimed by the exact strategy."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.cpu.folds.extremes import ExtremumFold, PlaceFold
from warpfold.kernels.cpu.folds.fold import Fold
from warpfold.kernels.cpu.folds.integers import NonzeroFold, ProductFold
from warpfold.kernels.cpu.folds.sums import MomentsFold, SumFold
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Op

Start = Callable[[Op, DType, NanPolicy, int], Fold[NDArray[Any]]]
"""Makes an empty fold of an op over elements of a dtype, with a policy for NaN and delta degrees of freedom."""


def _sum(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> SumFold:
    return SumFold(op, dtype, nan_policy)


def _product(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> ProductFold:
    return ProductFold(dtype)


def _extremum(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> ExtremumFold:
    return ExtremumFold(op, dtype, nan_policy)


def _place(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> PlaceFold:
    return PlaceFold(op, dtype, nan_policy)


def _nonzero(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int) -> NonzeroFold:
    return NonzeroFold(op, dtype, nan_policy)


FOLDS: Mapping[str, Start] = MappingProxyType(
    {
        **dict.fromkeys(("sum", "mean", "sum_squares", "norm1", "norm2"), _sum),
        **dict.fromkeys(("var", "std"), MomentsFold),
        **dict.fromkeys(("min", "max", "norm_inf"), _extremum),
        **dict.fromkeys(("argmin", "argmax"), _place),
        **dict.fromkeys(("count_nonzero", "any", "all"), _nonzero),
        "prod": _product,
    }
)


def fold_for(op: Op, dtype: DType, nan_policy: NanPolicy, ddof: int = 0) -> Fold[NDArray[Any]]:
    """An empty fold of `op`, an op of one source that has a row, over elements of `dtype`."""
    return FOLDS[op.name](op, dtype, nan_policy, ddof)
