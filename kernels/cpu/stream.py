"""Streams: a source is read piece by piece on all cores, so that no array need fit in memory."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.cpu.pieces import InSections, Piece, Pieces
from warpfold.kernels.machine.preparation import working_s

REPORT_S = 0.02
"""Seconds between two reports of progress."""

P = TypeVar("P")


class Folding(Protocol):
    """The methods that a stream calls on a fold, which may be to one value or to many."""

    def add(self, start: int, part: Any, /) -> None: ...

    def merge(self, other: Any, /) -> None: ...


F = TypeVar("F", bound=Folding)


@dataclass
class Streamed(Generic[F]):
    """The fold of a whole stream, and where the time went (shares of the wall clock, in milliseconds)."""

    fold: F
    load_ms: float
    kernel_ms: float
    stages: Stages


def stream(pieces: Pieces[P], make: Callable[[], F], progress: Progress | None = None) -> Streamed[F]:
    """Fold all of `pieces`; `make` gives an empty fold for each thread. The calling thread reports progress, and always
    at the end; an error of `progress` stops the work. An error in a piece stops the work, too. Of several such errors
    the one of the first piece is raised, whatever the number of threads.
    """
    began = working_s()
    threads = pieces.threads()
    shared = _Shared(pieces.begin(), pieces.likely)
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
        progress(shared.done, shared.done)
    wall_ms = (working_s() - began) * 1e3
    busy = shared.load_s + shared.kernel_s
    load_share = shared.load_s / busy if busy else 0.0  # at most 1, so that no rounding makes a time negative
    kernel_ms = wall_ms * (1.0 - load_share)
    return Streamed(whole, wall_ms * load_share, kernel_ms, _stages(pieces, shared, max(1, threads)))


def _stages(pieces: Pieces[Any], shared: "_Shared", threads: int) -> Stages:
    """Pieces that can be read at once are read by all threads. Pieces that come in order are decoded by one thread."""
    reduce_s = shared.kernel_s / threads
    if isinstance(pieces, InSections):
        return Stages(decode_s=shared.load_s / threads, reduce_s=reduce_s)
    if pieces.ahead_s is not None:
        return Stages(decode_s=max(shared.asked_s, pieces.ahead_s), reduce_s=reduce_s)
    return Stages(read_s=(shared.load_s - shared.asked_s) / threads if pieces.reads else None, reduce_s=reduce_s)


@dataclass
class _Shared:
    """The state that the threads of one stream share. The thread that asks for the next piece holds `turn`. After
    `stop` no piece is begun, but begun pieces go on, because an earlier one may hold an error, too. After `given_up` no
    piece goes on."""

    coming: Iterator[Piece[Any]]
    likely: int
    turn: threading.Lock = field(default_factory=threading.Lock)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)
    given_up: threading.Event = field(default_factory=threading.Event)
    errors: list[tuple[int, Exception]] = field(default_factory=list)
    asked: int = 0
    done: int = 0
    load_s: float = 0.0
    asked_s: float = 0.0
    kernel_s: float = 0.0

    def next(self) -> Piece[Any] | None:
        """The next piece, in order; None at the end, and after an error."""
        with self.turn:
            if self.stop.is_set():
                return None
            began = working_s()
            try:
                piece = next(self.coming, None)
            except Exception as error:
                self.fail(self.asked, error)
                return None
            self.asked = self.asked if piece is None else piece.stop
            took_s = working_s() - began
        with self.lock:
            self.load_s += took_s
            self.asked_s += took_s
        return piece

    def folded(self, elements: int, load_s: float, kernel_s: float) -> None:
        with self.lock:
            self.done += elements
            self.load_s += load_s
            self.kernel_s += kernel_s

    def fail(self, start: int, error: Exception) -> None:
        with self.lock:
            self.errors.append((start, error))
        self.stop.set()

    def report(self, progress: Progress) -> None:
        progress(self.done, max(self.done, self.likely))


def _run(shared: _Shared, folds: list[F], progress: Progress | None) -> None:
    with ThreadPoolExecutor(len(folds), thread_name_prefix="reduce") as pool:
        running = [pool.submit(_work, shared, fold, None) for fold in folds]
        try:
            while wait(running, timeout=REPORT_S).not_done:
                if progress is not None:
                    shared.report(progress)
        finally:
            shared.stop.set()  # `progress` raised an error, and leaving the pool waits for the parts in hand
            shared.given_up.set()
    for job in running:
        job.result()


def _work(shared: _Shared, fold: Folding, progress: Progress | None) -> None:
    """Fold pieces until none is left. The lowest pieces are taken first."""
    while (piece := shared.next()) is not None:
        parts, began = piece.parts(), working_s()
        try:
            for start, stop, part in parts:
                loaded = working_s()
                fold.add(start, part)
                ended = working_s()
                shared.folded(stop - start, loaded - began, ended - loaded)
                if shared.given_up.is_set():
                    return
                if progress is not None:
                    shared.report(progress)
                began = ended
        except Exception as error:
            shared.fail(piece.start, error)
            return
