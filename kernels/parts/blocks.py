"""Reductions to very many values, block by block: each block is a part of the source that has all elements of some
neighbouring values. So what a reduction needs in memory is bounded, however many values it has.

A source that comes in order is read once. It makes a single block, unless its elements take less memory than the states
of its values would: then they are gathered first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.memory import available_bytes
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.parts.grouping import SMALL_BLOCK, AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource, GeneratedSource, Source, generator_of, part_of
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered

MOST_OF_BLOCK = 1 << 17
"""Values of a block on a CPU: the exact states of as many take some 140 MB a thread, where they are needed."""

_LEAST_OF_BLOCK = 1 << 12
_VALUE_BYTES = 2 * 136 * 8
"""What the exact states of a value take at most in each thread: those of a variance have two sums."""

_SHARE = 8
"""The states of a block take at most this part of the memory that is available, unless few values take as much."""

MOST_ON_GPU = 1 << 24
"""Values of a block on a GPU, which has more memory, and loses more by small blocks."""

MOST_WITH_STATES = 1 << 20
"""Values of a block on a GPU whose exact states come to the host: they take some 100 bytes each there, and up to 2 KiB
where elements are over all exponents."""


@dataclass(frozen=True, slots=True)
class Block:
    """The elements of some neighbouring values in C order: one source or two, read as arrays of `shape`."""

    sources: tuple[Elements, ...]
    shape: tuple[int, ...]
    grouping: Grouping
    values: int


def most_of_block(*, on_cpu: bool, states: bool) -> int:
    """How many values a block has at most, whose exact states are asked for with `states`."""
    if on_cpu:
        room = available_bytes() // _SHARE // (usable_cores() * _VALUE_BYTES)
        return min(max(room, _LEAST_OF_BLOCK), MOST_OF_BLOCK)
    return MOST_WITH_STATES if states else MOST_ON_GPU


def by_position(source: Elements, values: int, most: int) -> Elements:
    """`source`, by position where it can be: one that comes in order and makes more than `most` values would need the
    states of all of them at a time. If its elements take less, they are gathered. Raises OutOfMemory."""
    if not isinstance(source, SequentialSource) or values <= most or source.count is None:
        return source
    if (
        source.meaning is not None
        or source.nulls is not None
        or source.count * source.dtype.itemsize > (values * _VALUE_BYTES * usable_cores() // 2)
    ):
        return source
    return gathered(source)


def blocks(
    sources: Sequence[Elements],
    shape: tuple[int, ...],
    grouping: Grouping,
    most: int = MOST_OF_BLOCK,
    *,
    strips: bool = True,
) -> Iterator[Block]:
    """The blocks of about `most` values that make up the whole, in the order of the values. With `strips` short columns
    are read strip by strip, which suits a CPU."""
    whole = prod(grouping.result_shape(shape))
    if not prod(shape):  # no part has elements, whatever it is cut into
        yield from _of_nothing(sources, shape, grouping, most)
        return
    columns = None if isinstance(grouping, Segments) else _as_columns(sources, shape, grouping.reduced(len(shape)))
    if columns is not None and strips:
        yield from _of_columns(*columns, most)
        return
    if whole <= most or any(isinstance(source, SequentialSource) for source in sources):
        yield Block(tuple(sources), shape, grouping, whole)
        return
    if isinstance(grouping, Segments):
        yield from _of_segments(sources, shape, grouping, most)
        return
    for part in _parts(shape, grouping.reduced(len(shape)), most):
        lengths = tuple(index.stop - index.start for index in part)
        pieces = tuple(selected(source, shape, part) for source in sources)
        yield Block(pieces, lengths, grouping, prod(grouping.result_shape(lengths)))


def _of_nothing(sources: Sequence[Elements], shape: tuple[int, ...], grouping: Grouping, most: int) -> Iterator[Block]:
    whole = prod(grouping.result_shape(shape))
    if isinstance(grouping, Segments) or whole <= most:
        yield Block(tuple(sources), shape, grouping, whole)
        return
    for part in _parts(shape, grouping.reduced(len(shape)), most):
        lengths = tuple(index.stop - index.start for index in part)
        yield Block(tuple(sources), lengths, grouping, prod(grouping.result_shape(lengths)))


_TALLEST = 512
_FEWEST_COLUMNS = 1024


def _as_columns(
    sources: Sequence[Any], shape: tuple[int, ...], reduced: Sequence[int]
) -> tuple[list[NDArray[Any]], int] | None:
    """The arrays as (matrices, rows, columns), if the values are sums of many short columns, and the width of strips
    of columns that are read one after another: as they lie, no part would have a whole column, and every value would
    need an exact state, which costs far more than a short column. None for all else."""
    first, behind = reduced[0], reduced[-1] + 1
    rows, columns = prod(shape[first:behind]), prod(shape[behind:])
    arrays = [source.array for source in sources if isinstance(source, ArraySource) and source.array.flags.c_contiguous]
    if len(reduced) != behind - first or len(arrays) < len(sources):
        return None
    if not 1 < rows <= _TALLEST or columns < _FEWEST_COLUMNS:
        return None
    return [array.reshape(-1, rows, columns) for array in arrays], SMALL_BLOCK // rows


def _of_columns(arrays: Sequence[NDArray[Any]], width: int, most: int) -> Iterator[Block]:
    """Blocks of strips of `width` columns, the last of which may be narrower."""
    matrices, rows, columns = arrays[0].shape
    step = max(width, most // width * width)
    whole = columns // width * width
    cuts = [*((start, min(start + step, whole), width) for start in range(0, whole, step))]
    if whole < columns:
        cuts.append((whole, columns, columns - whole))
    for matrix in range(matrices):
        for start, stop, strip in cuts:
            views = [array[matrix, :, start:stop].reshape(rows, -1, strip).transpose(1, 0, 2) for array in arrays]
            parts = tuple(PanelSource(view) for view in views)
            yield Block(parts, views[0].shape, AlongAxes((1,)), stop - start)


def _of_segments(sources: Sequence[Any], shape: tuple[int, ...], grouping: Segments, most: int) -> Iterator[Block]:
    count = prod(shape)
    for first in range(0, grouping.result_shape(shape)[0], most):
        if grouping.length is not None:  # all bounds might be a thousand million numbers
            start, stop = first * grouping.length, min((first + most) * grouping.length, count)
            offsets, values = None, -(-(stop - start) // grouping.length)
        else:
            assert grouping.offsets is not None, "segments have offsets or a length"
            cut = grouping.offsets[first : first + most + 1]
            start, stop, values = cut[0], cut[-1], len(cut) - 1
            offsets = tuple(offset - start for offset in cut)
        parts = tuple(part_of(source, start, stop) for source in sources)
        yield Block(parts, (stop - start,), Segments(offsets, grouping.length), values)


def _parts(shape: tuple[int, ...], reduced: Sequence[int], most: int) -> Iterator[tuple[slice, ...]]:
    """The parts of an array, as a slice of each axis: an index of the first axes that are kept, and a range of the next
    one, so that the values of a part are neighbours."""
    kept = [axis for axis in range(len(shape)) if axis not in reduced]
    behind, split = 1, 0
    for place in range(len(kept) - 1, -1, -1):
        if behind * shape[kept[place]] > most:
            split = place
            break
        behind *= shape[kept[place]]
    step = max(1, most // behind)
    outer = [shape[axis] for axis in kept[:split]]
    for index in np.ndindex(*outer):
        for start in range(0, shape[kept[split]], step):
            part = [slice(0, length) for length in shape]
            for axis, at in zip(kept, index, strict=False):
                part[axis] = slice(at, at + 1)
            part[kept[split]] = slice(start, min(start + step, shape[kept[split]]))
            yield tuple(part)


def selected(source: Any, shape: tuple[int, ...], part: tuple[slice, ...]) -> Source:
    """A part of a source that is read by position."""
    if isinstance(source, RunsSource) and source.lengths == shape:  # a part of a part
        both = zip(source.part, part, strict=True)
        inner = tuple(slice(whole.start + cut.start, whole.start + cut.stop) for whole, cut in both)
        return selected(source.source, source.shape, inner)
    cut = next((axis for axis, index in enumerate(part) if index.stop - index.start != 1), len(shape) - 1)
    if all(index == slice(0, length) for index, length in zip(part[cut + 1 :], shape[cut + 1 :], strict=True)):
        start = int(np.ravel_multi_index([index.start for index in part], shape))
        if not isinstance(source, ArraySource) or source.array.flags.c_contiguous:
            return part_of(source, start, start + prod(index.stop - index.start for index in part))
    if not isinstance(source, ArraySource):
        return RunsSource(source, shape, part)
    array = source.array if source.array.shape == shape else source.array.reshape(shape)
    view = array[part]
    if view.flags.c_contiguous or view.flags.f_contiguous:
        return ArraySource(view)
    return PanelSource(view)


@dataclass(frozen=True)
class RunsSource:
    """Elements of a `part` of a source of `shape` that are several runs of neighbours, in C order."""

    source: Source
    shape: tuple[int, ...]
    part: tuple[slice, ...]

    @property
    def dtype(self) -> DType:
        return self.source.dtype

    @property
    def count(self) -> int:
        return prod(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(index.stop - index.start for index in self.part)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        runs = [self.source.read(first, last) for first, last in self._runs(start, stop)]
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        at, itemsize = 0, self.dtype.itemsize
        for first, last in self._runs(start, start + out.size // itemsize):
            self.source.read_into(first, out[at : at + (last - first) * itemsize])
            at += (last - first) * itemsize

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where elements start … stop − 1 lie in the source, run after run."""
        lengths = self.lengths
        axis = len(lengths) - 1
        while axis and lengths[axis] == self.shape[axis]:
            axis -= 1
        run = prod(lengths[axis:])
        while start < stop:
            number, within = divmod(start, run)
            index = [*np.unravel_index(number, lengths[:axis]), *(0 for _ in lengths[axis:])]
            first = int(
                np.ravel_multi_index([at + cut.start for at, cut in zip(index, self.part, strict=True)], self.shape)
            )
            taken = min(stop - start, run - within)
            yield first + within, first + within + taken
            start += taken


