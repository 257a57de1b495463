"""The warm child of a slot: started ahead of need, watched while it works, ended when it must be."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

import psutil
import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.worker.child import child_main
from warpfold.worker.messages import (
    Begun,
    Broken,
    Failure,
    Measured,
    News,
    Opener,
    Progress,
    Pulse,
    Ready,
    Request,
    Success,
)
from warpfold.worker.pipe import ParentEnd, PipeClosed, pipe
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


@dataclass(frozen=True, slots=True)
class Hung:
    """The child neither answered nor used its processor for so long in the middle of a job: it is stopped, or as good
    as stopped."""

    seconds: float


Ending = Success | Failure | Halt | Died | Hung
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
    pipe: ParentEnd
    device: Mapping[str, object]


class Slot:
    """One child process at a time, spawned (a CUDA context does not survive a fork).

    `opener` is called in the child. All methods belong to the thread that made the slot: Linux ends the child when
    the thread that spawned it ends.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        stop: Stop,
        *,
        start_within_s: float = 120.0,
        grace_s: float = 2.0,
        silent_s: float = 15.0,
    ) -> None:
        """A child that says nothing for `silent_s` in the middle of a job, and does nothing in the second half of that
        time, is taken for hung."""
        self._name = name
        self._opener = opener
        self._stop = stop
        self._start_within_s = start_within_s
        self._grace_s = grace_s
        self._silent_s = silent_s
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
        if self._child is not None and _is_stopped(self._child.process):
            log.warning("child was stopped while idle", pid=self.pid)
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
            self._child.pipe.close()
            self._child = None

    def _watch(self, request: Request, timeout_s: float, beat_s: float, beat: Beat, keep: Keep) -> Ending:
        child = self._child
        assert child is not None, "ready() comes first"
        deadline = time.monotonic() + timeout_s
        next_beat = time.monotonic() + beat_s
        progress: Progress | None = None
        quiet = _Quiet(child.process, self._silent_s)
        try:
            child.pipe.send(request)
        except OSError:
            return self._died(child)
        while (now := time.monotonic()) < deadline:
            if now >= next_beat:
                verdict = beat(progress)
                if verdict is not Verdict.GO_ON:
                    return Halt.CANCELLED if verdict is Verdict.CANCEL else Halt.ABANDONED
                progress, next_beat = None, time.monotonic() + beat_s
            listening_s = max(0.0, min(deadline, next_beat) - now)
            heard = self._listen(child, listening_s)
            # However long it took: if we were stopped meanwhile, the child may not have been.
            quiet.note(heard is not None, min(listening_s, time.monotonic() - now))
            if isinstance(heard, Progress):
                progress = heard
            elif isinstance(heard, Begun | Measured):
                keep(heard)
            elif heard is not None and not isinstance(heard, Pulse):
                return heard
            elif quiet.too_long:
                return Hung(self._silent_s)
        return Halt.TIMEOUT

    def _start(self, give_up: Callable[[], bool]) -> _Child:
        context = get_context("spawn")
        ours, theirs = pipe()
        process = context.Process(
            target=child_main,
            args=(theirs, self._opener, self._name, os.getpid(), self._silent_s / 10),
            name=f"warpfold-{self._name}",
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

    def _first_word(self, ours: ParentEnd, process: SpawnProcess, give_up: Callable[[], bool]) -> Ready | Broken:
        stop, give_up_at = self._stop.fileno(), time.monotonic() + self._start_within_s
        while True:
            found = ours.wait(_LOOK_EVERY_S, process.sentinel, stop)
            if ours.fileno() in found:
                try:
                    message: Ready | Broken | None = ours.receive()
                except PipeClosed:
                    break
                if message is not None:
                    return message
            elif stop in found:
                raise StopRequested
            elif found:
                break
            elif give_up():
                raise GaveUp
            if time.monotonic() >= give_up_at:
                raise BrokenSlot(f"the device did not open within {self._start_within_s:g} s")
        process.join(self._grace_s)  # its files are closed before its exit code is known
        raise BrokenSlot(f"the child ended with code {process.exitcode} before its device was open")

    def _listen(self, child: _Child, seconds: float) -> News | Pulse | Ending | None:
        """What comes first: a message of the child, its death, a request to stop, or None when the time is over or a
        part of a message came. A request that the child has not taken yet is sent on meanwhile."""
        sentinel, stop = child.process.sentinel, self._stop.fileno()
        found = child.pipe.wait(seconds, sentinel, stop)
        try:
            child.pipe.flush()
            if child.pipe.fileno() in found:  # first, for the last message of a dead child still counts
                message: News | Pulse | Success | Failure | None = child.pipe.receive()
                return Halt.STOPPING if message is None and stop in found else message
        except (PipeClosed, OSError):
            return self._died(child)
        if sentinel in found:
            return self._died(child)
        return Halt.STOPPING if stop in found else None

    def _died(self, child: _Child) -> Died:
        child.process.join(self._grace_s)
        return Died(child.process.exitcode)

    def _end(self, process: SpawnProcess) -> None:
        """SIGTERM, and SIGKILL if it has no effect in time, or cannot have one."""
        if process.is_alive() and not _is_stopped(process):
            process.terminate()
            process.join(self._grace_s)
        if process.is_alive():
            process.kill()
            process.join(self._grace_s)


class _Quiet:
    """How long a child has said nothing while we listened, and whether it did anything in the later half of that."""

    def __init__(self, process: SpawnProcess, allowed_s: float) -> None:
        self._process = process
        self._allowed_s = allowed_s
        self._quiet_s = 0.0
        self._used_by_half: float | None = None

    def note(self, heard: bool, seconds: float) -> None:
        """We listened for so long, and heard something or nothing."""
        if heard:
            self._quiet_s, self._used_by_half = 0.0, None
            return
        self._quiet_s += seconds
        if self._used_by_half is None and self._quiet_s >= self._allowed_s / 2:
            self._used_by_half = _cpu_s(self._process)

    @property
    def too_long(self) -> bool:
        """Whether it has. One that computes, and whose pulse cannot be heard for it, gets half of the time again."""
        if self._quiet_s < self._allowed_s:
            return False
        used = _cpu_s(self._process)
        if used == self._used_by_half:
            return True
        self._quiet_s, self._used_by_half = self._allowed_s / 2, used
        return False


def _cpu_s(process: SpawnProcess) -> float:
    """What the process and its threads have had of the processor, in seconds; 0 if it is gone."""
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _is_stopped(process: SpawnProcess) -> bool:
    try:
        return bool(psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
