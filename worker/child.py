"""The child of a slot, and the pipe between it and its parent.

The child opens the device once, then runs one attempt after another until its parent goes away. The pipe carries whole
messages. A child that is stopped reads nothing and writes nothing, or half a message; so the parent's end sends what
the pipe takes, keeps the rest, and puts together what has come: each of its calls returns at once. The child's end may
wait.
"""

import pickle
import select
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from warpfold.app import logs
from warpfold.app.jobs.attempt import Answer, Lease, Success
from warpfold.contract.folders import Folders
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.messages import (
    Broken,
    Measuring,
    News,
    Opener,
    Prepared,
    Progress,
    Pulse,
    Rated,
    Ready,
    Spare,
    Warming,
    Work,
)

log: FilteringBoundLogger = structlog.get_logger()

CHILD_END = 3
"""The number by which a child has its end of the pipe."""

_PROGRESS_EVERY_S = 0.1
_IDLE_S = 0.5
"""A child that has been idle for this time measures the rates of its slot, if they are not known."""
_BETWEEN_S = 0.05
"""After each step of the measurement the child waits this long for a lease."""
_HEAD = struct.Struct("!Q")  # the length of the pickle that follows, in bytes
_PIECE = 1 << 18
_LEFT_BYTES = 1 << 26
"""What a failed job may leave in the memory of its child."""
_AHEAD_BYTES = 1 << 20
"""How many bytes the parent wants the operating system to hold for the child: the leases of 32 small jobs. The kernel
may allow less."""


class PipeClosed(Exception):
    """The other end is gone, and all messages that it sent were received."""


def pipe() -> "tuple[ParentEnd, socket.socket]":
    """The parent's end, and the socket of the child's end, which is passed to the child."""
    ours, theirs = socket.socketpair()
    return ParentEnd(ours), theirs


class ParentEnd:
    """Sends and receives without waiting. `wait` returns when the pipe has something to do."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _AHEAD_BYTES)
        self._end = end
        self._unsent: deque[memoryview] = deque()  # each item is a message, or the unsent rest of one
        self._came = bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: object) -> None:
        """Send as much of `message` as the pipe takes; `flush` sends the rest. Raises OSError when the child is
        gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._unsent.append(memoryview(_HEAD.pack(len(data)) + data))
        self.flush()

    def flush(self) -> None:
        """Send as much of the rest as the pipe takes. Raises OSError when the child is gone."""
        while self._unsent:
            try:
                sent = self._end.send(self._unsent[0][:_PIECE])
            except BlockingIOError:
                return
            if sent < len(self._unsent[0]):
                self._unsent[0] = self._unsent[0][sent:]
            else:
                self._unsent.popleft()

    def receive(self) -> Any | None:
        """The next message, or None if it has not arrived whole. Raises PipeClosed."""
        if (message := self._whole()) is not None:
            return message
        try:
            piece = self._end.recv(_PIECE)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            raise PipeClosed
        self._came += piece
        return self._whole()

    def wait(self, seconds: float, *others: int) -> Sequence[int]:
        """Sleep until the child has sent something or takes more of an unsent message, until one of `others` (file
        numbers) can be read, or until the time is over. Returns the file numbers that can be read, the pipe's among
        them."""
        if len(self._came) >= _HEAD.size and self._is_whole():
            return (self.fileno(),)
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN | (select.POLLOUT if self._unsent else 0))
        for other in others:
            poll.register(other, select.POLLIN)
        ready = poll.poll(max(0.0, seconds) * 1000)
        return [number for number, what in ready if what & ~select.POLLOUT]

    def close(self) -> None:
        self._end.close()

    def _is_whole(self) -> bool:
        (length,) = _HEAD.unpack_from(self._came)
        return bool(len(self._came) >= _HEAD.size + length)

    def _whole(self) -> Any | None:
        if len(self._came) < _HEAD.size or not self._is_whole():
            return None
        (length,) = _HEAD.unpack_from(self._came)
        end = _HEAD.size + length
        message = pickle.loads(memoryview(self._came)[_HEAD.size : end].tobytes())  # noqa: S301 (our own child)
        del self._came[:end]
        return message


