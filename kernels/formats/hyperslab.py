"""Hyperslabs: the part of an array that `start:stop:step` of each axis selects, and blocks of it that fit in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.errors import InvalidInput

MOST_ELEMENTS = 1 << 56
"""The most elements of a file: the bytes of as many, and of another source beside them, are counted in 63 bits."""

MOST_CHUNKS = 1 << 24
"""The most chunks along an axis."""


@dataclass(frozen=True, slots=True)
class Range:
    """Indices start, start + step, … below `stop` of an axis; a negative start or stop counts from the axis's end."""

    start: int = 0
    stop: int | None = None
    step: int = 1


def hyperslab(ranges: Sequence[Range], shape: Sequence[int]) -> tuple[slice, ...]:
    """The part of an array of `shape` that `ranges` select: a slice for each axis with 0 ≤ start ≤ stop. Axes without a
    range are whole. Raises InvalidInput naming "select" where an index lies outside of its axis, where Python would
    leave such indices out without an error, and where more elements are selected than any file can have.
    """
    if len(ranges) > len(shape):
        raise InvalidInput(f"has {len(shape)} axes, and select names {len(ranges)}", "select")
    named = (*ranges, *(Range() for _ in shape[len(ranges) :]))
    selected = tuple(
        _slice(axis, chosen, length) for axis, (chosen, length) in enumerate(zip(named, shape, strict=True))
    )
    check_elements(prod(lengths(selected)), "select" if ranges else None)
    return selected


def check_elements(count: int, field: str | None = None) -> None:
    """Raise InvalidInput where a file claims so many elements that their bytes cannot be counted."""
    if not 0 <= count <= MOST_ELEMENTS:
        raise InvalidInput(f"claims {count:,} elements, and at most {MOST_ELEMENTS:,} are read", field)


def _slice(axis: int, chosen: Range, length: int) -> slice:
    start = chosen.start + length if chosen.start < 0 else chosen.start
    stop = length if chosen.stop is None else chosen.stop + length if chosen.stop < 0 else chosen.stop
    for wanted, index in ((chosen.start, start), (chosen.stop, stop)):
        if not 0 <= index <= length:
            raise InvalidInput(f"has {length:,} indices on axis {axis}, and select names {wanted}", "select")
    return slice(start, max(start, stop), chosen.step)


def lengths(selected: Sequence[slice]) -> tuple[int, ...]:
    """The shape of the selected elements."""
    return tuple(len(range(axis.start, axis.stop, axis.step)) for axis in selected)


def chunks_of(selected: Sequence[slice], chunk: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
    """For each axis, the indices of the chunks that have selected elements. Raises InvalidInput where they are too
    many."""
    return tuple(_chunks(axis, length) for axis, length in zip(selected, chunk, strict=True))


def _chunks(axis: slice, length: int) -> NDArray[np.int64]:
    indices = range(axis.start, axis.stop, axis.step)
    count = len(indices) if axis.step > length else len(indices) and (indices[-1] // length - axis.start // length + 1)
    if count > MOST_CHUNKS:
        raise InvalidInput(f"is stored in {count:,} chunks along an axis, and at most {MOST_CHUNKS:,} are read")
    if axis.step > length:  # each index is in a chunk of its own
        return np.arange(axis.start, axis.stop, axis.step, dtype=np.int64) // length
    return np.arange(axis.start // length, axis.start // length + count, dtype=np.int64)


def blocks(selected: Sequence[slice], chunk: Sequence[int], most: int) -> Iterator[tuple[slice, ...]]:
    """Hyperslabs of at most `most` elements that make up `selected`, in C order of their elements.

    The first axes are walked index by index, the next one in ranges that end where chunks of length `chunk` end if that
    is possible, and the last axes are whole.
    """
    shape = lengths(selected)
    if 0 in shape:
        return
    axis = len(shape) - 1
    while axis > 0 and prod(shape[axis:]) <= most:
        axis -= 1
    rows = max(1, most // prod(shape[axis + 1 :]))
    whole = tuple(selected[axis + 1 :])
    for outer in _indices(selected[:axis]):
        for inner in _runs(selected[axis], rows, chunk[axis]):
            yield (*outer, inner, *whole)


def _indices(axes: Sequence[slice]) -> Iterator[tuple[slice, ...]]:
    if not axes:
        yield ()
        return
    for index in range(axes[0].start, axes[0].stop, axes[0].step):
        for rest in _indices(axes[1:]):
            yield (slice(index, index + 1, 1), *rest)


def _runs(axis: slice, rows: int, chunk: int) -> Iterator[slice]:
    """Parts of `axis` of at most `rows` indices, which begin a chunk where they can."""
    span = rows * axis.step
    start = axis.start
    while start < axis.stop:
        stop = start + span
        aligned = stop // chunk * chunk
        if aligned > start:
            stop = aligned
        yield slice(start, min(stop, axis.stop), axis.step)
        start += -(-(stop - start) // axis.step) * axis.step
