"""Reductions of many values on a GPU: along axes and by segments."""

from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import grouped_units
from warpfold.kernels.cuda.grouped.totals import FinishedValues
from warpfold.kernels.cuda.grouped.values import GroupedValues, Rounding

__all__ = [
    "ColumnsLayout",
    "FinishedValues",
    "GroupedValues",
    "Layout",
    "OffsetsLayout",
    "Rounding",
    "RowsLayout",
    "grouped_units",
]
