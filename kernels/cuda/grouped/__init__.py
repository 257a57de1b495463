"""Exact sums of many values on a GPU: along axes and by segments."""

from warpfold.kernels.cuda.grouped.shapes import grouped_units
from warpfold.kernels.cuda.grouped.sums import ColumnsLayout, GroupedSums, Layout, OffsetsLayout, RowsLayout

__all__ = ["ColumnsLayout", "GroupedSums", "Layout", "OffsetsLayout", "RowsLayout", "grouped_units"]
