"""The warm child of a slot: it is started ahead of need, watched while it works, and ended when it must be; then a
spare child takes its place (docs/decisions/0018-a-spare-child.md)."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.jobs.attempt import Failure, Success
from warpfold.contract.backoff import Backoff
from warpfold.worker.child import PipeClosed
from warpfold.worker.child_process import BrokenSlot, Child
from warpfold.worker.lease_exchange import ChildSilence, Died, EndCause, Ending, LeaseExchange
from warpfold.worker.messages import News, Opener, Pulse, Rated, Spare, Timed
from warpfold.worker.nursery import Nursery
from warpfold.worker.stop import Stop

log: FilteringBoundLogger = structlog.get_logger()


_SPARE_AGAIN_S = 1.0
_SPARE_AGAIN_AT_LAST_S = 300.0


def _never() -> bool:
    return False


class Slot:
    """One child process that works and, if there is a `spare`, a second one that stands by to take its place.

    `opener` is called in the child, which `nursery` forks. All methods belong to the thread that made the slot.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        stop: Stop,
        nursery: Nursery,
        *,
        start_within_s: float = 120.0,
        grace_s: float = 2.0,
        silent_s: float = 15.0,
        spare: Spare | None = None,
        open_s: float | None = None,
    ) -> None:
        """A child that sends nothing for `silent_s` seconds in the middle of a job, and uses no processor time in the
        second half of them, counts as hung. With `open_s` the child has devices of other slots open after a job, and
        goes when no other job has come within that time."""
        self._name = name
        self._opener = opener
        self._stop = stop
        self._nursery = nursery
        self._start_within_s = start_within_s
        self._grace_s = grace_s
        self._silent_s = silent_s
        self._open_s = open_s
        self._closes_at: float | None = None
        self._child: Child | None = None
        self._rates: Mapping[str, object] | None = None
        self._spare_does = spare
        self._spare: Child | None = None
        self._spare_pause = Backoff(_SPARE_AGAIN_S, _SPARE_AGAIN_AT_LAST_S)
        self._spare_again = 0.0

    @property
    def pid(self) -> int | None:
        """The child's process id; None while no child runs."""
        return None if self._child is None else self._child.pid

    @property
    def rates(self) -> Mapping[str, object] | None:
        """How fast the slot is, by the latest report of a child. None before the first report."""
        if self._child is not None:
            self._rates = self._child.rates or self._rates
        return self._rates

    def hear(self) -> None:
        """Receive the messages that the idle child has sent. Returns at once."""
        if self._child is not None:
            self._child.hear()

    def ready(self, give_up: Callable[[], bool] = _never) -> Mapping[str, object]:
        """Make sure that a child has an open device, and start one if need be; returns how it describes the device.

        A start may take minutes. `give_up` is called every 100 ms of it; when it returns True, WaitAbandoned is raised.
        Raises BrokenSlot when the device cannot be opened, StopRequested when asked to stop meanwhile.
        """
        if self._child is not None and self._child.is_dead():
            log.warning("child died while idle", exit_code=self._child.exit_code())
            self._end_child()
        if self._child is not None and self._child.is_stopped():
            log.warning("child was stopped while idle", pid=self.pid)
            self._end_child()
        if self._child is None:
            self._child = self._promoted(give_up) or self._started(give_up)
        return self._child.device

    def close_devices(self) -> None:
        """End a child that has had the devices of other slots open for long enough since its last job. It is to be
        called often while no job runs, before `ready`."""
        if self._closes_at is not None and time.monotonic() >= self._closes_at:
            log.info("devices closed", pid=self.pid)
            self._end_child()

    @property
    def spare_pid(self) -> int | None:
        """The process id of the spare child, None while none stands by."""
        return self._spare.pid if self._spare is not None and self._spare.stands_by else None

    def keep_spare(self) -> None:
        """Look after the spare child: start one where none stands by, and replace one that died. Returns at once. It is
        to be called often while no job runs, after `ready`."""
        if self._spare_does is None or self._child is None:
            return
        if self._spare is not None:
            self._look_at(self._spare)
        if self._spare is None and time.monotonic() >= self._spare_again:
            self._spare = self._spawned(self._spare_does)

    @contextmanager
    def exchange(self) -> Iterator[LeaseExchange]:
        """Have the child run attempts, one after another; more may be sent while it runs one. After an exchange that
        left a lease without an answer, or that had any ending but a plain answer, the child is gone, and `ready` has
        the next: the spare child if there is one, else a new one."""
        assert self._child is not None, "ready() comes first"
        silence = ChildSilence(self._child, self._silent_s)
        exchange = LeaseExchange(self._child, self._listen, silence, self._silent_s)
        try:
            yield exchange
        finally:
            if not exchange.over:
                self._end_child()
            self._close_later()

    def close(self) -> None:
        """End the child and the spare child."""
        self._end_child()
        self._end_spare()

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
        self._closes_at = None

    def _close_later(self) -> None:
        if self._open_s is not None and self._child is not None:
            self._closes_at = time.monotonic() + self._open_s

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._spare.end()
            self._spare = None

    def _spawned(self, spare: Spare | None = None) -> Child:
        pulse_s = self._silent_s / 10
        return Child(self._name, self._opener, self._nursery, pulse_s=pulse_s, grace_s=self._grace_s, spare=spare)

    def _started(self, give_up: Callable[[], bool]) -> Child:
        child = self._spawned()
        try:
            child.opened(self._stop, self._start_within_s, give_up)
        except BaseException:
            child.end()
            raise
        log.info("child ready", pid=child.pid, seconds=round(child.age_s, 3), spare=False)
        return child

    def _promoted(self, give_up: Callable[[], bool]) -> Child | None:
        """The spare child, with its device open; None if there is no spare child, or if it is stopped or cannot open
        its device."""
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        since = time.monotonic()
        try:
            if not spare.is_stopped():
                spare.opened(self._stop, self._start_within_s, give_up)
                log.info("child ready", pid=spare.pid, seconds=round(time.monotonic() - since, 3), spare=True)
                return spare
            log.warning("spare child was stopped", pid=spare.pid)
        except BrokenSlot as error:  # a child that is started anew shows whether the slot is broken
            log.warning("spare child is of no use", pid=spare.pid, error=str(error))
        except BaseException:
            spare.end()
            raise
        spare.end()
        return None

    def _look_at(self, spare: Child) -> None:
        stood_by = spare.stands_by
        try:
            spare.look()
        except BrokenSlot as error:
            if not stood_by:  # the next spare child may fail in the same way
                self._spare_again = time.monotonic() + self._spare_pause.next()
            log.warning("spare child lost", pid=spare.pid, error=str(error))
            self._end_spare()
        else:
            if spare.stands_by and not stood_by:
                log.info("spare child stands by", pid=spare.pid, seconds=round(spare.age_s, 3))
                self._spare_pause.reset()

    def _spare_the_processor(self) -> None:
        """End a spare child that is not prepared yet, because the job measures times. `keep_spare` starts one after the
        job."""
        if self._spare is not None:
            self._look_at(self._spare)
        if self._spare is not None and not self._spare.stands_by:
            self._end_spare()

    def _listen(self, child: Child, seconds: float) -> News | Pulse | Ending | None:
        """What comes first: a message of the child, its death, a request to stop, or None when the time is over or only
        a part of a message came. Meanwhile, what the child has not read of a lease yet is sent on."""
        sentinel, stop = child.sentinel, self._stop.fileno()
        readable = child.pipe.wait(seconds, sentinel, stop)
        with suppress(OSError):  # a dead child takes no more, but the messages that it sent before still count
            child.pipe.flush()
        pipe_ready, ended = child.pipe.fileno() in readable, sentinel in readable
        if pipe_ready or ended:  # the pipe first, for the last message of a dead child still counts
            try:
                message: News | Rated | Pulse | Success | Failure | None = child.pipe.receive()
            except PipeClosed:
                return Died(child.exit_code())
            if isinstance(message, Rated):
                child.rates = message.rates
                return None
            if isinstance(message, Timed):
                self._spare_the_processor()
                return None
            if message is not None:
                return message
        if ended and not pipe_ready:
            return Died(child.exit_code())
        return EndCause.STOPPING if stop in readable else None
