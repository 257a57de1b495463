"""Reductions of many values on a GPU: along axes and by segments."""

from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import grouped_units
from warpfold.kernels.cuda.grouped.sums import GroupedSums

__all__ = ["ColumnsLayout", "GroupedSums", "Layout", "OffsetsLayout", "RowsLayout", "grouped_units"]
