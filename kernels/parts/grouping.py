"""Which elements of an array make which value of a result: those along axes, or those of a segment.

A source is read in one order, run after run. A walk says of any part of that order to which values its elements belong,
and which place each has among the elements of its value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput

Index = NDArray[np.int64]

SMALL_BLOCK = 1 << 12
"""Blocks of columns with no more elements come several at a time."""


@dataclass(frozen=True, slots=True)
class AlongAxes:
    """One value for each index of the axes that are not in `axes`, which are all where it is None. A negative axis
    counts from the last one. With `keepdims` the reduced axes stay in the result's shape, with length 1."""

    axes: tuple[int, ...] | None
    keepdims: bool = False

    def reduced(self, rank: int) -> tuple[int, ...]:
        """The axes, counted from the first and in ascending order. Raises InvalidInput naming "axis"."""
        if self.axes is None:
            return tuple(range(rank))
        counted = []
        for number, axis in enumerate(self.axes):
            field = "axis" if len(self.axes) == 1 else f"axis.{number}"
            if not -rank <= axis < rank:
                axes = "1 axis" if rank == 1 else f"{rank} axes"
                raise InvalidInput(f"there is no axis {axis}: the array has {axes}", field)
            counted.append(axis % rank)
            if counted.count(axis % rank) > 1:
                raise InvalidInput(f"axis {axis} is named twice", field)
        return tuple(sorted(counted))

    def result_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the values for an array of `shape`. Raises InvalidInput naming "axis"."""
        reduced = self.reduced(len(shape))
        lengths = ((1 if axis in reduced else length, axis in reduced) for axis, length in enumerate(shape))
        return tuple(length for length, gone in lengths if self.keepdims or not gone)

    def runs(self, shape: Sequence[int], *, reversed_axes: bool = False) -> list[tuple[int, bool]]:
        """The axes in the order of reading, neighbours that are reduced, or not, as one axis each: its length, and
        whether it is reduced. Axes of length 1 are left out."""
        reduced = self.reduced(len(shape))
        order = range(len(shape))[::-1] if reversed_axes else range(len(shape))
        longer = [(shape[axis], axis in reduced) for axis in order if shape[axis] != 1]
        return [(prod(length for length, _ in run), gone) for gone, run in groupby(longer, key=itemgetter(1))]

    def counts(self, shape: Sequence[int]) -> Index:
        """How many elements each value has, in C order of the result."""
        each = prod(shape[axis] for axis in self.reduced(len(shape)))
        return np.full(prod(self.result_shape(shape)), each, np.int64)


@dataclass(frozen=True, slots=True)
class Segments:
    """One value for each segment of the elements in C order: elements offsets[i] … offsets[i + 1] − 1, or `length`
    elements each, of which the last segment may have fewer."""

    offsets: tuple[int, ...] | None = None
    length: int | None = None

    def result_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the values for an array of `shape`: (segments,). Raises InvalidInput naming the offset that lies
        outside of the array."""
        if self.length is not None:
            return (-(-prod(shape) // self.length),)
        assert self.offsets is not None, "segments have offsets or a length"
        self.check(prod(shape))
        return (len(self.offsets) - 1,)

    def check(self, count: int | None) -> None:
        """Raise InvalidInput naming the first offset that is less than the one before it or, in an array of `count`
        elements, outside of it."""
        last = 0
        for number, offset in enumerate(self.offsets or ()):
            if offset < last:
                before = f"less than the offset {last} before it" if number else "negative"
                raise InvalidInput(f"{offset} is {before}", f"segments.offsets.{number}")
            if count is not None and offset > count:
                raise InvalidInput(f"{offset} is beyond the {count:,} elements", f"segments.offsets.{number}")
            last = offset

    def bounds(self, count: int) -> Index:
        """All offsets in an array of `count` elements."""
        if self.length is not None:
            return np.minimum(np.arange(0, count + self.length, self.length, dtype=np.int64), count)
        return np.array(self.offsets, np.int64)

    def counts(self, shape: Sequence[int]) -> Index:
        """How many elements each value has."""
        bounds: Index = np.diff(self.bounds(prod(shape)))
        return bounds


Grouping = AlongAxes | Segments


@dataclass(frozen=True, slots=True)
class Rows:
    """Neighbouring elements that belong together: those from bounds[r] to bounds[r + 1] to value outputs[r].

    The first of row r has the place places[r] among the elements of its value, and the next ones follow in steps of
    `step`. `whole` says that each row has all elements of its value. Arrays have the shapes (rows + 1,) and (rows,).
    """

    bounds: Index
    outputs: Index
    places: Index
    step: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """Neighbouring elements that belong to neighbouring values: from `start` on, blocks of `rows` times `width`
    elements. The columns of block b belong to the values from outputs[b] on, and row r of it has the place places[b] +
    r · `step` there. `whole` says that each column has all elements of its value. Arrays have the shape (blocks,).
    """

    start: int
    rows: int
    width: int
    outputs: Index
    places: Index
    step: int
    whole: bool

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.outputs.size * self.rows * self.width

    def as_rows(self) -> Rows:
        """The same elements column after column, as `turned` gives them."""
        columns = np.arange(self.width, dtype=np.int64)
        return Rows(
            np.arange(self.outputs.size * self.width + 1, dtype=np.int64) * self.rows,
            (self.outputs[:, None] + columns).ravel(),
            np.repeat(self.places, self.width),
            self.step,
            self.whole,
        )

    def turned(self, flat: NDArray[Any]) -> NDArray[Any]:
        """The elements of `flat`, which is the part that the start counts in, column after column."""
        blocks = flat[self.start : self.start + self.size].reshape(-1, self.rows, self.width)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1)


class Walk(Protocol):
    """All elements of an array in the order in which they are read."""

    @property
    def count(self) -> int: ...

    def cuts(self, size: int) -> Iterator[tuple[int, int]]:
        """Parts start … stop − 1 of about `size` elements that make up the whole, cut between values where possible."""
        ...

    def even(self, size: int) -> int:
        """About `size` elements, so that parts of as many are cut between runs where possible."""
        ...

    def parts(self, start: int, stop: int) -> list[Rows | Columns]:
        """What elements start … stop − 1 belong to. Bounds and starts count from `start`."""
        ...


@dataclass(frozen=True, slots=True)
class Axis:
    """Neighbouring axes in the order of reading: how far apart two elements lie that are next to each other on them,
    among the values (0 on reduced axes) and among the elements of a value (0 on the others)."""

    length: int
    output: int
    place: int


class AxisWalk:
    """A walk through an array along its axes."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.count = prod(axis.length for axis in axes)
        merged: list[Axis] = []
        for axis in axes:
            if axis.length == 1:
                continue
            before = merged[-1] if merged else None
            if (
                before is not None
                and (before.output, before.place) == (axis.output * axis.length, axis.place * axis.length)
                and (axis.output > 0) == (before.output > 0)
            ):
                merged[-1] = Axis(before.length * axis.length, axis.output, axis.place)
            else:
                merged.append(axis)
        *self._outer, self._inner = merged or [Axis(1, 0, 1)]
        self.run = self._inner.length
        self.in_rows = self._inner.output == 0
        self._whole = self.in_rows and all(axis.output for axis in self._outer)
        self.tall_block = bool(self._outer) and self._outer[-1].length * self.run > SMALL_BLOCK

    def even(self, size: int) -> int:
        block = self.run
        for axis in reversed(self._outer):
            if block * axis.length > size:
                break
            block *= axis.length
        return size // block * block if 0 < block <= size else size

    def cuts(self, size: int) -> Iterator[tuple[int, int]]:
        even = self.even(size)
        return ((start, min(start + even, self.count)) for start in range(0, self.count, even))

    def parts(self, start: int, stop: int) -> list[Rows | Columns]:
        first, last = start // self.run, -(-stop // self.run)
        numbers = np.arange(first, last, dtype=np.int64)
        outputs, places = self._of_runs(numbers)
        if self.in_rows:
            edges = np.arange(first, last + 1, dtype=np.int64) * self.run
            bounds = np.clip(edges, start, stop) - start
            places[:1] += (max(start, first * self.run) - first * self.run) * self._inner.place
            whole = self._whole and start % self.run == stop % self.run == 0
            return [Rows(bounds, outputs, places, self._inner.place, whole)]
        return self._columns(start, stop, first, outputs, places)

    def _of_runs(self, numbers: Index) -> tuple[Index, Index]:
        """The first value of each run, and the place that its first element has there."""
        if len(self._outer) == 1:
            axis = self._outer[0]
            return numbers * axis.output, numbers * axis.place
        outputs, places, rest = np.zeros_like(numbers), np.zeros_like(numbers), numbers
        for axis in reversed(self._outer):
            rest, index = np.divmod(rest, axis.length)
            outputs += index * axis.output
            places += index * axis.place
        return outputs, places

    def _columns(self, start: int, stop: int, first: int, outputs: Index, places: Index) -> list[Rows | Columns]:
        tall = self._outer[-1].length if self._outer else 1
        step = self._outer[-1].place if self._outer else 1
        all_kept = all(axis.output for axis in self._outer[:-1])
        parts: list[Rows | Columns] = []
        at = start
        while at < stop:
            number, column = divmod(at, self.run)
            width, rows, blocks = self.run, min((stop - at) // self.run, tall - number % tall), 1
            if column or not rows:  # a part of one run
                width, rows = min(self.run - column, stop - at), 1
            elif rows == tall and tall * self.run <= SMALL_BLOCK:
                blocks = (stop - at) // (tall * self.run)
            here = slice(number - first, number - first + blocks * rows, rows)
            whole = all_kept and rows == tall
            parts.append(Columns(at - start, rows, width, outputs[here] + column, places[here], step, whole))
            at += width * rows * blocks
        return parts


class SegmentWalk:
    """A walk through the elements of an array from segment to segment."""

    def __init__(self, bounds: Index) -> None:
        self._bounds = bounds
        self.count = int(bounds[-1])

    def even(self, size: int) -> int:
        return size

    def cuts(self, size: int) -> Iterator[tuple[int, int]]:
        start = int(self._bounds[0])
        while start < self.count:
            nearest = int(self._bounds[np.searchsorted(self._bounds, start + size, "right") - 1])
            stop = nearest if nearest > start else min(start + size, self.count)
            yield start, stop
            start = stop

    def parts(self, start: int, stop: int) -> list[Rows | Columns]:
        first = max(0, int(np.searchsorted(self._bounds, start, "right")) - 1)
        last = int(np.searchsorted(self._bounds, stop, "left"))
        inside = self._bounds[first : last + 1]
        if inside.size < 2:
            return []
        outputs = np.arange(first, first + inside.size - 1, dtype=np.int64)
        places = np.maximum(start - inside[:-1], 0)
        whole = bool(inside[0] >= start and inside[-1] <= stop)
        return [Rows(np.clip(inside, start, stop) - start, outputs, places, 1, whole)]


def walk_of(grouping: Grouping, shape: Sequence[int], *, reversed_axes: bool = False) -> Walk:
    """The walk through an array of `shape` in C order or, with `reversed_axes`, in Fortran order. Values are numbered
    in the order of reading; a place is an index in C order of the reduced axes."""
    if isinstance(grouping, Segments):
        return SegmentWalk(grouping.bounds(prod(shape)))
    reduced = grouping.reduced(len(shape))
    order = range(len(shape))[::-1] if reversed_axes else range(len(shape))
    outputs = _strides([axis for axis in order if axis not in reduced], shape)
    places = _strides(reduced, shape)
    return AxisWalk([Axis(shape[axis], outputs.get(axis, 0), places.get(axis, 0)) for axis in order])


def _strides(axes: Sequence[int], shape: Sequence[int]) -> dict[int, int]:
    strides, stride = {}, 1
    for axis in reversed(axes):
        strides[axis] = stride
        stride *= shape[axis]
    return strides


def even_runs(count: int, number: int) -> list[tuple[int, int]]:
    """`count` cut into `number` runs that differ by one at most, into fewer where there are not so many; at least one,
    which may be empty."""
    number = max(1, min(number, count))
    return [(count * at // number, count * (at + 1) // number) for at in range(number)]
