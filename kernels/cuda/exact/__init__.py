"""Exact sums on the GPU, each in one launch: `../sources/exact.cu` says how."""

from warpfold.kernels.cuda.exact.accumulator import (
    ExactAccumulator,
    ExactDot,
    ExactIntegerDot,
    ExactMoments,
    integer_dot_units,
)
from warpfold.kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, SumKind, exact_unit, exact_units
from warpfold.kernels.cuda.exact.total import MOST_GPUS, limbs_of, states_of_limbs

__all__ = [
    "LARGEST_SHARED",
    "MOST_GPUS",
    "SHAPES",
    "ExactAccumulator",
    "ExactDot",
    "ExactIntegerDot",
    "ExactMoments",
    "SumKind",
    "exact_unit",
    "exact_units",
    "integer_dot_units",
    "limbs_of",
    "states_of_limbs",
]
