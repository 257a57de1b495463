"""What windows read: all elements at once, and beside them their times and their keys."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import refuse_nan
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.cpu.windows.rolling import spans_of_times
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.rolling import Closed, RollingLines, Spans
from warpfold.kernels.query import Moving
from warpfold.kernels.sources.sequential import Elements, gathered

_BYTES = 48
"""Bytes of memory for each element beside the element: its value, its count, and what they are made of."""


def elements_of(query: Moving) -> NDArray[Any]:
    """The elements in C order, shape (n,). Raises InvalidInput naming "source", and for a NaN where the policy is
    RAISE; OutOfMemory where they and their values do not fit."""
    source, dtype, count = gathered(query.source), query.source.dtype, prod(query.shape)
    if source.count != count:
        raise InvalidInput(f"{source.count:,} elements do not fit the shape {query.shape}", "source")
    require(count * (_BYTES + dtype.itemsize), f"a window over {count:,} elements")
    elements = np.ascontiguousarray(source.read(0, count)).reshape(-1)
    if query.nan_policy is NanPolicy.RAISE and dtype.is_float:
        refuse_nan(0, elements, dtype)
    return elements


def windows_of(query: Moving) -> tuple[RollingLines, Spans]:
    """The lines that windows do not leave, and where each window begins and ends, line after line. Raises InvalidInput
    naming "keys", "over" or "window.width"."""
    keys = None if query.keys is None else _integers(query.keys, query, "keys", "integers or truth values")
    lines = query.grouping.lines(query.shape, keys)
    return lines, Spans(query.grouping.window, lines.bounds, _spans_of_times(query, lines))


def _spans_of_times(query: Moving, lines: RollingLines) -> tuple[Index, Index] | None:
    """Where windows of some width begin and end, line after line; None of other windows. Raises InvalidInput naming
    "over" or "window.width"."""
    window = query.grouping.window
    if window.width is None:
        return None
    if query.over is None:
        raise InvalidInput("a window of some width needs the times of the elements", "over")
    reach, own = window.reach(query.second), window.closed in (Closed.RIGHT, Closed.BOTH)
    times = lines.arranged(_integers(query.over, query, "over", "instants, durations or integers").astype(np.int64))
    begins, ends = np.empty(times.size, np.int64), np.empty(times.size, np.int64)
    wrong = spans_of_times(times, lines.bounds, reach, own, begins, ends)
    if wrong >= 0:
        place = lines.place(wrong)
        raise InvalidInput(f"is not sorted: element {place} has an earlier time than the one before it", "over")
    return begins, ends


def _integers(source: Elements, query: Moving, field: str, wanted: str) -> NDArray[Any]:
    if source.dtype.is_float:
        raise InvalidInput(f"has other than {wanted}", field)
    if source.dtype.name == "uint64" and field == "over":
        raise InvalidInput("has uint64, which are no times", field)
    whole = gathered(source)
    if whole.count != (query.source.count or whole.count):
        raise InvalidInput(f"has {whole.count:,} elements, and the source has {query.source.count:,}", field)
    return np.ascontiguousarray(whole.read(0, whole.count)).reshape(-1)
