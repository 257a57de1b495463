"""What can be computed: the rows of ops, their operands, their values of nothing, and their definitions."""

from warpfold.kernels.ops.parameters import Parameters
from warpfold.kernels.ops.table import (
    INTEGER,
    OPS,
    SUMS_OF_MOMENTS,
    Extreme,
    Finish,
    NanPolicy,
    NullPolicy,
    Op,
    Result,
    Terms,
    Value,
    empty_value,
    op_named,
)

__all__ = [
    "INTEGER",
    "OPS",
    "SUMS_OF_MOMENTS",
    "Extreme",
    "Finish",
    "NanPolicy",
    "NullPolicy",
    "Op",
    "Parameters",
    "Result",
    "Terms",
    "Value",
    "empty_value",
    "op_named",
]
