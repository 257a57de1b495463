"""The child of a slot: opens the device once, then runs one request after another until its parent goes away."""

import ctypes
import os
import signal
import sys
import time
from multiprocessing.connection import Connection

import structlog
from structlog.typing import FilteringBoundLogger

from worker import logs
from worker.messages import Broken, Failure, News, Opener, Progress, Ready, Request, Success, Work

log: FilteringBoundLogger = structlog.get_logger()

_PR_SET_PDEATHSIG = 1
_PROGRESS_EVERY_S = 0.1


def child_main(connection: Connection, opener: Opener, slot: str, parent: int) -> None:
    """Body of the child. `parent` is the process id of whoever started it."""
    from kernels.errors import KernelError  # here, because the parent imports this module and must stay small

    _end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    logs.configure(role="child", slot=slot)
    try:
        work = opener()
    except Exception as error:
        log.error("cannot open the device", exc_info=error)
        expected = isinstance(error, KernelError)
        connection.send(Broken(str(error) if expected else f"{type(error).__name__}: {error}"))
        return
    connection.send(Ready(work.device))
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_answer(work, request, _Teller(connection)))


def _answer(work: Work, request: Request, tell: "_Teller") -> Success | Failure:
    from worker.failures import failure_of

    try:
        return work.run(request, tell)
    except Exception as error:
        return failure_of(error, request)


class _Teller:
    """Sends news to the parent, of progress at most every 100 ms."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._next = time.monotonic() + _PROGRESS_EVERY_S

    def __call__(self, news: News) -> None:
        now = time.monotonic()
        if not isinstance(news, Progress):
            self._connection.send(news)
        elif now >= self._next:
            self._next = now + _PROGRESS_EVERY_S
            self._connection.send(news)


def _end_with(parent: int) -> None:
    """Have the kernel end this process as soon as its parent dies, even in the middle of a computation.

    Elsewhere than on Linux, the end of the pipe ends it, after the job that it runs.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)
