"""Long arrays of floats that lie in memory or in a file as kernels read them: threads claim pieces of them in machine
code (`windows/claimed.py`), and `stream_claims` folds them on all cores.

A thread that asks Python for its next piece holds the interpreter's lock for some microseconds, and all that wait for
the lock are woken one after another: 16 threads were handed a piece every 0.18 ms, whatever its size.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.cpu.standing import standing_threads
from warpfold.kernels.cpu.stream import REPORT_S, Folding, Streamed
from warpfold.kernels.dtypes import Kind
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.source import MOST_MAPPED_BYTES, ArraySource, Extent, Location, Source, extents_of, unreadable
from warpfold.kernels.sources.chained import ChainedSource
from warpfold.kernels.sources.mapped import survives_cuts
from warpfold.kernels.sources.sequential import Elements, SequentialSource

LEAST_BYTES = 1 << 22
"""The shortest array of which pieces are claimed: one thread adds fewer bytes before others have begun."""

MOST_BYTES = 1 << 23
"""The most bytes that a thread takes at a time of a map or of memory. When the pages of a map are forgotten, all
processors that know them are interrupted, so that pieces of long files are not small."""

_SHARE_BYTES = 1 << 21
"""A thread that has fewer bytes to add takes longer to start."""

_LEAST_PIECE_BYTES = 1 << 18
_PIECES_A_THREAD = 16
"""Threads that have as many pieces each end at about the same time."""

MAPPED_BYTES = 1 << 20
"""The bytes of a map that a thread has brought into memory at a time. Until that is done no other thread can start: the
stack of a new thread is memory of the same process."""

READ_BYTES = 1 << 19
"""The most bytes that a thread reads of a file at a time. They are in its second-level cache when they are added."""

_LINE = 8  # words a cache line


class Claims:
    """The elements of `source`, whose bytes lie somewhere (`extents_of`), for several threads to take pieces of at
    most `most_bytes`; by default as many as are best."""

    def __init__(self, source: Source, most_bytes: int | None = None) -> None:
        from warpfold.kernels.cpu.windows import claimed  # it imports Numba

        extents, itemsize = extents_of(source), source.dtype.itemsize
        assert extents, "the bytes lie somewhere"
        where, lead = extents[0].location, 0
        self._names, self._source = claimed, source
        self._maps = _maps_of(source)
        self._array = source.array.reshape(-1) if isinstance(source, ArraySource) else None
        self._in_file = where.descriptor >= 0
        piece = (most_bytes or self._best_piece()) // itemsize
        mapped = claimed.FORGOTTEN if self.nbytes > MOST_MAPPED_BYTES else claimed.MAPPED
        if self._array is not None:
            address = self._array.ctypes.data
            lead = address // itemsize % piece
            where = Location(mapped if self._in_file else claimed.IN_MEMORY, address)
        elif self._maps:
            extents = [Extent(Location(mapped, each.ctypes.data), each.size) for each in self._maps]
            where = extents[0].location
        self._words = _aligned(claimed.WORDS)
        # The threads have the address of the table.
        self._table = _pieces_of(extents, piece, itemsize) if len(extents) > 1 or self._maps else None
        if self._table is not None:
            self._set(claimed.TABLE, self._table.ctypes.data)
        self._set(claimed.COUNT, source.count if self._table is None else len(self._table) * piece)
        self._set(claimed.PIECE, piece)
        self._set(claimed.LEAD, lead)
        self._set(claimed.STEP, min(piece, MAPPED_BYTES // itemsize))
        self._set(claimed.DESCRIPTOR, where.descriptor)
        self._set(claimed.OFFSET, where.offset)

    def _best_piece(self) -> int:
        """The bytes of a piece, a power of two."""
        if self._array is None and not self._maps:
            return READ_BYTES
        share = max(_LEAST_PIECE_BYTES, min(self.nbytes // (usable_cores() * _PIECES_A_THREAD), MOST_BYTES))
        return 1 << (share.bit_length() - 1)

    @property
    def control(self) -> int:
        """The address of the words that all threads share."""
        return int(self._words.ctypes.data)

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self._source.count

    @property
    def nbytes(self) -> int:
        """How many bytes they are."""
        return self._source.count * self._source.dtype.itemsize

    @property
    def done(self) -> int:
        """How many elements were added."""
        return self._get(self._names.DONE)

    @property
    def in_file(self) -> bool:
        """Whether the elements are read from a file."""
        return self._in_file

    def elements(self) -> NDArray[Any]:
        """What one thread adds elements from: all of them, or room for those of a piece, one dimension."""
        if self._array is not None:
            return self._array
        if self._maps:
            return _around(self._maps)
        return np.empty(min(self.count, self._get(self._names.PIECE)), self._source.dtype.numpy)

    def stop(self) -> None:
        """Have no thread begin another piece."""
        self._set(self._names.STOP, 1)

    def check(self) -> None:
        """Raise InvalidInput where a thread could not read the file."""
        if self._get(self._names.FAILED):
            raise unreadable([self._source], max(0, self._get(self._names.ERROR)))

    def seconds(self) -> tuple[float, float]:
        """The seconds for which all threads together read, and those for which they added."""
        return self._get(self._names.READ_NS) / 1e9, self._get(self._names.ADD_NS) / 1e9

    def _get(self, word: int) -> int:
        return int(self._words[word * _LINE])

    def _set(self, word: int, value: int) -> None:
        self._words[word * _LINE] = value


def claims_on(source: Elements, least_bytes: int = LEAST_BYTES) -> Claims | None:
    """The claims on a source of at least so many bytes; None where it is shorter, or its bytes do not lie as kernels
    read them."""
    if sys.platform != "linux" or isinstance(source, SequentialSource) or source.dtype.kind is not Kind.FLOAT:
        return None
    itemsize = source.dtype.itemsize
    if source.count * itemsize < max(1, least_bytes) or not extents_of(source):
        return None
    if isinstance(source, ArraySource) and source.array.ctypes.data % itemsize:  # it has to be copied
        return None
    return Claims(source)


def _maps_of(source: Source) -> Sequence[NDArray[Any]]:
    """The maps of several files, where threads may read these: a file that is cut then ends no process, and each map
    begins where an element may lie."""
    maps = source.maps() if isinstance(source, ChainedSource) and survives_cuts() else None
    return maps if maps and not any(each.ctypes.data % each.itemsize for each in maps) else ()


def _around(maps: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All memory from the first of some maps to the last, as one array. What lies between them must not be read."""
    first = min(each.ctypes.data for each in maps)
    nbytes = max(each.ctypes.data + each.nbytes for each in maps) - first
    made: NDArray[Any] = np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(first)), maps[0].dtype)
    return made


