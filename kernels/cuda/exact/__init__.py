"""Exact sums of floats on the GPU, in one launch: `../sources/exact.cu` says how."""

from kernels.cuda.exact.accumulator import ExactAccumulator, ExactDot, ExactMoments
from kernels.cuda.exact.launches import MOST_BLOCKS
from kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, Kind, Shape, exact_unit, exact_units
from kernels.cuda.exact.total import WORDS, Fetched

__all__ = [
    "LARGEST_SHARED",
    "MOST_BLOCKS",
    "SHAPES",
    "WORDS",
    "ExactAccumulator",
    "ExactDot",
    "ExactMoments",
    "Fetched",
    "Kind",
    "Shape",
    "exact_unit",
    "exact_units",
]
