"""Lanes: threads that read the bytes of sources into places of pinned memory, while one more has the GPU copy them.

What goes on in these threads is machine code (`native.py`); here is the memory that they share, and the order in which
they are told to begin and to stop. Nothing here imports CuPy: the functions of CUDA are addresses.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.source import Extent, Source, extents_of, unreadable


@dataclass(frozen=True, slots=True)
class LaneShape:
    """The sizes of what threads read and of what the GPU copies at a time.

    A thread reads `part_bytes` at a time, and the first parts are shorter, from `first_bytes` on, so that the first
    copy begins early and the threads do not end all at once. `parts` of them are under way: 48 MiB together stay in
    the last-level cache, from which the GPU fetches faster than from memory. Parts that lie side by side are copied
    together where they are ready together.
    """

    part_bytes: int = 1 << 20
    parts: int = 48
    first_bytes: int = 1 << 18
    most_threads: int = 15

    def threads(self) -> int:
        """How many threads read. A core is left to the thread that drives the GPU."""
        return max(1, min(self.most_threads, usable_cores() - 1))


@dataclass(frozen=True, slots=True)
class Driver:
    """Addresses of the functions of CUDA's driver that lanes call: cuMemcpyHtoDAsync, cuEventRecord, cuEventQuery and
    cuEventElapsedTime."""

    copy: int
    record: int
    query: int
    elapsed: int


@cache
def cuda_driver() -> Driver:
    """The functions of the driver that is installed. Raises OSError without a driver."""
    library = ctypes.CDLL("libcuda.so.1")
    names = ("cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime")
    return Driver(*(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names))


@dataclass(frozen=True, slots=True)
class PinnedPlaces:
    """PinnedPlaces of pinned memory that parts take in turns: their addresses, and how many of them were allocated
    `together`, one behind the other."""

    addresses: NDArray[np.int64]
    together: int


class Lanes:
    """Threads that stand by for sources, and the copies to the GPU of what they read, on the CUDA `stream`.

    `events` are pairs of CUDA events, shape (pairs, 2): so many copies may be under way.
    """

    def __init__(self, shape: LaneShape, driver: Driver, events: NDArray[np.int64], stream: int) -> None:
        from warpfold.kernels.cuda.staging import native  # it imports Numba

        self._native = native
        self.shape = shape
        self._words = _aligned(native.WORDS)
        self._scratch = np.zeros(2, np.int64)
        self._events, self._runs = events, np.zeros(len(events), np.int64)
        self._driver, self._stream = driver, stream
        self._wake = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)
        self._threads: list[threading.Thread] = []
        self._coming: Iterator[tuple[int, int]] = iter(())
        self._held: tuple[Any, ...] = ()  # objects that the threads use by their addresses
        self._control, self._scratch_at = int(self._words.ctypes.data), int(self._scratch.ctypes.data)
        self._driver_words: tuple[int, ...] = ()
        self._set(native.WAKE, self._wake)
        self._end = weakref.finalize(self, _end, self._words, self._wake, self._threads)

    def load(self) -> None:
        """Have the machine code made or loaded, and start the threads."""
        words, driver = numba_types()
        self._native.serve.compile((words, words))
        self._native.copy_parts.compile((words, driver, words, words, words, words))
        self._native.retire.compile((words, driver, words))
        self._native.wait_idle.compile((words,))
        self._start(self.shape.threads())

    def begin(self, sources: Sequence[Source], piece: int, places: PinnedPlaces) -> int:
        """Start to read `sources` into `places`, in the order in which `copy` will ask for it: pieces of `piece`
        elements, and of each piece source after source. Returns how many threads do."""
        self.stop()
        native = self._native
        table, ends = table_of(sources, piece, self.shape)
        threads = min(self.shape.threads(), len(table))
        self._start(threads)
        self._held = (table, places, tuple(sources))
        self._coming, self._driver_words = pairwise([0, *ends]), self._driver_arguments(places.together)
        for word in (native.NEXT, native.FREED, native.STOP, native.FAILED, native.READ_NS, native.COPIED_NS):
            self._set(word, 0)
        self._set(native.STARTED, 0)
        self._set(native.DONE, 0)
        self._set(native.PARTS, len(table))
        self._set(native.SLOTS, places.addresses.size)
        self._set(native.TABLE, table.ctypes.data)
        self._set(native.PLACES, places.addresses.ctypes.data)
        self._set(native.ACTIVE, threads)
        os.eventfd_write(self._wake, threads)
        return threads

    def copy(self, target: int) -> int:
        """Put the copies of the next piece of a source to the GPU's memory at `target` on the stream. Returns the
        error of CUDA, or 0. Raises InvalidInput where a file could not be read."""
        native, (first, stop) = self._native, next(self._coming)
        error: int = native.copy_parts(self._control, self._driver_words, self._scratch_at, first, stop, target)
        if self._get(native.FAILED):
            fault = unreadable(self._held[2], self._get(native.ERROR))  # while their files are open
            self.stop()
            raise fault
        return error

    def retire(self) -> int:
        """Count the copies that have ended. Returns the error of CUDA, or 0."""
        return int(
            self._native.retire(self._control, self._driver_words or self._driver_arguments(1), self._scratch_at)
        )

    @property
    def under_way(self) -> bool:
        """Whether a copy has not been counted as ended."""
        return self._get(self._native.STARTED) != self._get(self._native.DONE)

    def taken_seconds(self) -> tuple[float, float]:
        """The seconds for which all threads together read the current sources, and for which the GPU copied them, since
        the last call. No thread reads and no copy is under way."""
        words = (self._native.READ_NS, self._native.COPIED_NS)
        read_ns, copied_ns = map(self._get, words)
        for word in words:
            self._set(word, 0)
        return read_ns / 1e9, copied_ns / 1e9

    def moments(self) -> NDArray[np.int64]:
        """When the parts of the last sources were read and sent, shape (parts, 3): nanoseconds of the monotonic clock
        at which a thread began to read the part and had read it, and at which its copy was put on the stream."""
        if not self._held:
            return np.empty((0, 3), np.int64)
        table: NDArray[np.int64] = self._held[0]
        return table[:, self._native.BEGAN : self._native.SENT + 1].copy()

    def stop(self) -> None:
        """Wait until no thread reads any more: a reduction that ended early asks for no more parts."""
        self._set(self._native.STOP, 1)
        self._native.wait_idle(self._control)
        self._held = self._held[:2]  # the sources' files may be closed

    def close(self) -> None:
        """End the threads."""
        self.stop()
        self._end()
        self._held = ()

    def _driver_arguments(self, together: int) -> tuple[int, ...]:
        """What `copy_parts` and `retire` need of CUDA."""
        driver, events = self._driver, self._events
        return (
            *(driver.copy, driver.record, driver.query, driver.elapsed),
            *(events.ctypes.data, len(events), self._runs.ctypes.data, self._stream, together),
        )

    def _start(self, threads: int) -> None:
        while len(self._threads) < threads:
            scratch = np.zeros(2, np.int64)
            arguments = (self._native.serve, self._words, scratch)
            # A thread that waits for sources must not keep its process from ending.
            thread = threading.Thread(target=_serve, args=arguments, name="lane", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _get(self, word: int) -> int:
        return int(self._words[word * _STEP])

    def _set(self, word: int, value: int) -> None:
        self._words[word * _STEP] = value


_STEP = 8  # words a cache line
_COLUMNS = 7  # words of a row of the table, as `native.py` has them


def numba_types() -> tuple[Any, Any]:
    """The types of a word and of the words of the driver, for the compiler."""
    import numba

    compiler: Any = numba
    return compiler.int64, compiler.types.UniTuple(compiler.int64, 9)


def _serve(serve: Any, words: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    serve(words.ctypes.data, scratch.ctypes.data)


def _end(words: NDArray[np.int64], wake: int, threads: list[threading.Thread]) -> None:
    from warpfold.kernels.cuda.staging.native import ENDED

    words[ENDED * _STEP] = 1
    os.eventfd_write(wake, max(1, len(threads)))
    for thread in threads:
        thread.join()
    os.close(wake)


def _aligned(words: int) -> NDArray[np.int64]:
    """An array of `words` words, each at the beginning of a cache line of its own."""
    room = np.zeros((words + 1) * _STEP, np.int64)
    skipped = -room.ctypes.data % 64 // 8
    return room[skipped : skipped + words * _STEP]


def table_of(sources: Sequence[Source], piece: int, shape: LaneShape) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The parts of `sources`, a row each as `native.py` reads it, and how many parts there are up to the end of each
    piece of a source: pieces of `piece` elements, and of each piece source after source."""
    lying = [extents_of(source) for source in sources]
    if len(sources) == 1 and lying[0] is not None and len(lying[0]) == 1:
        where, itemsize = lying[0][0].location, sources[0].dtype.itemsize
        cut, ends = _whole(sources[0].count * itemsize, piece * itemsize, shape, shape.threads())
        table = cut.copy()
        table[:, 0] = where.descriptor
        table[:, 1] += where.offset
        return table, ends
    rows: list[NDArray[np.int64]] = []
    cut_by_size: dict[int, NDArray[np.int64]] = {}
    for begin in range(0, max(source.count for source in sources), piece):
        for source, extents in zip(sources, lying, strict=True):
            assert extents, "lanes take bytes that lie somewhere"
            itemsize = source.dtype.itemsize
            nbytes = (min(begin + piece, source.count) - begin) * itemsize
            if not rows:
                row = _cut(nbytes, _ramp(nbytes, shape), shape.part_bytes)
            else:
                if nbytes not in cut_by_size:
                    cut_by_size[nbytes] = _cut(nbytes, np.zeros(1, np.int64), shape.part_bytes)
                row = cut_by_size[nbytes].copy()
            if len(extents) == 1:
                row[:, 0] = extents[0].location.descriptor
                row[:, 1] += extents[0].location.offset + begin * itemsize
            else:
                row = _across(row, begin * itemsize, extents, itemsize)
            rows.append(row)
    return np.concatenate(rows), tuple(accumulate(map(len, rows)))


