"""Cuts one source, or two of one length, into pieces that threads read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.source import ArraySource, FileSource, Source, forget_read, in_memory
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.kernels.sources.sections import checked
from warpfold.kernels.sources.sequential import (
    Elements,
    Section,
    SequentialSource,
    Tally,
    as_given,
    decoded_ahead_s,
    likely_count,
    side_by_side,
)

ARRAY_PIECE = 1 << 20
"""Elements at a time of an array in memory: its pieces are views, so only the calls cost time."""

LARGE_PIECE = 1 << 22
"""The most elements at a time of a long array. A call holds the interpreter's lock for some microseconds, for which all
other threads wait: with 16 threads, pieces of 2**20 float32 reached 28 GB/s, and pieces of 2**22 reached 72 GB/s."""

_PIECES_A_THREAD = 16
"""Threads that have as many pieces each end at about the same time."""

MADE_PIECE = 1 << 17
"""Elements at a time of a source that makes them or copies few, so that they stay in the second-level cache."""

_READ_BYTES = 1 << 22
"""The most bytes at a time of files that are read and not mapped. A call costs as much as of a long array, and the
memory of a piece is used again: the C library gives larger pieces back to the system each time."""

DECODED_PIECE = 1 << 19
"""Elements at a time of an array that was decoded or received: they are in memory already, and each call costs as much
as adding up thousands of elements."""

P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Piece(Generic[P_co]):
    """Elements start … stop − 1, which `read` gives; several pieces may be read at once."""

    start: int
    stop: int
    read: Callable[[], P_co]

    def parts(self) -> Iterator[tuple[int, int, P_co]]:
        """The elements of the piece, at once or in parts. Each part is the index of its first element, the index behind
        its last element, and its elements."""
        yield self.start, self.stop, self.read()


@dataclass(frozen=True, slots=True)
class _ReadPiece(Piece[P_co]):
    """A piece that is read at its place in `sources`."""

    sources: tuple[Source, ...]

    def parts(self) -> Iterator[tuple[int, int, P_co]]:
        yield self.start, self.stop, self.read()
        for source in self.sources:  # the caller has folded the piece by now
            forget_read(source, self.start, self.stop)


class Pieces(Protocol[P_co]):
    """One source, or two side by side, to be read piece by piece. What most classes of pieces say stands here."""

    @property
    def likely(self) -> int:
        """How many elements there are. For a source that is read in order it is an upper bound."""
        ...

    @property
    def reads(self) -> bool:
        """Whether elements are read or made, and are not in memory."""
        return True

    @property
    def ahead_s(self) -> float | None:
        """The seconds for which the threads of the sources decoded ahead, all at the same time; None where pieces are
        read by position."""
        return None

    def threads(self) -> int:
        """How many threads are worth starting."""
        return usable_cores()

    def begin(self) -> Iterator[Piece[P_co]]:
        """The pieces in order. One thread at a time may ask for the next."""
        ...


@dataclass(frozen=True, slots=True)
class OneSource(Pieces[NDArray[Any]]):
    """A source as it is."""

    source: Source

    @property
    def likely(self) -> int:
        return self.source.count

    @property
    def reads(self) -> bool:
        return reads(self.source)

    def threads(self) -> int:
        return _threads(self.source.count, _size(self.source))

    def begin(self) -> Iterator[Piece[NDArray[Any]]]:
        for start, stop in _cut(self.source.count, _size(self.source)):
            yield _ReadPiece(start, stop, partial(self.source.read, start, stop), (self.source,))


@dataclass(frozen=True, slots=True)
class TwoSources(Pieces[tuple[NDArray[Any], NDArray[Any]]]):
    """Two sources of one length, read side by side."""

    first: Source
    second: Source

    @property
    def likely(self) -> int:
        return self.first.count

    @property
    def reads(self) -> bool:
        return reads(self.first) or reads(self.second)

    def threads(self) -> int:
        return _threads(self.first.count, _size(self.first, self.second))

    def begin(self) -> Iterator[Piece[tuple[NDArray[Any], NDArray[Any]]]]:
        for start, stop in _cut(self.first.count, _size(self.first, self.second)):
            yield _ReadPiece(start, stop, partial(self._read, start, stop), (self.first, self.second))

    def _read(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.first.read(start, stop), self.second.read(start, stop)


@dataclass(frozen=True, slots=True)
class InOrder(Pieces[Any]):
    """One source or two, of which at least one is read in order. The thread that asks for a piece decodes it, while the
    other threads fold the pieces before."""

    sources: tuple[Elements, ...]

    @property
    def likely(self) -> int:
        return max(likely_count(source) for source in self.sources)

    @property
    def ahead_s(self) -> float:
        return decoded_ahead_s(self.sources)

    def begin(self) -> Iterator[Piece[Any]]:
        start = 0
        for part in self._parts():
            stop = start + (part[0] if isinstance(part, tuple) else part).size
            yield Piece(start, stop, lambda part=part: part)  # type: ignore[misc]
            start = stop

    def _parts(self) -> Iterator[Any]:
        if len(self.sources) == 1 and isinstance(self.sources[0], SequentialSource):
            return as_given(self.sources[0], DECODED_PIECE)
        return side_by_side(self.sources, MADE_PIECE)


@dataclass(frozen=True, slots=True)
class InSections(Pieces[NDArray[Any]]):
    """A source whose sections are decoded by several threads at once. Each thread folds the elements that it has
    decoded while they are in its cache."""

    source: SequentialSource

    @property
    def likely(self) -> int:
        return likely_count(self.source)

    def threads(self) -> int:
        return self.source.at_once or usable_cores()

    def begin(self) -> Iterator[Piece[NDArray[Any]]]:
        assert self.source.sections is not None
        for number, section in enumerate(self.source.sections()):
            # Of several errors the one of the first section is raised; numbers of sections sort as their starts do.
            start = number if section.start is None else section.start
            yield _SectionPiece(start, start + (section.count or 1), _unread, section, self.source.tally)


@dataclass(frozen=True, slots=True)
class _SectionPiece(Piece[NDArray[Any]]):
    section: Section
    tally: Tally

    def parts(self) -> Iterator[tuple[int, int, NDArray[Any]]]:
        for start, array in checked(self.section):
            self.tally.add(elements=array.size)
            for first, last in _cut(array.size, DECODED_PIECE):
                yield start + first, start + last, array[first:last]


def _unread() -> NDArray[Any]:
    raise AssertionError("a section is read in parts")


def pieces_of(*sources: Elements, by_index: bool = True) -> Pieces[Any]:
    """One source, or two side by side, in the order in which they are best read; `by_index` if the fold needs the
    indices of elements."""
    match sources:
        case (SequentialSource(sections=sections, count=count) as source,) if sections is not None:
            if count is not None or not by_index:
                return InSections(source)
    by_position = [source for source in sources if not isinstance(source, SequentialSource)]
    if len(by_position) < len(sources):
        return InOrder(sources)
    return OneSource(by_position[0]) if len(by_position) == 1 else TwoSources(*by_position)


def reads(source: Elements) -> bool:
    """Whether elements are read or made, and are not in memory."""
    return not in_memory(source)


def _size(*sources: Source) -> int:
    """Elements a piece."""
    even = sources[0].count // (usable_cores() * _PIECES_A_THREAD)
    if all(isinstance(source, ArraySource) for source in sources):
        return max(ARRAY_PIECE, min(even, LARGE_PIECE))
    if all(isinstance(source, ArraySource | ChainedSource | FileSource) for source in sources):
        return max(MADE_PIECE, min(even, _READ_BYTES // max(source.dtype.itemsize for source in sources)))
    return MADE_PIECE


def _threads(count: int, size: int) -> int:
    return min(usable_cores(), -(-count // size))


def _cut(count: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, count)) for start in range(0, count, size))
