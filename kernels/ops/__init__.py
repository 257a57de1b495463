"""What can be computed: the rows of ops, their operands, their values of nothing, and their definitions."""

from warpfold.kernels.ops.kinds import Extreme, Finish, Result, Terms
from warpfold.kernels.ops.op import INTEGER, Op, Value
from warpfold.kernels.ops.parameters import Parameters
from warpfold.kernels.ops.policies import NanPolicy, NullPolicy
from warpfold.kernels.ops.table import OPS, SUMS_OF_MOMENTS, empty_value, op_named
from warpfold.kernels.ops.totals import PLAIN_TOTALS, sums_of, terms_of

__all__ = [
    "INTEGER",
    "OPS",
    "PLAIN_TOTALS",
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
    "sums_of",
    "terms_of",
]
