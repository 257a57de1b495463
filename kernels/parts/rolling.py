"""Windows that move along the elements of an array: which elements make the value at each place.

A line is a run of elements that a window does not leave: the whole array, one along an axis, or a segment. The elements
are arranged line after line. Then the windows of neighbouring values begin and end no earlier than the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor, prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes, Index, Segments

SECONDS: Mapping[str, Fraction] = MappingProxyType(
    {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
    | {unit: Fraction(seconds) for unit, seconds in (("s", 1), ("min", 60), ("h", 3600), ("d", 86_400), ("w", 604_800))}
)
"""The units of a width, and the seconds that each has."""


class Closed(StrEnum):
    """Which ends of a window of times belong to it."""

    RIGHT = "right"
    LEFT = "left"
    BOTH = "both"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Window:
    """The last `rows` elements up to each one, with it. A `centred` window has as many on both sides, and of an even
    number one more before. With a `width` those of the time before each, a number of units or a duration in words, with
    the ends that are `closed`. All elements so far without either. `min_count` is how many a value needs at least."""

    rows: int | None = None
    centred: bool = False
    min_count: int = 1
    width: int | str | None = None
    closed: Closed = Closed.RIGHT

    def reach(self, second: Fraction | None) -> int:
        """How far the times of two elements may lie apart, in units of which so many are a second; None where the times
        are only numbers. Raises InvalidInput naming "window.width"."""
        assert self.width is not None, "the window has a width"
        units = Fraction(self.width) if isinstance(self.width, int) else None
        if units is None:
            if second is None:
                raise InvalidInput(f"over has numbers and no times: {self.width} is a duration", "window.width")
            unit = str(self.width).lstrip("0123456789.")
            units = Fraction(str(self.width).removesuffix(unit)) * SECONDS[unit] * second
        left = self.closed in (Closed.LEFT, Closed.BOTH)
        return min(floor(units) if left else ceil(units) - 1, (1 << 63) - 1)


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

    def lines(self, shape: Sequence[int], keys: NDArray[Any] | None = None) -> "RollingLines":
        """The lines of an array of `shape`, or of elements with `keys`."""
        return RollingLines(tuple(shape), self.within, keys)


Layout = AlongAxes | Segments | Rolling
"""Which elements of an array make which value."""


class RollingLines:
    """The lines of an array of `shape`: line i has elements bounds[i] to bounds[i + 1] of those that are arranged."""

    def __init__(
        self, shape: tuple[int, ...], within: AlongAxes | Segments | None, keys: NDArray[Any] | None = None
    ) -> None:
        """Elements with equal `keys` are a line, if there are any."""
        count = prod(shape)
        self.order: NDArray[np.int64] | None = None
        self.shape = shape
        self.moved: int | None = None
        self._gaps: tuple[slice, ...] = ()
        if keys is not None:
            self.order = np.argsort(keys, kind="stable")
            ordered = keys[self.order]
            self.bounds = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [count]])
        elif isinstance(within, AlongAxes):
            (axis,) = within.reduced(len(shape))
            self.moved, length = None if axis == len(shape) - 1 else axis, shape[axis]
            self.bounds = np.arange(0, count + 1, length, dtype=np.int64) if length else np.zeros(1, np.int64)
        elif isinstance(within, Segments):
            edges = within.bounds(count)
            self._gaps = slice(0, int(edges[0])), slice(int(edges[-1]), count)
            self.bounds = np.concatenate([[0], edges, [count]])
        else:
            self.bounds = np.array([0, count], np.int64)

    def arranged(self, elements: NDArray[Any]) -> NDArray[Any]:
        """The elements, which come in C order, line after line."""
        if self.order is not None:
            return elements.reshape(-1)[self.order]
        if self.moved is None:
            return elements.reshape(-1)
        return np.ascontiguousarray(np.moveaxis(elements.reshape(self.shape), self.moved, -1)).reshape(-1)

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of arranged elements in C order of the array."""
        if self.order is not None:
            placed = np.empty_like(values)
            placed[self.order] = values
            return placed
        if self.moved is None:
            return values
        shape = (*self.shape[: self.moved], *self.shape[self.moved + 1 :], self.shape[self.moved])
        return np.moveaxis(values.reshape(shape), -1, self.moved).reshape(-1)

    def place(self, at: int) -> int:
        """Where arranged element `at` stands in the array."""
        places = self.arranged(np.arange(prod(self.shape), dtype=np.int64))
        return int(places[at])

    def finished(self, values: NDArray[Any], counts: Index, least: int) -> tuple[NDArray[Any], Index]:
        """The values of arranged elements, and the counts of their windows, in C order of the array. A value is masked
        where fewer than `least` elements entered it, and where its element is in no segment; then the count is 0."""
        values, counts = self.back(values), self.back(counts)
        missing = counts < least
        for gap in self._gaps:
            missing[gap], counts[gap] = True, 0
        return np.ma.masked_array(values, missing) if missing.any() else values, counts


class Spans:
    """The windows of elements that lie in lines between `bounds`. Those of a width are `known`: where each begins and
    ends."""

    def __init__(self, window: Window, bounds: Index, known: tuple[Index, Index] | None = None) -> None:
        self._window, self._known = window, known
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
        if self._known is not None:
            return self._known[0][first:last], self._known[1][first:last]
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
