"""A child process of a slot, as its parent sees it: started, waited for until its device is open, and ended."""

import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from subprocess import TimeoutExpired

import psutil

from warpfold.worker.child import CHILD_END, ParentEnd, PipeClosed, child_main, pipe
from warpfold.worker.forks import Order
from warpfold.worker.messages import Broken, Open, Opener, Prepared, Rated, Ready, Spare
from warpfold.worker.nursery import Nursery
from warpfold.worker.stop import Stop, StopRequested, WaitAbandoned

CHILD = "warpfold.worker.child"
"""What the command line of a child says, besides its slot."""

_LOOK_EVERY_S = 0.1


class BrokenSlot(Exception):
    """The child could not open its device."""


class Child:
    """A process of its own, forked by a nursery. Making the object starts the process.

    A child opens its device at once. A spare child first prepares itself as `spare` says; after that it stands by, and
    uses no processor time.
    """

    def __init__(
        self, slot: str, opener: Opener, nursery: Nursery, *, pulse_s: float, grace_s: float, spare: Spare | None = None
    ) -> None:
        """`pulse_s` is how often the child is to say that it lives; `grace_s` how long it may take to end."""
        self._grace_s = grace_s
        self._waits_for_word = spare is not None and not spare.opens
        self._stands_by = False
        self._device: Mapping[str, object] | None = None
        self.rates: Mapping[str, object] | None = None
        """The rates of the slot as the child has reported them, None before that."""
        self._started = time.monotonic()
        self._pipe, theirs = pipe()
        with theirs:
            body = partial(child_main, opener, slot, pulse_s, spare=spare)
            self._process = nursery.start(Order(f"{CHILD} {slot}", body, [CHILD_END]), [theirs.fileno()])
        self._seen: psutil.Process | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pipe(self) -> ParentEnd:
        return self._pipe

    @property
    def sentinel(self) -> int:
        """A file number that can be read once the process has ended."""
        return self._process.sentinel

    @property
    def device(self) -> Mapping[str, object]:
        """The device as the child describes it, once it is open."""
        assert self._device is not None, "opened() comes first"
        return self._device

    @property
    def age_s(self) -> float:
        """Seconds since the start of the process."""
        return time.monotonic() - self._started

    @property
    def stands_by(self) -> bool:
        """Whether the child was prepared at the latest `look`."""
        return self._stands_by

    def is_dead(self) -> bool:
        poll = select.poll()  # multiprocessing's own wait would make a selector, and this method is called twice a job
        poll.register(self.sentinel, select.POLLIN)
        return bool(poll.poll(0))

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process, as SIGSTOP does."""
        try:
            if self._seen is None:  # the object is kept, because this method is called twice a job
                self._seen = psutil.Process(self.pid)
            return bool(self._seen.status() == psutil.STATUS_STOPPED)
        except psutil.Error:
            return False

    def used_s(self) -> float:
        """The processor time of the process and its threads, in seconds; 0 if the process is gone."""
        try:
            times = psutil.Process(self.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def exit_code(self) -> int | None:
        """The exit code of a process that is about to end; a negative code is the number of a signal."""
        with suppress(TimeoutExpired):
            return self._process.wait(self._grace_s)
        return None

    def hear(self) -> None:
        """Receive the messages that an idle child has sent, without waiting. A later call finds out whether its process
        has ended."""
        with suppress(BrokenSlot):
            while self.pipe.fileno() in self.pipe.wait(0):
                self._take_in()

    def look(self) -> None:
        """Receive the messages that a spare child has sent, without waiting. Raises BrokenSlot if it has ended or is
        about to."""
        while self.pipe.fileno() in self.pipe.wait(0):
            self._take_in()
        if self.is_dead():
            raise self._ended()

    def opened(self, stop: Stop, within_s: float, give_up: Callable[[], bool]) -> Mapping[str, object]:
        """Wait until the device is open; returns how the child describes it. A spare child that has not opened it yet
        gets the order to open it.

        Raises BrokenSlot when the device cannot be opened within `within_s` seconds, StopRequested when asked to stop
        meanwhile, and WaitAbandoned when `give_up`, which is called every 100 ms, returns True.
        """
        if self._waits_for_word:
            self._say_open()
        give_up_at = time.monotonic() + within_s
        while self._device is None:
            readable = self.pipe.wait(_LOOK_EVERY_S, self.sentinel, stop.fileno())
            if self.pipe.fileno() in readable:
                self._take_in()
            elif stop.fileno() in readable:
                raise StopRequested
            elif readable:
                raise self._ended()
            elif give_up():
                raise WaitAbandoned
            if self._device is None and time.monotonic() >= give_up_at:
                raise BrokenSlot(f"the device did not open within {within_s:g} s")
        return self._device

    def end(self) -> None:
        """Send SIGTERM, and SIGKILL if SIGTERM has no effect in time, or cannot have one."""
        if not self.is_stopped():
            self._process.terminate()
            self.exit_code()
        self._process.kill()
        self.exit_code()
        self._process.close()
        self.pipe.close()

    def _say_open(self) -> None:
        try:
            self.pipe.send(Open())
        except OSError:
            raise self._ended() from None

    def _take_in(self) -> None:
        try:
            message: Prepared | Ready | Rated | Broken | None = self.pipe.receive()
        except PipeClosed:
            raise self._ended() from None
        match message:
            case Prepared():
                self._stands_by = True
            case Ready(device, rates):
                self._device, self._stands_by, self.rates = device, True, rates
            case Rated(rates):
                self.rates = rates
            case Broken(error):
                self.exit_code()
                raise BrokenSlot(error)

    def _ended(self) -> BrokenSlot:
        return BrokenSlot(f"the child ended with code {self.exit_code()} before its device was open")
