"""Streams: a source is read piece by piece on all cores, so that no array need fit in memory."""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from warpfold.kernels.backend import Progress
from warpfold.kernels.cores import usable_cores
from warpfold.kernels.cpu.folds.fold import Fold
from warpfold.kernels.source import ArraySource, Source

ARRAY_PIECE = 1 << 20
"""Elements at a time of an array in memory: its pieces are views, so only the calls cost time."""

MADE_PIECE = 1 << 17
"""Elements at a time of a source that makes or copies them, so that they stay in the second-level cache."""

REPORT_S = 0.02
"""Seconds between two reports of progress."""

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)
F = TypeVar("F", bound=Fold[Any])


class Pieces(Protocol[P_co]):
    """One source, or two side by side, to be read piece by piece."""

    @property
    def count(self) -> int: ...

    @property
    def in_memory(self) -> bool:
        """Whether all elements are in memory or a map, so that reading makes nothing."""
        ...

    def read(self, start: int, stop: int) -> P_co: ...


@dataclass(frozen=True, slots=True)
class One:
    """A source as it is."""

    source: Source

    @property
    def count(self) -> int:
        return self.source.count

    @property
    def in_memory(self) -> bool:
        return isinstance(self.source, ArraySource)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return self.source.read(start, stop)


@dataclass(frozen=True, slots=True)
class Two:
    """Two sources of one length, read side by side."""

    first: Source
    second: Source

    @property
    def count(self) -> int:
        return self.first.count

    @property
    def in_memory(self) -> bool:
        return isinstance(self.first, ArraySource) and isinstance(self.second, ArraySource)

    def read(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.first.read(start, stop), self.second.read(start, stop)


@dataclass
class Streamed(Generic[F]):
    """The fold of a whole stream, and where the time went (shares of the wall clock, in milliseconds)."""

    fold: F
    load_ms: float
    kernel_ms: float


def stream(pieces: Pieces[P], make: Callable[[], F], progress: Progress | None = None) -> Streamed[F]:
    """Fold all of `pieces`; `make` gives an empty fold for each thread.

    Progress is reported from the calling thread, at the end always; what it raises stops the work. An error of a piece
    stops it too; of several the one of the first piece is raised, whatever the number of threads.
    """
    began = time.perf_counter()
    size = ARRAY_PIECE if pieces.in_memory else MADE_PIECE
    threads = min(usable_cores(), -(-pieces.count // size))
    shared = _Shared(pieces, size)
    if threads <= 1:
        fold = make()
        _work(shared, fold, progress)
        folds = [fold]
    else:
        folds = [make() for _ in range(threads)]
        _run(shared, folds, progress)
    if shared.errors:
        raise min(shared.errors, key=lambda error: error[0])[1]
    whole = folds[0]
    for other in folds[1:]:
        whole.merge(other)
    if progress is not None:
        progress(pieces.count, pieces.count)
    wall_ms = (time.perf_counter() - began) * 1e3
    busy = shared.load_s + shared.kernel_s
    load_ms = wall_ms * shared.load_s / busy if busy else 0.0
    return Streamed(whole, load_ms, wall_ms - load_ms)


@dataclass
class _Shared:
    """What the threads of one stream have in common."""

    pieces: Pieces[Any]
    size: int
    starts: "itertools.count[int]" = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)
    errors: list[tuple[int, Exception]] = field(default_factory=list)
    done: int = 0
    load_s: float = 0.0
    kernel_s: float = 0.0

    def __post_init__(self) -> None:
        self.starts = itertools.count(0, self.size)


def _run(shared: _Shared, folds: list[F], progress: Progress | None) -> None:
    with ThreadPoolExecutor(len(folds), thread_name_prefix="reduce") as pool:
        running = [pool.submit(_work, shared, fold, None) for fold in folds]
        try:
            while wait(running, timeout=REPORT_S).not_done:
                if progress is not None:
                    progress(shared.done, shared.pieces.count)
        finally:
            shared.stop.set()  # where progress raised: leaving the pool waits for the pieces in hand
    for job in running:
        job.result()


def _work(shared: _Shared, fold: Fold[Any], progress: Progress | None) -> None:
    """Fold pieces until there are no more; the lowest pieces are taken first."""
    pieces = shared.pieces
    while not shared.stop.is_set():
        with shared.lock:
            start = next(shared.starts)
        if start >= pieces.count:
            return
        stop = min(start + shared.size, pieces.count)
        began = time.perf_counter()
        try:
            part = pieces.read(start, stop)
            loaded = time.perf_counter()
            fold.add(start, part)
        except Exception as error:
            with shared.lock:
                shared.errors.append((start, error))
            shared.stop.set()
            return
        ended = time.perf_counter()
        with shared.lock:
            shared.load_s += loaded - began
            shared.kernel_s += ended - loaded
            shared.done += stop - start
        if progress is not None:
            progress(shared.done, pieces.count)
