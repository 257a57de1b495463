"""Sources whose elements come in order, and what reads any source in order: files that must be decoded know neither
where an element lies nor, often, how many there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.memory import require
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.dialect import Dialect
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Meaning
from warpfold.kernels.places.place import ObjectMetadata
from warpfold.kernels.source import ArraySource, HeldArrays, Source
from warpfold.kernels.sources.absent_chunks import AbsentChunks, notice_of

T = TypeVar("T")


class Remote(Protocol):
    """The objects that a source reads beyond this machine."""

    def metadata(self) -> ObjectMetadata:
        """The objects that were read so far."""
        ...


@dataclass(frozen=True, slots=True)
class FileCount:
    """One of several files that are read as one array: its name, how many elements or rows were read of it, and how
    many nulls were left out, None where nobody counts them file by file."""

    name: str
    elements: int
    nulls: int | None = None


@dataclass(slots=True)
class Tally:
    """How many elements a sequential source has given so far, how many nulls it has left out, which objects of places
    it reads, the chunks that its files lack, and for how long threads of its own decoded ahead: the seconds of all of
    them, divided by their number. Several threads may add to it. Integers beyond int64 are refused, unless the reader
    sets `beyond`, which then collects the integers that the elements leave out. `dialects` say how the texts are
    written that the elements are read from. `files` are those that were read to their end, where
    there are several."""

    elements: int = 0
    nulls: int = 0
    objects: list[Remote] = field(default_factory=list)
    absences: list[AbsentChunks] = field(default_factory=list)
    ahead_s: float = 0.0
    beyond: Beyond | None = None
    dialects: list[Dialect] = field(default_factory=list)
    files: Sequence[FileCount] = ()
    lock: Lock = field(default_factory=Lock)

    def add(self, *, elements: int = 0, nulls: int = 0, ahead_s: float = 0.0) -> None:
        with self.lock:
            self.elements += elements
            self.nulls += nulls
            self.ahead_s += ahead_s


@dataclass(frozen=True, slots=True)
class Section:
    """A run of a source's elements that can be read apart from all others, by any thread: a row group, a chunk, a block
    of text. `make` begins to read it and gives arrays, as that of a source does.

    `nbytes` is about what its elements take in memory. `start` is the index of its first element and `count` how many
    there are; both are None where only reading tells.
    """

    make: Callable[[], Iterator[NDArray[Any]]]
    nbytes: int
    start: int | None = None
    count: int | None = None


@dataclass(frozen=True)
class SequentialSource:
    """Elements that come in order and once, such as those of a compressed file.

    `make` begins to read; it gives arrays of shape (n,) with any n, native byte order, whose True is the byte 1.
    `count` is None where only reading tells how many elements there are; `likely` says how many there may be, for the
    progress alone, and `shape` how they are arranged, None where they are one after another. `sections` begins to list
    the same elements in sections, in order, for whoever need not have the elements in order; it is None where there are
    none. Where `count` is None, so are the sections' starts and counts. `at_once` is how many threads read sections at
    a time, None for as many as there are cores: a thread that waits for a server needs no core. A source is read by
    `make` or by its sections, once. Elements with a `meaning` are integers that stand for other values, such as
    decimals. Where `nulls` is there, nulls stand in their places as zeros, and `nulls` begins to read the same places
    as truth values: whether each is a null (`kernels.lowering.nulls`).
    """

    dtype: DType
    make: Callable[[], Iterator[NDArray[Any]]]
    count: int | None = None
    likely: int = 0
    tally: Tally = field(default_factory=Tally)
    shape: tuple[int, ...] | None = None
    sections: Callable[[], Iterator[Section]] | None = None
    meaning: Meaning | None = None
    nulls: Callable[[], "SequentialSource"] | None = None
    at_once: int | None = None

    def within(self, context: Callable[[], AbstractContextManager[object]]) -> Self:
        """The same elements. Each run is read within a context of its own, which may give its faults other words."""
        begin, nulls = self.sections, self.nulls

        def around(make: Callable[[], Iterator[NDArray[Any]]]) -> Iterator[NDArray[Any]]:
            with context():
                yield from make()

        def sections() -> Iterator[Section]:
            assert begin is not None
            with context():
                for section in begin():
                    yield replace(section, make=partial(around, section.make))

        return replace(
            self,
            make=partial(around, self.make),
            sections=None if begin is None else sections,
            meaning=None if self.meaning is None else self.meaning.within(context),
            nulls=None if nulls is None else lambda: nulls().within(context),
        )


Elements = Source | SequentialSource
"""A source of a reduction, which is read by position or in order."""

_PIECE = 1 << 17


def dialects_of(sources: Iterable[Elements]) -> tuple[Dialect, ...]:
    """How the texts are written that sources are read from, each way once."""
    tallies = (source.tally for source in sources if isinstance(source, SequentialSource))
    return tuple(dict.fromkeys(dialect for tally in tallies for dialect in tally.dialects))


def likely_count(source: Elements) -> int:
    """How many elements there are, or may be, for the progress of a reduction."""
    return source.likely if source.count is None and isinstance(source, SequentialSource) else source.count or 0


def in_order(source: Elements, size: int) -> Iterator[NDArray[Any]]:
    """All elements of `source` in order, in arrays of `size` elements; the last has what is left. Raises InvalidInput
    where the source gives other than as many elements as it promised."""
    return (held.whole() for held in held_in_order(source, size))


def held_in_order(source: Elements, size: int) -> Iterator[HeldArrays]:
    """The same elements, in the arrays that the source gives."""
    if not isinstance(source, SequentialSource):
        for at in range(0, source.count, size):
            yield HeldArrays(source.dtype, [source.read(at, min(at + size, source.count))])
        return
    held: list[NDArray[Any]] = []
    length = 0
    for piece in source.make():
        source.tally.add(elements=piece.size)
        at = 0
        while at < piece.size:
            part = piece[at : at + size - length]
            at += part.size
            length += part.size
            held.append(part)
            if length == size:
                yield HeldArrays(source.dtype, held)
                held, length = [], 0
    _check_count(source)
    if held:
        yield HeldArrays(source.dtype, held)


def as_given(source: SequentialSource, most: int) -> Iterator[NDArray[Any]]:
    """All elements in order, in the arrays that the source gives, none of them copied; long ones in parts of `most`
    elements. Raises as `in_order`."""
    for piece in source.make():
        source.tally.add(elements=piece.size)
        yield from (piece[at : at + most] for at in range(0, piece.size, most))
    _check_count(source)


def _check_count(source: SequentialSource) -> None:
    if source.count is not None and source.tally.elements != source.count:
        raise InvalidInput(f"{source.count:,} elements were announced, but {source.tally.elements:,} were read")


def shape_of(source: Elements) -> tuple[int, ...] | None:
    """The shape of the array that the elements are, in C order; None where only reading tells how many there are."""
    if isinstance(source, ArraySource):
        return source.array.shape
    if isinstance(source, SequentialSource) and source.shape is not None:
        return source.shape
    return None if source.count is None else (source.count,)


def counted(source: Elements) -> int:
    """How many elements there are; of a source that comes in order, how many have come so far."""
    return source.tally.elements if isinstance(source, SequentialSource) else source.count


def absences_of(sources: Sequence[Elements]) -> Sequence[AbsentChunks]:
    """The chunks that the files of the sources lack, as far as these were read."""
    return [each for source in sources if isinstance(source, SequentialSource) for each in source.tally.absences]


def noticed(sources: Sequence[Elements]) -> str | None:
    """What the result has to say about how the elements of the sources were read; None of nothing."""
    return notice_of(absences_of(sources))


def decoded_ahead_s(sources: Sequence[Elements]) -> float:
    """The seconds for which threads of the sources decoded ahead."""
    return sum(source.tally.ahead_s for source in sources if isinstance(source, SequentialSource))


def side_by_side(sources: Sequence[Elements], size: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """The elements of every source in order, in arrays of one length a step. Raises InvalidInput naming "other" where
    one source ends before another."""
    return (tuple(held.whole() for held in parts) for parts in held_side_by_side(sources, size))


def held_side_by_side(sources: Sequence[Elements], size: int) -> Iterator[tuple[HeldArrays, ...]]:
    """The same elements, in the arrays that the sources give."""
    readers = [held_in_order(source, size) for source in sources]
    done = 0
    while True:
        arrays = tuple(part for part in (next(reader, None) for reader in readers) if part is not None)
        lengths = [array.count for array in arrays]
        if len(arrays) < len(sources) or len(set(lengths)) > 1:
            if not arrays:
                return
            ended = done + (min(lengths) if len(arrays) == len(sources) else 0)
            raise InvalidInput(
                f"both sources need one length: one of them has {ended:,} elements, and the other has more", "other"
            )
        yield arrays
        done += lengths[0]


def gathered(source: Elements) -> Source:
    """The elements by position: of a source that comes in order, all of them in memory. Raises OutOfMemory where they
    do not fit."""
    if not isinstance(source, SequentialSource):
        return source
    parts = []
    for part in in_order(source, _PIECE):
        # The parts, their copy in one array, and the next part.
        require((source.tally.elements + 2 * _PIECE) * source.dtype.itemsize, "the whole of a source that is decoded")
        parts.append(part)
    return ArraySource(np.concatenate(parts) if parts else np.empty(0, source.dtype.numpy))


def shaped(source: Elements, known: tuple[int, ...] | None) -> tuple[Elements, tuple[int, ...]]:
    """The source and the shape of its elements, which is `known` or the source's own. All elements are read first where
    their number is not known otherwise."""
    shape = known or shape_of(source)
    if shape is not None:
        return source, shape
    if isinstance(source, SequentialSource) and source.meaning is not None:
        count = _count_of(source)
        return replace(source, count=count, shape=(count,), sections=None), (count,)
    whole = gathered(source)
    if isinstance(source, SequentialSource) and source.nulls is not None:  # which are told beside its elements
        kept, source.tally.elements = whole.read(0, whole.count), 0  # they are counted once
        return replace(source, make=lambda: iter([kept]), count=kept.size, shape=kept.shape, sections=None), kept.shape
    return whole, (whole.count,)


def _count_of(source: SequentialSource) -> int:
    """How many elements there are, found by reading all of them; they keep their meaning, and may be read again."""
    tally = source.tally
    nulls, beyond, tally.beyond = tally.nulls, tally.beyond, Beyond(word=0)
    count = sum(piece.size for piece in source.make())
    tally.nulls, tally.beyond = nulls, beyond
    return count


@contextmanager
def ahead(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """The same items, each made by a thread while the one before is in use. The thread has ended when the block is
    left."""
    with ThreadPoolExecutor(1, "decode") as thread:

        def begun() -> Iterator[T]:
            coming = thread.submit(next, items, None)
            while (item := coming.result()) is not None:
                coming = thread.submit(next, items, None)
                yield item

        yield begun()
