"""The warm child of a slot: started ahead of need, watched while it works, ended when it must be."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.worker.child import child_main
from warpfold.worker.messages import Begun, Broken, Failure, Measured, News, Opener, Progress, Ready, Request, Success
from warpfold.worker.stop import GaveUp, Stop, StopRequested

log: FilteringBoundLogger = structlog.get_logger()


class BrokenSlot(Exception):
    """The child could not open its device."""


class Verdict(Enum):
    """What is to become of a running job, as its parent finds at each beat."""

    GO_ON = auto()
    CANCEL = auto()
    ABANDON = auto()  # the lease is gone: the job is somebody else's now


class Halt(Enum):
    """Why the parent ended a running job, and the child with it."""

    TIMEOUT = auto()
    CANCELLED = auto()
    ABANDONED = auto()
    STOPPING = auto()


@dataclass(frozen=True, slots=True)
class Died:
    """The child ended by itself in the middle of a job; a negative code is the number of a signal."""

    exit_code: int | None


Ending = Success | Failure | Halt | Died
Beat = Callable[[Progress | None], Verdict]
Keep = Callable[[Begun | Measured], None]


_LOOK_EVERY_S = 0.1


def _never() -> bool:
    return False


def _keep_nothing(news: Begun | Measured) -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Child:
    process: SpawnProcess
    connection: Connection
    device: Mapping[str, object]


class Slot:
    """One child process at a time, spawned (a CUDA context does not survive a fork).

    `opener` is called in the child. All methods belong to the thread that made the slot: Linux ends the child when
    the thread that spawned it ends.
    """

    def __init__(
        self, name: str, opener: Opener, stop: Stop, *, start_within_s: float = 120.0, grace_s: float = 2.0
    ) -> None:
        self._name = name
        self._opener = opener
        self._stop = stop
        self._start_within_s = start_within_s
        self._grace_s = grace_s
        self._child: _Child | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is none."""
        return None if self._child is None else self._child.process.pid

    def ready(self, give_up: Callable[[], bool] = _never) -> Mapping[str, object]:
        """Have a child with an open device, starting one if need be; returns what it says of the device.

        A start may take minutes. `give_up` is called every 100 ms of it; when it returns True, GaveUp is raised. Raises
        BrokenSlot when the device cannot be opened, StopRequested when asked to stop meanwhile.
        """
        if self._child is not None and wait([self._child.process.sentinel], 0):
            log.warning("child died while idle", exit_code=self._died(self._child).exit_code)
            self.close()
        if self._child is None:
            self._child = self._start(give_up)
        return self._child.device

    def run(
        self, request: Request, *, timeout_s: float, beat_s: float, beat: Beat, keep: Keep = _keep_nothing
    ) -> Ending:
        """Run one request. Every `beat_s` seconds `beat` is called with the latest progress, if any is new; `keep` is
        given the points of a benchmark as they begin and end.

        After any ending but a plain answer the child is gone, and `ready` starts the next.
        """
        try:
            ending = self._watch(request, timeout_s, beat_s, beat, keep)
        except BaseException:
            self.close()  # or it would answer this request when asked the next
            raise
        if not isinstance(ending, Success) and not (isinstance(ending, Failure) and not ending.replace):
            self.close()
        return ending

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._end(self._child.process)
            self._child.connection.close()
            self._child = None

    def _watch(self, request: Request, timeout_s: float, beat_s: float, beat: Beat, keep: Keep) -> Ending:
        child = self._child
        assert child is not None, "ready() comes first"
        deadline = time.monotonic() + timeout_s
        next_beat = time.monotonic() + beat_s
        progress: Progress | None = None
        try:
            child.connection.send(request)
        except OSError:
            return self._died(child)
        while (now := time.monotonic()) < deadline:
            if now >= next_beat:
                verdict = beat(progress)
                if verdict is not Verdict.GO_ON:
                    return Halt.CANCELLED if verdict is Verdict.CANCEL else Halt.ABANDONED
                progress, next_beat = None, time.monotonic() + beat_s
            heard = self._listen(child, min(deadline, next_beat) - now)
            if isinstance(heard, Progress):
                progress = heard
            elif isinstance(heard, Begun | Measured):
                keep(heard)
            elif heard is not None:
                return heard
        return Halt.TIMEOUT

    def _start(self, give_up: Callable[[], bool]) -> _Child:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=child_main, args=(theirs, self._opener, self._name, os.getpid()), name=f"warpfold-{self._name}"
        )
        started = time.monotonic()
        process.start()
        theirs.close()
        try:
            message = self._first_word(ours, process, give_up)
        except BaseException:
            ours.close()
            self._end(process)
            raise
        if isinstance(message, Broken):
            ours.close()
            process.join(self._grace_s)
            self._end(process)
            raise BrokenSlot(message.error)
        log.info("child ready", pid=process.pid, seconds=round(time.monotonic() - started, 3))
        return _Child(process, ours, message.device)

    def _first_word(self, connection: Connection, process: SpawnProcess, give_up: Callable[[], bool]) -> Ready | Broken:
        stop, give_up_at = self._stop.fileno(), time.monotonic() + self._start_within_s
        while not (found := wait([connection, process.sentinel, stop], _LOOK_EVERY_S)):
            if give_up():
                raise GaveUp
            if time.monotonic() >= give_up_at:
                raise BrokenSlot(f"the device did not open within {self._start_within_s:g} s")
        if connection in found:
            try:
                message: Ready | Broken = connection.recv()
            except EOFError:
                pass
            else:
                return message
        elif stop in found:
            raise StopRequested
        process.join(self._grace_s)  # its files are closed before its exit code is known
        raise BrokenSlot(f"the child ended with code {process.exitcode} before its device was open")

    def _listen(self, child: _Child, seconds: float) -> News | Ending | None:
        """What comes first: a message of the child, its death, a request to stop, or None when the time is over."""
        sentinel, stop = child.process.sentinel, self._stop.fileno()
        found = wait([child.connection, sentinel, stop], max(0.0, seconds))
        if child.connection in found:  # first, for the last message of a dead child still counts
            try:
                message: News | Success | Failure = child.connection.recv()
            except (EOFError, OSError):
                return self._died(child)
            return message
        if sentinel in found:
            return self._died(child)
        return Halt.STOPPING if stop in found else None

    def _died(self, child: _Child) -> Died:
        child.process.join(self._grace_s)
        return Died(child.process.exitcode)

    def _end(self, process: SpawnProcess) -> None:
        """SIGTERM, and SIGKILL if it has no effect in time."""
        if process.is_alive():
            process.terminate()
            process.join(self._grace_s)
        if process.is_alive():
            process.kill()
            process.join(self._grace_s)