@lru_cache(maxsize=8)
def _whole(nbytes: int, piece: int, shape: LaneShape, _threads: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The table of one source of so many bytes that begins at 0, in pieces of `piece` bytes. Files of one size come
    again and again, and threads wait for the table."""
    rows: list[NDArray[np.int64]] = []
    for begin in range(0, nbytes, piece):
        size = min(piece, nbytes - begin)
        rows.append(_cut(size, np.zeros(1, np.int64) if rows else _ramp(size, shape), shape.part_bytes))
        rows[-1][:, 1] += begin
    table = np.concatenate(rows)
    table.flags.writeable = False
    return table, tuple(accumulate(map(len, rows)))


def _cut(nbytes: int, first: NDArray[np.int64], part_bytes: int) -> NDArray[np.int64]:
    """The parts of so many bytes: they begin at `first`, and from the last of these on are `part_bytes` long."""
    starts = np.concatenate((first[:-1], np.arange(first[-1], nbytes, part_bytes)))
    row = np.zeros((starts.size, _COLUMNS), np.int64)
    row[:, 1] = starts
    row[:-1, 2] = starts[1:] - starts[:-1]
    row[-1, 2] = nbytes - starts[-1]
    return row


def _across(row: NDArray[np.int64], begin: int, extents: Sequence[Extent], itemsize: int) -> NDArray[np.int64]:
    """The parts in `row`, whose first begins at the byte `begin` of all extents, cut where extents end."""
    ends = np.cumsum([extent.count * itemsize for extent in extents])
    files = np.array([extent.location.descriptor for extent in extents])
    offsets = np.array([extent.location.offset for extent in extents])
    stop = begin + row[-1, 1] + row[-1, 2]
    starts = np.union1d(begin + row[:, 1], ends[(ends > begin) & (ends < stop)])
    number = np.searchsorted(ends, starts, "right")
    cut = np.zeros((starts.size, row.shape[1]), np.int64)
    cut[:, 0] = files[number]
    cut[:, 1] = offsets[number] + starts - np.concatenate(([0], ends))[number]
    cut[:, 2] = np.diff(starts, append=stop)
    return cut


def _ramp(nbytes: int, shape: LaneShape) -> NDArray[np.int64]:
    """Where the first parts of so many bytes begin, a part for each thread, each longer than the one before."""
    threads = shape.threads()
    first = min(shape.first_bytes, shape.part_bytes)
    sizes = first + (shape.part_bytes - first) * np.arange(threads, dtype=np.int64) // threads
    starts: NDArray[np.int64] = np.concatenate(([0], np.cumsum(sizes)))
    return starts[starts < nbytes]
