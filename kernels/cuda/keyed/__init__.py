"""Exact sums of groups of rows by key on a GPU."""

from warpfold.kernels.cuda.keyed.shapes import keyed_units
from warpfold.kernels.cuda.keyed.sums import GroupedRows, KeyedSums

__all__ = ["GroupedRows", "KeyedSums", "keyed_units"]
