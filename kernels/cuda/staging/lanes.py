"""Lanes: threads that read the bytes of sources into places of pinned memory, from which a kernel of the GPU pulls
them.

What goes on in these threads is machine code (`native.py`); here is the memory that they share, and the order in which
they are told to begin and to stop. Nothing here imports CuPy: the functions of CUDA are addresses.
"""

import ctypes
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, cycle, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.source import Extent, Source, extents_of, unreadable


@dataclass(frozen=True, slots=True)
class LaneShape:
    """The sizes of what threads read and of what the GPU pulls at a time.

    A thread reads `part_bytes` at a time, and the first parts are shorter, from `first_bytes` on, so that the first
    bytes cross the bus early and the threads do not end all at once. `parts` of them are under way: 48 MiB together
    stay in the last-level cache, from which the GPU fetches faster than from memory. `blocks` of the GPU pull them.
    """

    part_bytes: int = 1 << 18
    parts: int = 192
    first_bytes: int = 1 << 17
    most_threads: int = 15
    blocks: int = 64

    def threads(self) -> int:
        """How many threads read. A core is left to the thread that drives the GPU."""
        return max(1, min(self.most_threads, usable_cores() - 1))


@dataclass(frozen=True, slots=True)
class Driver:
    """Addresses of the functions of CUDA's driver that lanes call: cuLaunchKernel, cuEventRecord and cuEventQuery."""

    launch: int
    record: int
    query: int


@cache
def cuda_driver() -> Driver:
    """The functions of the driver that is installed. Raises OSError without a driver."""
    library = ctypes.CDLL("libcuda.so.1")
    names = ("cuLaunchKernel", "cuEventRecord", "cuEventQuery")
    return Driver(*(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names))


