"""Arrays that lie in an object as they are in memory: the ranges that have the selected elements are read in order,
several at once. Where ranges hold selected elements alone, each is a section, which the thread that receives it may add
up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.hyperslab import lengths
from warpfold.kernels.formats.npy import Head, open_array
from warpfold.kernels.lowering.complexes import complex_numbers
from warpfold.kernels.places.file import RemoteFile
from warpfold.kernels.places.remote import IN_HAND, REQUEST_BYTES, RemoteObject
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource

MOST_REORDERED_BYTES = 1 << 28
"""The largest array in Fortran order that is read: all of it is in memory before its elements are in order."""

_SKIPPED_BYTES = 1 << 18
"""Bytes between selected elements that are rather read than left out by a request of its own."""


def array_at(file: BinaryIO, head: Head, selected: tuple[slice, ...] = ()) -> Elements:
    """The elements behind `head`, or a part of them: of a file of this machine mapped into memory, of an object of a
    place in order. Raises InvalidInput."""
    if not isinstance(file, RemoteFile):
        return open_array(file, head, selected)
    remote = file.remote
    whole = selected or tuple(slice(0, length, 1) for length in head.shape)
    shape = lengths(whole)
    count = prod(shape)
    if head.fortran_order and len(head.shape) > 1 and head.data_bytes > MOST_REORDERED_BYTES:
        raise InvalidInput(
            f"holds its elements in Fortran order, and its {head.data_bytes:,} bytes are too many to bring them in "
            "order: store it in C order"
        )

    def pieces() -> Iterator[NDArray[Any]]:
        if not count:
            return
        if head.fortran_order and len(head.shape) > 1:
            flat = np.concatenate(list(remote.in_order(_requests(head.offset, head.data_bytes)))).view(head.dtype)
            parts: Iterator[NDArray[Any]] = iter([flat.reshape(head.shape, order="F")[whole]])
        else:
            parts = _parts(remote, head, whole)
        for part in parts:
            yield ArraySource(part).read(0, part.size)

    dense = None if head.fortran_order and len(head.shape) > 1 else _dense(head, whole)

    def sections() -> Iterator[Section]:
        assert dense is not None
        start = 0
        for first, last in dense():
            size = (last - first) // head.dtype.itemsize
            yield Section(partial(section, first, last), last - first, start, size)
            start += size

    def section(first: int, last: int) -> Iterator[NDArray[Any]]:
        part = remote.array(first, last).view(head.dtype)
        yield ArraySource(part).read(0, part.size)

    return SequentialSource(
        dtype_of(head.dtype), pieces, count, count, shape=shape,
        sections=None if dense is None or not count else sections, at_once=IN_HAND,
    )  # fmt: skip


def complex_at(file: BinaryIO, head: Head, parts: "np.dtype[Any]", selected: tuple[slice, ...]) -> SequentialSource:
    """The selected complex numbers behind `head`, whose parts have the dtype `parts`. They are read as an array of real
    and imaginary parts. These have an axis of their own, which is the last axis or, in Fortran order, the first. Raises
    InvalidInput."""
    name = str(head.dtype.newbyteorder("="))
    if not head.fortran_order or len(head.shape) == 1:
        split = replace(head, shape=(*head.shape, 2), dtype=parts, fortran_order=False)
        flat = array_at(file, split, (*selected, slice(0, 2, 1)))
        if isinstance(flat, SequentialSource):
            flat = replace(flat, sections=None)  # both parts of the numbers are of one reading
        return complex_numbers(name, flat, lengths(selected))
    if isinstance(file, RemoteFile):
        raise InvalidInput("holds complex numbers in Fortran order, which are read of files on this machine alone")
    turned = np.moveaxis(open_array(file, replace(head, shape=(2, *head.shape), dtype=parts)).array, 0, -1)
    return complex_numbers(name, ArraySource(turned[selected]), lengths(selected))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the selected rows of an array lie: the first axis whose rows, with all axes behind it, are read at a time.
    A row has `row` bytes; they are `apart` where the bytes between them are not worth reading."""

    head: Head
    selected: tuple[slice, ...]
    axis: int
    row: int
    all_of_rows: bool

    @classmethod
    def of(cls, head: Head, selected: tuple[slice, ...]) -> "_Rows":
        axis = 0
        while True:
            inner, within = head.shape[axis + 1 :], selected[axis + 1 :]
            row = prod(inner) * head.dtype.itemsize
            all_of_rows = all(part == slice(0, length, 1) for part, length in zip(within, inner, strict=True))
            if all_of_rows or row <= _SKIPPED_BYTES:
                return cls(head, selected, axis, row, all_of_rows)
            axis += 1

    @property
    def chosen(self) -> slice:
        return self.selected[self.axis]

    @property
    def apart(self) -> bool:
        return bool((self.chosen.step - 1) * self.row > _SKIPPED_BYTES)

    def starts(self) -> Iterator[int]:
        head, outer_axes = self.head, self.selected[: self.axis]
        for outer in product(*(range(part.start, part.stop, part.step) for part in outer_axes)):
            index = 0
            for at, length in zip(outer, head.shape[: self.axis], strict=True):
                index = index * length + at
            yield head.offset + index * head.shape[self.axis] * self.row

    def dense(self) -> Iterator[tuple[int, int]]:
        """Ranges that hold selected elements alone, and all of them; requests may end within a row."""
        runs = (
            (start + first * self.row, last - first) for start in self.starts() for first, last in _runs(self.chosen)
        )
        return (part for start, rows in runs for part in _requests(start, rows * self.row))