@dataclass(frozen=True, slots=True)
class Runs:
    """Which elements of a source a part of it has: runs of `width` neighbours, of which the first begins at element
    `first`, and two that follow each other begin `pitch` elements apart."""

    first: int
    width: int
    pitch: int


_ENDLESS = 1 << 62
ALL = Runs(0, _ENDLESS, _ENDLESS)
"""All elements of a source."""


def made_runs(source: object) -> tuple[GeneratedSource, Runs] | None:
    """The generator of the elements of `source`, and which of them it has; None where they are not made, or are no runs
    of one length that lie equally far apart."""
    if (made := generator_of(source)) is not None:
        return made[0], replace(ALL, first=made[1])
    if not isinstance(source, RunsSource) or (made := generator_of(source.source)) is None:
        return None
    strides = [prod(source.shape[axis + 1 :]) for axis in range(len(source.shape))]
    first = made[1] + sum(index.start * stride for index, stride in zip(source.part, strides, strict=True))
    levels: list[tuple[int, int]] = []  # lengths and strides of axes, of which neighbours that lie side by side are one
    for length, stride in zip(source.lengths, strides, strict=True):
        if length == 1:
            continue
        if levels and levels[-1][1] == length * stride:
            levels[-1] = (levels[-1][0] * length, stride)
        else:
            levels.append((length, stride))
    match levels:
        case [] | [(_, 1)]:
            runs = replace(ALL, first=first)
        case [(_, pitch)]:
            runs = Runs(first, 1, pitch)
        case [(_, pitch), (width, 1)]:
            runs = Runs(first, width, pitch)
        case _:
            return None
    return made[0], runs


@dataclass(frozen=True)
class PanelSource:
    """Elements of a part of an array that is not in one piece, in C order. They are copied when they are read."""

    array: NDArray[Any]

    @property
    def dtype(self) -> DType:
        return dtype_of(self.array.dtype)

    @property
    def count(self) -> int:
        return int(self.array.size)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        row = prod(self.array.shape[1:])
        first, last = start // row, -(-stop // row)
        rows = np.ascontiguousarray(self.array[first:last])
        return ArraySource(rows).read(start - first * row, stop - first * row)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        out[:] = np.ascontiguousarray(self.read(start, start + out.size // self.dtype.itemsize)).view(np.uint8)
