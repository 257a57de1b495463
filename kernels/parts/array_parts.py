"""Parts of an array that is reduced to many values, along axes or by segments: which elements each part has, of which
values they are, and whether these are all elements of these values.

A part is in one piece where that can be had, because sources are read by position.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.parts.blocks import selected
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Index, Segments, even_runs
from warpfold.kernels.source import ArraySource, part_of
from warpfold.kernels.sources.sequential import Elements


@dataclass(frozen=True, slots=True)
class Box:
    """A range on each of some axes: `lengths` from `origin` on, of axes of the lengths `whole`."""

    origin: tuple[int, ...]
    lengths: tuple[int, ...]
    whole: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many there are in the whole."""
        return prod(self.whole)

    def numbers(self) -> Index:
        """The indices of the elements in the box, in C order of the whole array."""
        if not self.whole:
            return np.zeros(1, np.int64)
        ranges = [np.arange(start, start + length) for start, length in zip(self.origin, self.lengths, strict=True)]
        return np.asarray(np.ravel_multi_index(np.ix_(*ranges), self.whole), np.int64).reshape(-1)

    def placed(self, places: Index) -> Index:
        """Places in the box as places in the whole."""
        if self.lengths == self.whole or not self.whole:
            return places
        indices = np.unravel_index(places, self.lengths)
        moved = tuple(index + start for index, start in zip(indices, self.origin, strict=True))
        return np.asarray(np.ravel_multi_index(moved, self.whole), np.int64)


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """A part of an array, read as an array of `shape` with a grouping of its own: elements start … stop − 1 in C order,
    None where it is not in one piece; `panel` is the range that it has on each axis, None of segments.

    `values` and `places` are None where it has all elements of its values. Otherwise `values` says which of the rows
    that are merged are its values, and `places` where its elements stand among those of a value: by segments, among
    those of its first value.
    """

    shape: tuple[int, ...]
    grouping: Grouping
    start: int | None
    stop: int | None
    panel: Box | None = None
    values: Box | None = None
    places: Box | None = None

    @property
    def whole(self) -> bool:
        return self.values is None

    def taken(self, source: Any) -> Elements:
        """The part of `source`, which has all elements."""
        in_order = not isinstance(source, ArraySource) or source.array.flags.c_contiguous
        if self.start is not None and self.stop is not None and (in_order or self.panel is None):
            return part_of(source, self.start, self.stop)
        assert self.panel is not None, "a part that is not in one piece is a panel"
        ranges = zip(self.panel.origin, self.panel.lengths, strict=True)
        return selected(source, self.panel.whole, tuple(slice(start, start + length) for start, length in ranges))


_STATE_BYTES = 64
"""About what the state of a value takes."""


