"""Windows that move along the elements of an array: which elements make the value at each place.

A line is a run of elements that a window does not leave: the whole array, one along an axis, or a segment. The elements
are arranged line after line. Then the windows of neighbouring values begin and end no earlier than the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes, Index, Segments


@dataclass(frozen=True, slots=True)
class Window:
    """The last `rows` elements up to each one, with it, or all where it is None. A `centred` window has as many on both
    sides, and of an even number one more before. `min_count` is how many elements a value needs at least."""

    rows: int | None = None
    centred: bool = False
    min_count: int = 1


@dataclass(frozen=True, slots=True)
class Rolling:
    """One value for each element: that of the `window` around it or before it, within its line."""

    window: Window
    within: AlongAxes | Segments | None = None

    def result_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the values for an array of `shape`. Raises InvalidInput naming "axis" or an offset."""
        if not isinstance(self.within, AlongAxes):
            if self.within is not None:
                self.within.result_shape(shape)
            return (prod(shape),)
        if len(self.within.reduced(len(shape))) != 1:
            raise InvalidInput("a window moves along one axis", "axis")
        return tuple(shape)

    def lines(self, shape: Sequence[int]) -> "RollingLines":
        """The lines of an array of `shape`."""
        return RollingLines(tuple(shape), self.within)

    def counts(self, shape: Sequence[int]) -> Index:
        """How many elements each window has, in C order of the result."""
        lines = self.lines(shape)
        begins, ends = Spans(self.window, lines.bounds).of(0, prod(shape))
        counts: Index = lines.back(ends - begins)
        return counts


Layout = AlongAxes | Segments | Rolling
"""Which elements of an array make which value."""


class RollingLines:
    """The lines of an array of `shape`: line i has elements bounds[i] to bounds[i + 1] of those that are arranged."""

    def __init__(self, shape: tuple[int, ...], within: AlongAxes | Segments | None) -> None:
        count = prod(shape)
        self._shape = shape
        self._axis: int | None = None
        self._gaps: tuple[slice, ...] = ()
        if isinstance(within, AlongAxes):
            (self._axis,) = within.reduced(len(shape))
            length = shape[self._axis]
            self.bounds = np.arange(0, count + 1, length, dtype=np.int64) if length else np.zeros(1, np.int64)
        elif isinstance(within, Segments):
            edges = within.bounds(count)
            self._gaps = slice(0, int(edges[0])), slice(int(edges[-1]), count)
            self.bounds = np.concatenate([[0], edges, [count]])
        else:
            self.bounds = np.array([0, count], np.int64)

    def arranged(self, elements: NDArray[Any]) -> NDArray[Any]:
        """The elements, which come in C order, line after line."""
        if self._axis in (None, len(self._shape) - 1):
            return elements.reshape(-1)
        return np.ascontiguousarray(np.moveaxis(elements.reshape(self._shape), self._axis, -1)).reshape(-1)

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of arranged elements in C order of the array."""
        if self._axis in (None, len(self._shape) - 1):
            return values
        shape = (*self._shape[: self._axis], *self._shape[self._axis + 1 :], self._shape[self._axis])
        return np.moveaxis(values.reshape(shape), -1, self._axis).reshape(-1)

    def without_gaps(self, counts: Index) -> Index:
        """The counts of arranged elements, which are 0 for elements that are in no segment."""
        for gap in self._gaps:
            counts[gap] = 0
        return counts


class Spans:
    """The windows of elements that lie in lines between `bounds`."""

    def __init__(self, window: Window, bounds: Index) -> None:
        self._window = window
        lengths = np.diff(bounds)
        self.longest = int(lengths.max(initial=0))
        if window.rows is not None:
            self.longest = min(self.longest, window.rows)
        self._single = lengths.size == 1
        self._last = int(bounds[-1])
        if not self._single:
            self._starts, self._stops = np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)

    def of(self, first: int, last: int) -> tuple[Index, Index]:
        """The windows of elements `first` to `last` − 1: where each begins, and where it ends."""
        rows = self._window.rows
        ahead = (rows - 1) // 2 if rows is not None and self._window.centred else 0
        ends = np.arange(first + 1 + ahead, last + 1 + ahead, dtype=np.int64)
        if self._single:
            begins = np.zeros(ends.size, np.int64) if rows is None else ends - rows
            if rows is not None and first + 1 + ahead < rows:
                np.maximum(begins, 0, out=begins)
            if last + ahead > self._last:
                np.minimum(ends, self._last, out=ends)
            return begins, ends
        starts, stops = self._starts[first:last], self._stops[first:last]
        begins = starts if rows is None else np.maximum(ends - rows, starts)
        return begins, np.minimum(ends, stops)