@dataclass(frozen=True, slots=True)
class Puller:
    """What CUDA has made for lanes: the kernel that pulls, the stream on which it is launched, and events, which
    launches take in turns."""

    driver: Driver
    kernel: int
    stream: int
    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Parts that the GPU was asked to pull at the time `launched`, in nanoseconds."""

    event: int
    first: int
    stop: int
    target: int
    launched: int


class Board:
    """Words that the threads and the GPU share: what each place of pinned memory holds, what was taken from it, and how
    long each block of the GPU was busy. `memory` has `Board.words(shape)` words, which the GPU can read and write."""

    def __init__(self, shape: LaneShape, memory: NDArray[np.int64]) -> None:
        ends = np.cumsum([shape.parts * _PLACE, shape.parts, shape.blocks])
        self.memory = memory[: ends[-1]]
        self.memory[:] = 0
        self.places = self.memory[: ends[0]].reshape(-1, _PLACE)
        self.taken, self.busy = self.memory[ends[0] : ends[1]], self.memory[ends[1] :]

    @staticmethod
    def words(shape: LaneShape) -> int:
        return shape.parts * (_PLACE + 1) + shape.blocks


class Lanes:
    """Threads that stand by for sources, and the `puller` that has the GPU take what they read."""

    def __init__(self, shape: LaneShape, puller: Puller, board: Board) -> None:
        from warpfold.kernels.cuda.staging import native  # it imports Numba

        self._native = native
        self.shape = shape
        self.under_way = False
        self._board = board
        self._words = _aligned(native.WORDS)
        self._scratch = np.zeros(2, np.int64)
        self._wake = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)
        self._threads: list[threading.Thread] = []
        self._coming: Iterator[tuple[int, int]] = iter(())
        self._started: deque[_Piece] = deque()
        self._events = cycle(puller.events)
        self._held: tuple[Any, ...] = ()  # objects that the threads use by their addresses
        self._control, self._scratch_at = int(self._words.ctypes.data), int(self._scratch.ctypes.data)
        self._arguments = np.array([*(part.ctypes.data for part in (board.places, board.taken, board.busy)), *[0] * 5])
        self._pointers = self._arguments.ctypes.data + 8 * np.arange(self._arguments.size)
        driver = puller.driver
        self._driver_words = (
            *(driver.launch, driver.record, driver.query, puller.kernel, puller.stream, shape.blocks),
            *(self._arguments.ctypes.data, self._pointers.ctypes.data),
        )
        self._set(native.WAKE, self._wake)
        self._set(native.PLACES, board.places.ctypes.data)
        self._set(native.TAKEN, board.taken.ctypes.data)
        self._end = weakref.finalize(self, _end, self._words, self._wake, self._threads)

    def load(self) -> None:
        """Have the machine code made or loaded, and start the threads."""
        words, driver = numba_types()
        self._native.serve.compile((words, words))
        self._native.pull_parts.compile((driver, *[words] * 5))
        self._native.await_parts.compile((words, driver, *[words] * 6))
        self._native.wait_idle.compile((words,))
        self._start(self.shape.threads())

    def begin(self, sources: Sequence[Source], piece: int, addresses: NDArray[np.int64]) -> int:
        """Start to read `sources` into places at these addresses of pinned memory, in the order in which `pull` will
        ask for it: pieces of `piece` elements, and of each piece source after source. The GPU has taken what was read
        before. Returns how many threads read."""
        self.stop()
        native, board = self._native, self._board
        table, ends = table_of(sources, piece, self.shape)
        threads = min(self.shape.threads(), len(table))
        self._start(threads)
        self._held = (table, addresses, tuple(sources))
        self._coming = pairwise([0, *ends])
        self._started.clear()
        for word in (native.NEXT, native.STOP, native.FAILED, native.READ_NS):
            self._set(word, 0)
        board.memory[:] = 0
        board.places[: addresses.size, native.ADDRESS] = addresses
        self._arguments[_SLOTS] = addresses.size
        self._set(native.PARTS, len(table))
        self._set(native.SLOTS, addresses.size)
        self._set(native.TABLE, table.ctypes.data)
        self._set(native.ACTIVE, threads)
        os.eventfd_write(self._wake, threads)
        return threads

    def pull(self, target: int) -> int:
        """Have the GPU pull the next piece of a source into its memory at `target`, each part when it is read. Returns
        the error of CUDA, or 0."""
        first, stop = next(self._coming)
        piece = _Piece(next(self._events), first, stop, target, time.monotonic_ns())
        self._started.append(piece)
        self.under_way = True
        return int(self._native.pull_parts(self._driver_words, piece.event, first, stop, target, 0))

    def arrive(self) -> tuple[int, int]:
        """Return when all of the oldest piece that the GPU was asked to pull is read: the error of CUDA, or 0, and the
        event behind which the piece has arrived. Raises InvalidInput where a file could not be read."""
        native, piece = self._native, self._started.popleft()
        error: int = native.await_parts(
            self._control, self._driver_words, self._scratch_at,
            *(piece.event, piece.first, piece.stop, piece.target, piece.launched),
        )  # fmt: skip
        if self._get(native.FAILED):
            fault = unreadable(self._held[2], self._get(native.ERROR))  # while their files are open
            self.stop()
            raise fault
        return error, piece.event

    def settled(self) -> None:
        """Note that the GPU has done all that was put on the stream."""
        self.under_way = False

    def taken_seconds(self) -> tuple[float, float]:
        """The seconds for which all threads together read the current sources, and for which the GPU pulled them, since
        the last call. No thread reads and the GPU pulls nothing."""
        read_ns, copied_ns = self._get(self._native.READ_NS), int(self._board.busy.sum())
        self._set(self._native.READ_NS, 0)
        self._board.busy[:] = 0
        return read_ns / 1e9, copied_ns / 1e9

    def moments(self) -> NDArray[np.int64]:
        """When the parts of the last sources were read, shape (parts, 2): nanoseconds of the monotonic clock at which a
        thread began to read the part and had read it."""
        if not self._held:
            return np.empty((0, 2), np.int64)
        table: NDArray[np.int64] = self._held[0]
        return table[:, self._native.BEGAN : self._native.READ + 1].copy()

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
_ALIGNED = 64  # bytes of which the first parts are multiples: the GPU writes 16 bytes at a time where it can
# Words of a row of the table and of a place, as `native.py` has them.
_COLUMNS, _PLACE = 6, 8
_SLOTS = 3  # which argument of the kernel says how many places there are


def numba_types() -> tuple[Any, Any]:
    """The types of a word and of the words of the driver, for the compiler."""
    import numba

    compiler: Any = numba
    return compiler.int64, compiler.types.UniTuple(compiler.int64, 8)


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
    row[:, 1] = row[:, 3] = starts
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
    cut[:, 3] = starts - begin
    return cut


def _ramp(nbytes: int, shape: LaneShape) -> NDArray[np.int64]:
    """Where the first parts of so many bytes begin, a part for each thread, each longer than the one before."""
    threads = shape.threads()
    first = min(shape.first_bytes, shape.part_bytes)
    sizes = first + (shape.part_bytes - first) * np.arange(threads, dtype=np.int64) // threads
    if first >= _ALIGNED:
        sizes -= sizes % _ALIGNED
    starts: NDArray[np.int64] = np.concatenate(([0], np.cumsum(sizes)))
    return starts[starts < nbytes]