def cut_array(
    shape: tuple[int, ...], grouping: Grouping, number: int, itemsize: int, *, in_memory: bool
) -> Iterator[ArrayPart]:
    """About `number` parts that make up an array of `shape`. With `in_memory` a part may be a panel that is not in one
    piece."""
    count = prod(shape)
    if isinstance(grouping, Segments):
        yield from _of_segments(count, grouping, number)
        return
    if not count or number == 1:
        yield ArrayPart(shape, grouping, 0, count)
        return
    reduced = grouping.reduced(len(shape))
    kept = [at for at in range(len(shape)) if at not in reduced]
    axis = _axis_of(shape, number)
    outer = shape[:axis]
    if any(at <= axis and shape[at] > 1 for at in reduced):
        # Values that parts share come as states, which may not be more bytes than the elements.
        fewer = count * itemsize // max(1, 2 * prod(shape[at] for at in kept if at >= axis) * _STATE_BYTES)
        if fewer < number and in_memory and kept:
            yield from _of_panels(shape, grouping, kept, reduced, number)
            return
        if fewer < number:
            number = max(1, fewer)
            axis = _axis_of(shape, number)
            outer = shape[:axis]
    for index in np.ndindex(*outer):
        for start, stop in even_runs(shape[axis], -(-number // prod(outer))):
            front = (*index, start) if outer else (*(0 for _ in shape[:axis]), start)
            origin = (*front, *(0 for _ in shape[axis + 1 :]))
            lengths = (*((1,) * axis if outer else shape[:axis]), stop - start, *shape[axis + 1 :])
            yield _box(shape, grouping, Box(origin, lengths, shape), kept, reduced)


def _of_panels(
    shape: tuple[int, ...], grouping: AlongAxes, kept: Sequence[int], reduced: Sequence[int], number: int
) -> Iterator[ArrayPart]:
    """Panels that have all elements of their values, in the order of the values: an index of the first axes that are
    kept, and a range of the next one."""
    lengths = tuple(shape[at] for at in kept)
    split = _axis_of(lengths, number)
    for index in np.ndindex(*lengths[:split]):
        for start, stop in even_runs(lengths[split], -(-number // prod(lengths[:split]))):
            origin, ends = [0] * len(shape), list(shape)
            for at, first in zip(kept[: split + 1], (*index, start), strict=True):
                origin[at], ends[at] = first, first + 1
            ends[kept[split]] = stop
            panel = tuple(end - first for first, end in zip(origin, ends, strict=True))
            yield _box(shape, grouping, Box(tuple(origin), panel, shape), kept, reduced)


def _box(
    shape: tuple[int, ...], grouping: AlongAxes, panel: Box, kept: Sequence[int], reduced: Sequence[int]
) -> ArrayPart:
    cut = next((at for at, length in enumerate(panel.lengths) if length != 1), len(shape) - 1)
    first = stop = None
    if panel.lengths[cut + 1 :] == shape[cut + 1 :]:
        first = int(np.ravel_multi_index(panel.origin, shape))
        stop = first + prod(panel.lengths)
    part = ArrayPart(panel.lengths, grouping, first, stop, panel)
    if all(panel.lengths[at] == shape[at] for at in reduced):
        return part
    values, places = (
        Box(*(tuple(each[at] for at in axes) for each in (panel.origin, panel.lengths, shape)))
        for axes in (kept, reduced)
    )
    return replace(part, values=values, places=places)


def _axis_of(shape: tuple[int, ...], number: int) -> int:
    """The first axis along which `number` parts in one piece can be cut."""
    return next((at for at in range(len(shape)) if prod(shape[: at + 1]) >= number), len(shape) - 1)


def _of_segments(count: int, grouping: Segments, number: int) -> Iterator[ArrayPart]:
    """Parts that are cut between segments, or within a segment that is longer than a part. Values that parts share are
    numbered through all parts, in their order."""
    segments = _SegmentBounds(count, grouping)
    cuts = segments.cuts(number)
    if len(cuts) < 3:
        yield ArrayPart((count,), grouping, 0, count)
        return
    shared = 0  # rows that the parts before have
    for at, (start, stop) in enumerate(pairwise(cuts)):
        begins_within, ends_within = segments.is_within(start), segments.is_within(stop)
        first = segments.at(start) if at else 0
        last = segments.number if stop == cuts[-1] else segments.at(stop) + ends_within
        whole = not begins_within and not ends_within
        if whole and grouping.length is not None:
            yield ArrayPart((stop - start,), Segments(length=grouping.length), start, stop)
            continue
        bounds = [min(max(segments.bound(number), start), stop) - start for number in range(first, last + 1)]
        part = ArrayPart((stop - start,), Segments(tuple(bounds)), start, stop)
        if not whole:
            row = shared - begins_within
            skipped = start - segments.bound(first)
            part = replace(
                part, values=Box((row,), (last - first,), (row + last - first,)), places=Box((skipped,), (), ())
            )
            shared = row + last - first
        yield part


class _SegmentBounds:
    """Where segments begin, and where they may be cut."""

    def __init__(self, count: int, grouping: Segments) -> None:
        self._count, self._length = count, grouping.length
        self._offsets = None if grouping.offsets is None else np.array(grouping.offsets, np.int64)
        self.number = -(-count // grouping.length) if grouping.length else len(grouping.offsets or ()) - 1

    def bound(self, number: int) -> int:
        """Where a segment begins; the end of the last one behind it."""
        if self._offsets is not None:
            return int(self._offsets[number])
        return min(number * (self._length or 1), self._count)

    def at(self, place: int) -> int:
        """The segment that has the element at `place`."""
        if self._offsets is not None:
            return int(np.searchsorted(self._offsets, place, "right")) - 1
        return place // (self._length or 1)

    def is_within(self, place: int) -> bool:
        """Whether a cut there divides a segment."""
        return place != self.bound(self.number) and self.bound(self.at(place)) != place

    def cuts(self, number: int) -> list[int]:
        """Where to cut for about `number` parts."""
        start, end = self.bound(0), self.bound(self.number)
        cuts = [start]
        for part in range(1, number):
            wanted = start + (end - start) * part // number
            nearest = self.bound(self.at(wanted))
            wanted = nearest if nearest > cuts[-1] else wanted
            if cuts[-1] < wanted < end:
                cuts.append(wanted)
        return [*cuts, end]
