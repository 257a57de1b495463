"""Sources one after another, as one source."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.source import ArraySource, Chain, Extent, Source, bytes_at, checksums_of, unchanged
from warpfold.kernels.sources.checksums import Checksum, verify
from warpfold.kernels.sources.sequential import Elements, FileCount, SequentialSource


class ChainedSource(Chain):
    """The elements of sources of one dtype, one source after another. A source is opened when it is read, and few of
    them are open at a time, so that there may be more files than a process may hold open.

    Elements are copied, so that a file that is cut while it is read is an error, not the end of the process. Only a
    process that survives such cuts (`kernels.sources.mapped`) reads the maps of few files."""

    MOST_OPEN = 64

    def __init__(self, dtype: DType, links: Sequence["Link"]) -> None:
        self.dtype = dtype
        self._links = links
        self._ends = list(accumulate(link.count for link in links))
        self._open: OrderedDict[int, Source] = OrderedDict()
        self._lock = Lock()

    @property
    def count(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def files(self) -> Sequence[FileCount]:
        """The links that are files, with their elements."""
        return [FileCount(link.file, link.count, 0) for link in self._links if link.file is not None]

    @property
    def ends(self) -> Sequence[int]:
        """The index behind the last element of each link."""
        return self._ends

    def read(self, start: int, stop: int) -> NDArray[Any]:
        out = np.empty(stop - start, self.dtype.numpy)
        self.read_into(start, out.view(np.uint8))
        return out

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        itemsize, at, stop = self.dtype.itemsize, start, start + out.size // self.dtype.itemsize
        while at < stop:
            number = bisect_right(self._ends, at)
            end = min(stop, self._ends[number])
            begin = self._ends[number] - self._links[number].count
            part = out[(at - start) * itemsize : (end - start) * itemsize]
            with self._named(number):
                source = self._source(number)
                source.read_into(at - begin, part)
            if not self._holds(number, source):
                self._check(number, source)
            at = end

    def extents(self) -> Sequence[Extent] | None:
        """Where the elements of all links lie, if the links are few enough to stay open, and their elements lie in
        files. Raises InvalidInput where a link cannot be opened."""
        if len(self._links) > self.MOST_OPEN:
            return None
        extents: list[Extent] = []
        for number, link in enumerate(self._links):
            if link.count:
                with self._named(number):
                    where = bytes_at(self._source(number))
                if where is None or where.descriptor < 0:
                    return None
                extents.append(Extent(where, link.count))
        return extents

    def maps(self) -> Sequence[NDArray[Any]] | None:
        """The elements of each link that has any, one dimension each; None where the links are too many to stay open,
        or where some elements do not lie in the map of a file as kernels read them. Raises InvalidInput where a link
        cannot be opened."""
        if len(self._links) > self.MOST_OPEN:
            return None
        maps = []
        for number, link in enumerate(self._links):
            if link.count:
                with self._named(number):
                    source = self._source(number)
                if not isinstance(source, ArraySource) or source.file is None or bytes_at(source) is None:
                    return None
                maps.append(source.array.reshape(-1))
        return maps

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Errors of reading within the block name the link."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"{self._links[number].name}: {error}", error.field) from None

    def _source(self, number: int) -> Source:
        with self._lock:
            source = self._open.pop(number, None)
        if source is None:  # two threads may open it at once, which costs time and nothing else
            source = self._links[number].open()
        with self._lock:
            self._open[number] = source
            closed = [self._open.popitem(last=False) for _ in range(len(self._open) - self.MOST_OPEN)]
        for at, before in closed:
            self._check(at, before)
            verify(checksums_of(before))
        return source

    def _holds(self, number: int, source: Source) -> bool:
        """Whether `source` is still to be compared with its file: when it is closed, or in the end. It is not where
        another thread closed it, or opened the same link, while this thread read it. Its file stays open and mapped
        until the last thread has read."""
        with self._lock:
            return self._open.get(number) is source

    def _check(self, number: int, source: Source) -> None:
        if not unchanged(source):
            raise InvalidInput(f"{self._links[number].name} changed while it was read")

    def is_unchanged(self) -> bool:
        """Whether the files that are open are as they were; a file that was closed was compared when it was closed."""
        with self._lock:
            return all(map(unchanged, self._open.values()))

    def checksums(self) -> Sequence[Checksum]:
        with self._lock:
            return [checksum for source in self._open.values() for checksum in checksums_of(source)]

    def changed(self) -> str | None:
        """The name of a link that is open and whose file has changed; None if all are unchanged."""
        with self._lock:
            return next((self._links[at].name for at, source in self._open.items() if not unchanged(source)), None)


@dataclass(frozen=True, slots=True)
class Link:
    """One source of a chain: what errors call it, how many elements it has, how it is opened, and the name of its file
    where it is one of several files."""

    name: str
    count: int
    open: Callable[[], Source]
    file: str | None = None


def files_read(sources: Iterable[Elements]) -> Sequence[FileCount]:
    """The files of all sources that are several files, once these were read."""
    counts: list[FileCount] = []
    for source in sources:
        if isinstance(source, SequentialSource):
            counts += source.tally.files
        elif isinstance(source, ChainedSource):
            counts += source.files
    return counts
