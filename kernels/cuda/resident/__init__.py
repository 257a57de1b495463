"""Reductions of arrays that are on a GPU already, to values that stay there."""

from warpfold.kernels.cuda.resident.along import AlongReduction
from warpfold.kernels.cuda.resident.arrangement import Arrangement
from warpfold.kernels.cuda.resident.levels import ResidentLevels, level_units
from warpfold.kernels.cuda.resident.shapes import resident_units
from warpfold.kernels.cuda.resident.totals import ResidentTotals
from warpfold.kernels.cuda.resident.whole import DotReduction, ResidentReducer, WholeReduction

__all__ = [
    "AlongReduction",
    "Arrangement",
    "DotReduction",
    "ResidentLevels",
    "ResidentReducer",
    "ResidentTotals",
    "WholeReduction",
    "level_units",
    "resident_units",
]