def _pieces_of(extents: Sequence[Extent], piece: int, itemsize: int) -> NDArray[np.int64]:
    """The pieces of all extents, of at most `piece` elements each, a row each as `windows/claimed.py` reads it."""
    rows = []
    for extent in extents:
        first = np.arange(0, extent.count, piece, dtype=np.int64)
        lies = np.full(first.size, extent.location.descriptor, np.int64)
        begins = extent.location.offset + first * itemsize
        rows.append(np.stack((lies, begins, np.minimum(piece, extent.count - first)), axis=1))
    return np.concatenate(rows)


def _aligned(words: int) -> NDArray[np.int64]:
    """An array of `words` words, each at the beginning of a cache line of its own."""
    room = np.zeros((words + 1) * _LINE, np.int64)
    skipped = -room.ctypes.data % 64 // 8
    return room[skipped : skipped + words * _LINE]


@dataclass(frozen=True, slots=True)
class ClaimJob:
    """A job of a thread that stands by (`windows/jobs.py`), and the array whose address it has."""

    words: NDArray[np.int64]
    elements: NDArray[Any]


class ClaimingFold(Folding, Protocol):
    """A fold that takes pieces by itself, in machine code."""

    def claiming(self, claims: Claims, /) -> ClaimJob: ...

    def claimed(self, job: ClaimJob, /) -> None: ...


F = TypeVar("F", bound=ClaimingFold)


def stream_claims(claims: Claims, make: Callable[[], F], progress: Progress | None = None) -> Streamed[F]:
    """Fold all elements; `make` gives an empty fold for each thread. The calling thread reports progress, and always at
    the end; an error of `progress` stops the work. Raises InvalidInput where the file cannot be read."""
    began = working_s()
    threads = max(1, min(usable_cores(), claims.nbytes // _SHARE_BYTES))
    folds = _run(claims, threads, make, progress)
    claims.check()
    whole = folds[0]
    for other in folds[1:]:
        whole.merge(other)
    if progress is not None:
        progress(claims.count, claims.count)
    wall_ms = (working_s() - began) * 1e3
    read_s, add_s = claims.seconds()
    load_ms = wall_ms * read_s / (read_s + add_s) if read_s + add_s else 0.0
    stages = Stages(read_s=read_s / threads if claims.in_file else None, reduce_s=add_s / threads)
    return Streamed(whole, load_ms, wall_ms - load_ms, stages)


def _run(claims: Claims, threads: int, make: Callable[[], F], progress: Progress | None) -> list[F]:
    """The folds of so many threads, which together have taken in all pieces."""
    folds: list[F] = []
    jobs: list[ClaimJob] = []
    working = standing_threads(os.getpid()).begin(threads)
    try:
        while len(jobs) < threads:  # the first threads work while the jobs of others are made
            folds.append(make())
            jobs.append(folds[-1].claiming(claims))
            working.put(jobs[-1].words)
        while not working.wait(REPORT_S):
            if progress is not None:
                progress(claims.done, claims.count)
    finally:
        claims.stop()  # `progress` raised an error: no more pieces, and those in hand are waited for
        working.close()
    for fold, job in zip(folds, jobs, strict=True):
        fold.claimed(job)
    return folds
