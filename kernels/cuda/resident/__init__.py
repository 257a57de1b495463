"""Reductions of arrays that are on a GPU already, to values that stay there."""

from warpfold.kernels.cuda.resident.along import Arrangement, reduce_along
from warpfold.kernels.cuda.resident.levels import ResidentLevels, level_units
from warpfold.kernels.cuda.resident.shapes import resident_units
from warpfold.kernels.cuda.resident.totals import ResidentTotals
from warpfold.kernels.cuda.resident.whole import ResidentReducer

__all__ = [
    "Arrangement",
    "ResidentLevels",
    "ResidentReducer",
    "ResidentTotals",
    "level_units",
    "reduce_along",
    "resident_units",
]
