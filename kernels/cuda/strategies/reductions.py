"""Which reduction of `include/reductions.cuh` gives an op of a dtype: several ops share one and differ at the end."""

from collections.abc import Mapping
from types import MappingProxyType

from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.ops import Op

_REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "Sum",
        "mean": "Sum",
        "prod": "Prod",
        "min": "Min",
        "max": "Max",
        "argmin": "ArgMin",
        "argmax": "ArgMax",
        "sum_squares": "SumSquares",
        "norm1": "Norm1",
        "norm2": "SumSquares",
        "norm_inf": "NormInf",
        "count_nonzero": "CountNonzero",
        "any": "CountNonzero",
        "all": "CountNonzero",
    }
)
# Of truth values the magnitude and the square are themselves; product and minimum are true where none is false.
_OF_BOOL: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("sum", "mean", "prod", "min", "max", "sum_squares", "norm1", "norm2", "norm_inf"), "CountNonzero")
)


def reduction_of(op: Op, dtype: DType) -> str:
    """The name of the C++ template that computes `op` of `dtype`."""
    if dtype.kind is Kind.BOOL and op.name in _OF_BOOL:
        return _OF_BOOL[op.name]
    return _REDUCTIONS[op.name]
