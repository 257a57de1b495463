"""Exact sums on the GPU, each in one launch: `../sources/exact.cu` says how."""

from warpfold.kernels.cuda.exact.accumulator import ExactAccumulator, ExactIntegerDot, integer_dot_units
from warpfold.kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, SumKind, exact_unit, exact_units
from warpfold.kernels.cuda.exact.total import (
    HEAD,
    MOST_GPUS,
    digits_of,
    flags_of_heads,
    limbs_of,
    nans_of_heads,
    states_of_limbs,
)

__all__ = [
    "HEAD",
    "LARGEST_SHARED",
    "MOST_GPUS",
    "SHAPES",
    "ExactAccumulator",
    "ExactIntegerDot",
    "SumKind",
    "digits_of",
    "exact_unit",
    "exact_units",
    "flags_of_heads",
    "integer_dot_units",
    "limbs_of",
    "nans_of_heads",
    "states_of_limbs",
]