class ChildEnd:
    """Waits for the parent, and may be used by several threads to send."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()

    def send(self, message: object) -> None:
        """Send all of `message`. Raises OSError when the parent is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._sending:
            self._end.sendall(_HEAD.pack(len(data)) + data)  # as one write, because the parent wakes up for each write

    def receive(self) -> Any:
        """The next message. Raises PipeClosed when the parent is gone."""
        (length,) = _HEAD.unpack(self._exactly(_HEAD.size))
        return pickle.loads(self._exactly(length))  # noqa: S301 (our own parent)

    def readable(self, within_s: float) -> bool:
        """Whether a message, or the end of the parent, has come within `seconds`."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        return bool(poll.poll(within_s * 1000))

    def _exactly(self, count: int) -> bytes:
        came = bytearray()
        while len(came) < count:
            try:
                piece = self._end.recv(min(count - len(came), _PIECE))
            except ConnectionError:
                piece = b""
            if not piece:
                raise PipeClosed
            came += piece
        return bytes(came)


def child_main(opener: Opener, slot: str, pulse_s: float, *, spare: Spare | None = None) -> None:
    """Body of the child, whose end of the pipe is the file `CHILD_END`. While a job runs, the child says every
    `pulse_s` seconds that it lives. A `spare` child prepares itself, and may wait for the message `Open` before it
    opens its device."""
    # imported here, because the parent imports this module and must stay small
    from warpfold.kernels.errors import KernelError
    from warpfold.worker.start import imports

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the parent decides
    logs.configure(role="child", slot=slot)
    connection = ChildEnd(socket.socket(fileno=CHILD_END))
    try:
        if spare is not None:
            with imports():
                spare.prepare()
            if not spare.opens:
                connection.send(Prepared())
                connection.receive()  # this message is `Open`
        with imports():
            work = opener()
        if spare is not None:
            _warm(work)  # later it might disturb a job that measures times
    except PipeClosed:
        return
    except Exception as error:
        log.error("cannot open the device", exc_info=error)
        expected = isinstance(error, KernelError)
        connection.send(Broken(str(error) if expected else f"{type(error).__name__}: {error}"))
        return
    rated = work if isinstance(work, Measuring) else None
    measured_rates = None if rated is None else rated.rates
    connection.send(Ready(work.device, measured_rates))
    pulse = _Pulse(connection, pulse_s)
    served = spare is None  # a spare child does not touch the device while the other child works
    if spare is None and not connection.readable(0.0):
        _warm(work)
    while True:
        try:
            if rated is not None and served and rated.rates is None:
                _measure(rated, connection)
            if rated is not None and (rates := rated.rates) is not None and rates is not measured_rates:
                connection.send(Rated(rates))
                measured_rates = rates
            lease: Lease = connection.receive()
            served, began_s = True, time.monotonic()
        except PipeClosed:
            return
        with bound_contextvars(**lease.log_fields):
            news = _ProgressSender(connection)
            with pulse.beating(news):
                answer = _answer(work, lease, news)
            connection.send(replace(answer, began_s=began_s) if isinstance(answer, Success) else answer)


def _warm(work: Work) -> None:
    """Prepare what the commonest jobs need. The first child does this when it has said that it is ready: a job that
    comes meanwhile waits no longer than it would have waited for a slot that was not ready yet."""
    if isinstance(work, Warming):
        try:
            work.warm()
        except Exception as error:  # a job that needs the same fails with it, and says so
            log.warning("not warmed up", error=str(error))


def _measure(work: Measuring, connection: ChildEnd) -> None:
    """Measure the rates of the slot. If a lease comes first, the rates are measured in a later pause."""
    from warpfold.kernels.cpu.memory import give_back

    if connection.readable(_IDLE_S):
        return
    for _ in work.measuring():
        if work.rates is None and connection.readable(_BETWEEN_S):
            return
    give_back()


class _Pulse:
    """A thread that sends pulses at an interval while a job runs. A process that is stopped, or frozen, sends no pulse.
    One thread serves all jobs, because starting a thread takes longer than a small job.
    """

    def __init__(self, connection: ChildEnd, every_s: float) -> None:
        self._connection = connection
        self._every_s = every_s
        self._news: _ProgressSender | None = None
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    @contextmanager
    def beating(self, news: "_ProgressSender") -> Iterator[None]:
        """Send pulses, and what `news` has kept back, within the block, in which a job runs."""
        self._news = news
        try:
            yield
        finally:
            self._news = None
            news.end()

    def _beat(self) -> None:
        with suppress(OSError):  # the parent is gone, and the child ends soon
            while True:
                time.sleep(self._every_s)
                if (news := self._news) is not None:
                    news.send_rest()
                    self._connection.send(Pulse())


def _answer(work: Work, lease: Lease, tell: "_ProgressSender") -> Answer:
    from warpfold.kernels.cpu.memory import give_back, resident_bytes
    from warpfold.worker.failures import failure_of

    before = resident_bytes()
    try:
        return work.run(lease, tell)
    except Exception as error:
        failure = failure_of(error, lease)
    if resident_bytes() - before > _LEFT_BYTES:  # the error has gone, and with it what its frames held
        give_back()
    return failure


def open_kernels(
    slot: str,
    worker: str,
    folders: Folders,
    cpu_cache_bytes: int | None = None,
    rates_dir: Path | None = None,
    *,
    cluster: ClusterOptions | None = None,
    memory_bytes: int | None = None,
) -> Work:
    """Open the device of a real slot, in the child, which then may take `memory_bytes` more. Raises Unavailable if
    there is no such device."""
    # Imported here, because the parent imports this module, and these are heavy.
    from warpfold.kernels.cpu.memory import limit_memory
    from warpfold.worker.execute import Kernels

    work = Kernels(slot, worker, folders, cpu_cache_bytes=cpu_cache_bytes, rates_dir=rates_dir, cluster=cluster)
    if memory_bytes is not None:
        limit_memory(memory_bytes)  # a GPU's driver reserves addresses beyond any memory, and has done so by now
    return work


def prepare_kernels(slot: str) -> None:
    """Import what opening the device of a real slot needs, and what its jobs need, without touching a GPU."""
    from warpfold.kernels.open import import_libraries
    from warpfold.worker import execute, kinds  # noqa: F401 (heavy, and the parent imports this module)

    kinds.runs()
    import_libraries(slot)
    if slot == "cpu":
        from warpfold.kernels.cpu.backend import CpuBackend

        CpuBackend(
            at_once=True
        ).warm()  # children that are forked after this share the machine code of the commonest jobs


class _ProgressSender:
    """Sends news to the parent, of progress at most every 100 ms. Progress that was kept back is sent with the next
    pulse: work that has come to a halt, such as a download, reports nothing after it."""

    def __init__(self, connection: ChildEnd) -> None:
        self._connection = connection
        self._next = time.monotonic() + _PROGRESS_EVERY_S
        self._kept: Progress | None = None
        self._lock = threading.Lock()

    def __call__(self, news: News) -> None:
        if not isinstance(news, Progress):
            self._connection.send(news)
            return
        now = time.monotonic()
        with self._lock:  # the pulse must not send older progress after this
            if now < self._next:
                self._kept = news
                return
            self._next, self._kept = now + _PROGRESS_EVERY_S, None
            self._connection.send(news)

    def send_rest(self) -> None:
        """Send the progress that was kept back last, if it is the latest."""
        with self._lock:
            kept, self._kept = self._kept, None
            if kept is not None:
                self._connection.send(kept)

    def end(self) -> None:
        """Forget what was kept back. Progress behind the answer to a job would be taken for that of the next job."""
        with self._lock:
            self._kept = None
