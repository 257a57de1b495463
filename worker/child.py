"""The child of a slot: opens the device once, then runs one request after another until its parent goes away."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from warpfold.app import logs
from warpfold.contract.folders import Folders
from warpfold.worker.messages import (
    Broken,
    Failure,
    News,
    Opener,
    Prepared,
    Progress,
    Pulse,
    Ready,
    Request,
    Spare,
    Success,
    Work,
)
from warpfold.worker.pipe import ChildEnd, PipeClosed

log: FilteringBoundLogger = structlog.get_logger()

_PROGRESS_EVERY_S = 0.1


def child_main(
    end: socket.socket, opener: Opener, slot: str, parent: int, pulse_s: float, *, spare: Spare | None = None
) -> None:
    """Body of the child. `parent` is the process id of whoever started it. While a job runs, the child says every
    `pulse_s` seconds that it lives. A `spare` child prepares itself, and may wait for a word before it opens its
    device."""
    # here, because the parent imports this module and must stay small
    from warpfold.kernels.errors import KernelError
    from warpfold.kernels.lifeline import end_with

    end_with(parent)  # elsewhere than on Linux the end of the pipe ends it, after the job that it runs
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    logs.configure(role="child", slot=slot)
    connection = ChildEnd(end)
    try:
        if spare is not None:
            spare.prepare()
            if not spare.opens:
                connection.send(Prepared())
                connection.receive()  # the word to open the device
        work = opener()
    except PipeClosed:
        return
    except Exception as error:
        log.error("cannot open the device", exc_info=error)
        expected = isinstance(error, KernelError)
        connection.send(Broken(str(error) if expected else f"{type(error).__name__}: {error}"))
        return
    connection.send(Ready(work.device))
    pulse = _Pulse(connection, pulse_s)
    while True:
        try:
            request = connection.receive()
        except PipeClosed:
            return
        facts = {"job": str(request.job_id), "attempt": request.attempt, "request_id": request.request_id}
        with bound_contextvars(**facts):
            with pulse.beating():
                answer = _answer(work, request, _Teller(connection))
            connection.send(answer)


class _Pulse:
    """A thread that sends a pulse every so often while a job runs: a process that is stopped, or frozen, sends none.

    It is one thread for all jobs: to start one takes longer than a small job does.
    """

    def __init__(self, connection: ChildEnd, every_s: float) -> None:
        self._connection = connection
        self._every_s = every_s
        self._busy = False
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """A job runs in the block."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _beat(self) -> None:
        with suppress(OSError):  # the parent is gone, and so are we soon
            while True:
                time.sleep(self._every_s)
                if self._busy:
                    self._connection.send(Pulse())


def _answer(work: Work, request: Request, tell: "_Teller") -> Success | Failure:
    from warpfold.worker.failures import failure_of

    try:
        return work.run(request, tell)
    except Exception as error:
        return failure_of(error, request)


def open_kernels(slot: str, worker: str, folders: Folders, cpu_cache_bytes: int | None = None) -> Work:
    """Open the device of a real slot, in the child. Raises Unavailable if there is no such device."""
    from warpfold.worker.execute import Kernels  # heavy, and the parent imports this module

    return Kernels(slot, worker, folders, cpu_cache_bytes=cpu_cache_bytes)


def prepare_kernels(slot: str) -> None:
    """Import what opening the device of a real slot needs, and what its jobs need, without touching the device."""
    from warpfold.kernels.open import import_libraries
    from warpfold.worker import execute, kinds  # noqa: F401 (heavy, and the parent imports this module)

    kinds.runs()
    import_libraries(slot)


class _Teller:
    """Sends news to the parent, of progress at most every 100 ms."""

    def __init__(self, connection: ChildEnd) -> None:
        self._connection = connection
        self._next = time.monotonic() + _PROGRESS_EVERY_S

    def __call__(self, news: News) -> None:
        now = time.monotonic()
        if not isinstance(news, Progress):
            self._connection.send(news)
        elif now >= self._next:
            self._next = now + _PROGRESS_EVERY_S
            self._connection.send(news)
