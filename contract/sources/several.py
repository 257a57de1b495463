"""The elements of several files, of which some are read in order: one file after another, or several at a time, where
all of them have sections that threads decode."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.nulls import keeps_nulls, truths_of
from warpfold.kernels.lowering.reducing import meaning_of
from warpfold.kernels.source import Source, checksums_of, unchanged
from warpfold.kernels.sources.checksums import verify
from warpfold.kernels.sources.sequential import (
    Elements,
    FileCount,
    Section,
    SequentialSource,
    Tally,
    in_order,
    likely_count,
)

Stamp = tuple[Any, ...]
Look = Callable[[], tuple[Elements, Stamp]]
"""Opens a file; gives its elements, and what tells the file from another of its name."""

_PIECE = 1 << 17


class SeenFile:
    """One of the files, as it was when it was looked at first. One of a few stays open; it is opened again when it is
    read, if there are many or if it has changed."""

    def __init__(self, label: str, called: str, look: Look, field: str, *, keep: bool) -> None:
        """`label` is the name of the file in results, `called` that in errors, which name the `field` of a request.
        With `keep` the file stays open, if it is read by position. Raises InvalidInput."""
        source, self._stamp = look()
        self.label, self.called, self._look, self._field = label, called, look, field
        in_sections = isinstance(source, SequentialSource) and source.sections is not None
        self.dtype: DType = source.dtype
        self.count, self.likely = source.count, likely_count(source)
        self.by_position, self.in_sections = not isinstance(source, SequentialSource), in_sections
        self.at_once = source.at_once if isinstance(source, SequentialSource) else None
        self.keeps_nulls, self.meaning = keeps_nulls(source), meaning_of(source)
        self._kept: Source | None = None
        if keep and not isinstance(source, SequentialSource):
            self._kept = source

    @property
    def holds(self) -> str:
        """The elements in words."""
        return self.dtype.name if self.meaning is None else self.meaning.name

    def opened(self) -> Any:
        """The elements, by position or in order as they were. Raises InvalidInput where the file is another now."""
        if self._kept is not None and unchanged(self._kept):
            return self._kept
        source, stamp = self._look()
        if stamp != self._stamp:
            raise InvalidInput(f"{self.called} changed while the job ran", self._field)
        return source


def one_source(files: Sequence[SeenFile]) -> SequentialSource:
    """The elements of all files, which hold the same type."""
    first, several = files[0], _Several(files)
    nulls = partial(_nulls_of, files) if any(file.keeps_nulls for file in files) else None
    at_once = [file.at_once for file in files if file.at_once is not None]
    return SequentialSource(
        first.dtype,
        several.pieces,
        several.count,
        several.likely,
        several.tally,
        sections=several.sections if all(file.in_sections for file in files) else None,
        meaning=first.meaning,
        nulls=nulls,
        at_once=max(at_once, default=None),
    )


def _nulls_of(files: Sequence[SeenFile]) -> SequentialSource:
    """Whether each element of all files is a null."""
    several = _Several(files, truths=True)
    return SequentialSource(DTYPES["bool"], several.pieces, several.count, several.likely, several.tally)


class _Several:
    """The readings of several files, with the tally of all; with `truths` whether each element is a null."""

    def __init__(self, files: Sequence[SeenFile], *, truths: bool = False) -> None:
        self._files, self._truths = files, truths
        self._counted: set[int] = set()  # elements may be read more than once
        self.tally = Tally()
        counts = [file.count for file in files]
        self.count = None if None in counts else sum(count for count in counts if count is not None)
        self.likely = sum(file.likely for file in files)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """All elements, file after file."""
        counts, tally = list[FileCount](), self.tally
        for number, file in enumerate(self._files):
            opened, source = self._opened(number)
            nulls, elements = tally.nulls, 0
            for piece in in_order(source, _PIECE):
                if isinstance(source, SequentialSource):
                    tally.nulls = nulls + source.tally.nulls
                elements += piece.size
                yield piece
            verify(checksums_of(opened))
            if isinstance(source, SequentialSource):  # nulls may lie behind its last element
                tally.nulls = nulls + source.tally.nulls
            counts.append(FileCount(file.label, elements, tally.nulls - nulls))
        tally.files = counts

    def sections(self) -> Iterator[Section]:
        """The sections of all files, each of which is opened when its first section is asked for."""
        reading, start = _Reading(self.tally, len(self._files)), 0
        for number, file in enumerate(self._files):
            _, source = self._opened(number)
            under_way = _UnderWay(number, file.label, source, reading)
            for section in source.sections():
                under_way.begun += 1
                make = partial(under_way.elements, section.make)
                if self.count is None or section.start is None:
                    yield replace(section, make=make, start=None, count=None)
                else:
                    yield replace(section, make=make, start=start + section.start)
            under_way.listed()
            start += file.count or 0

    def _opened(self, number: int) -> tuple[Any, Any]:
        """The elements of a file, which close it when nobody uses them any more, and what is read of them."""
        file, tally = self._files[number], self.tally
        opened = file.opened()
        source = truths_of(opened) if self._truths else opened
        if isinstance(source, SequentialSource):
            source.tally.beyond = tally.beyond
            if number not in self._counted:
                tally.dialects += source.tally.dialects
                tally.objects += source.tally.objects
                tally.absences += source.tally.absences
                for absent in source.tally.absences:
                    absent.file = file.label
            self._counted.add(number)
        return opened, source


@dataclass(slots=True)
class _Reading:
    """One reading of all `number` files by threads: what those had that were read to their end."""

    tally: Tally
    number: int
    done: dict[int, FileCount] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def ended(self, file: int, count: FileCount) -> None:
        self.done[file] = count
        self.tally.add(nulls=count.nulls or 0)
        if len(self.done) == self.number:
            self.tally.files = [self.done[at] for at in range(self.number)]


@dataclass(slots=True)
class _UnderWay:
    """A file whose sections threads read: how many of them were begun and have ended, and their elements."""

    number: int
    label: str
    source: SequentialSource
    reading: _Reading
    begun: int = 0
    ended: int = 0
    count: int = 0
    whole: bool = False

    def elements(self, make: Callable[[], Iterator[NDArray[Any]]]) -> Iterator[NDArray[Any]]:
        count = 0
        for array in make():
            count += array.size
            yield array
        with self.reading.lock:
            self.ended, self.count = self.ended + 1, self.count + count
            self._end()

    def listed(self) -> None:
        """All sections are known."""
        with self.reading.lock:
            self.whole = True
            self._end()

    def _end(self) -> None:
        if self.whole and self.ended == self.begun:
            self.reading.ended(self.number, FileCount(self.label, self.count, self.source.tally.nulls))
