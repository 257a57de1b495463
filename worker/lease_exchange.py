"""Receives the messages of the child that runs jobs: news and answers, and the ways in which a child can end without an
answer."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from warpfold.app.jobs.attempt import Answer, Failure, Lease, Success
from warpfold.worker.child_process import Child
from warpfold.worker.messages import News, Pulse


class EndCause(Enum):
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
    """The child neither sent anything nor used its processor for `seconds` in the middle of a job: it is stopped, or as
    good as stopped."""

    seconds: float


Ending = Answer | EndCause | Died | Hung


class LeaseExchange:
    """The leases that are sent to a child, and its answers, which come in the order of the leases."""

    def __init__(
        self,
        child: Child,
        listen: Callable[[Child, float], News | Pulse | Ending | None],
        quiet: "ChildSilence",
        silent_s: float,
    ) -> None:
        self._child = child
        self._listen = listen
        self._quiet = quiet
        self._silent_s = silent_s
        self._unanswered: deque[Lease] = deque()  # as they were claimed
        self._broken = False

    @property
    def over(self) -> bool:
        """Whether every lease has its answer, so that the child can be given others."""
        return not self._unanswered and not self._broken

    def send(self, lease: Lease) -> None:
        """Send the child one more lease. If the child is gone, `receive` says so."""
        self._unanswered.append(lease)
        with suppress(OSError):
            self._child.pipe.send(lease)

    def receive(self, seconds: float) -> News | Pulse | Ending | None:
        """The first event within `seconds`: news or the answer of the running attempt, an ending of the child or of the
        exchange, or None. After an ending that is not a plain answer, no more events come."""
        began = time.monotonic()
        received = self._listen(self._child, seconds)
        self._quiet.note(received is not None, min(seconds, time.monotonic() - began))
        if received is None and self._quiet.too_long:
            received = Hung(self._silent_s)
        if isinstance(received, Success | Failure):
            lease = self._unanswered.popleft()
            if isinstance(received, Success):
                received = received.after(lease)
            self._broken = isinstance(received, Failure) and received.replace
        elif isinstance(received, EndCause | Died | Hung):
            self._broken = True
        return received


class ChildSilence:
    """Measures how long a child has sent nothing while its parent listened, and whether it used its processor in the
    second half of that time."""

    def __init__(self, child: Child, allowed_s: float) -> None:
        self._child = child
        self._allowed_s = allowed_s
        self._quiet_s = 0.0
        self._used_by_half: float | None = None

    def note(self, received: bool, seconds: float) -> None:
        """Note that the parent listened for `seconds`, and whether a message came."""
        if received:
            self._quiet_s, self._used_by_half = 0.0, None
            return
        self._quiet_s += seconds
        if self._used_by_half is None and self._quiet_s >= self._allowed_s / 2:
            self._used_by_half = self._child.used_s()

    @property
    def too_long(self) -> bool:
        """Whether the child was silent for too long. One that computes, so that its pulse may be late, gets half of the
        time again."""
        if self._quiet_s < self._allowed_s:
            return False
        used = self._child.used_s()
        if used == self._used_by_half:
            return True
        self._quiet_s, self._used_by_half = self._allowed_s / 2, used
        return False
