"""Reductions of arrays that are on a GPU already, to values that stay there."""

from warpfold.kernels.cuda.resident.along import reduce_along
from warpfold.kernels.cuda.resident.arrangement import Arrangement
from warpfold.kernels.cuda.resident.shapes import resident_units
from warpfold.kernels.cuda.resident.whole import ResidentReducer

__all__ = ["Arrangement", "ResidentReducer", "reduce_along", "resident_units"]