def _dense(head: Head, selected: tuple[slice, ...]) -> Callable[[], Iterator[tuple[int, int]]] | None:
    """What begins to list ranges that hold the selected elements, in C order, and nothing else; None where ranges hold
    others, too."""
    rows = _Rows.of(head, selected)
    return rows.dense if rows.all_of_rows and (rows.apart or rows.chosen.step == 1) else None


def _parts(remote: RemoteObject, head: Head, selected: tuple[slice, ...]) -> Iterator[NDArray[Any]]:
    """The selected elements in C order."""
    if (dense := _dense(head, selected)) is not None:
        yield from (part.view(head.dtype) for part in remote.in_order(dense()))
        return
    rows = _Rows.of(head, selected)
    chosen, apart, row, starts = rows.chosen, rows.apart, rows.row, rows.starts
    inner, within = head.shape[rows.axis + 1 :], selected[rows.axis + 1 :]
    most = 1 if apart else max(1, REQUEST_BYTES // row)
    spans = partial(_spans, chosen, most, apart=apart)
    ranges = ((start + first * row, start + last * row) for start in starts() for first, last in spans())
    bounds = (span for _ in starts() for span in spans())
    for (first, last), read in zip(bounds, remote.in_order(ranges), strict=True):
        box = read.view(head.dtype).reshape(last - first, *inner)
        yield box[(slice(-(first - chosen.start) % chosen.step, None, chosen.step), *within)]


def _runs(axis: slice) -> Iterator[tuple[int, int]]:
    """The rows of `axis` that lie one behind another."""
    if axis.step == 1:
        yield axis.start, axis.stop
    else:
        yield from ((index, index + 1) for index in range(axis.start, axis.stop, axis.step))


def _spans(axis: slice, most: int, *, apart: bool) -> Iterator[tuple[int, int]]:
    """Ranges of at most `most` rows that have the rows of `axis`, which are read one by one where they are `apart`."""
    every = axis.step if apart else most
    yield from ((first, min(first + most, axis.stop)) for first in range(axis.start, axis.stop, every))


def _requests(start: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """The ranges of the requests for `nbytes` from `start` on. They end between elements: a request's length is a
    multiple of every item's."""
    stop = start + nbytes
    yield from ((at, min(at + REQUEST_BYTES, stop)) for at in range(start, stop, REQUEST_BYTES))
