"""Runs claimed jobs in a slot: a job alone, or a group of small ones, which run one after another, and are claimed and
ended several at a time (docs/decisions/0021-small-jobs-in-groups.md).

The child has the next leases while it runs one, and a thread of the parent claims and stores jobs meanwhile, so that
none of them waits for another. Each job keeps a lease, a deadline and an end of its own: if the child is lost, only the
job that it was running is lost with it, and the others go on in the next child. A job alone is a group of one.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ParamSpec, Protocol, TypeVar
from uuid import UUID

import structlog
from redis import RedisError
from sqlalchemy.exc import StatementError
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import DATABASE_LOST
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Failure, Lease, Success
from warpfold.app.jobs.leases import ClaimedGroup
from warpfold.worker.child_process import BrokenSlot
from warpfold.worker.endings import Place, put_back, record_attempt, store, store_together
from warpfold.worker.lease_exchange import Died, EndCause, Ending, Hung, LeaseExchange
from warpfold.worker.messages import Measured, News, PointBegun, Progress, Pulse
from warpfold.worker.points import Points
from warpfold.worker.stop import StopRequested, WaitAbandoned

log: FilteringBoundLogger = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

_AT_ONCE = 64
"""Most jobs that one transaction claims or ends."""
_AT_FIRST = 16
"""Most jobs that the first claim behind the first job takes: the child has nothing to do meanwhile."""
_AHEAD = 32
"""Most leases that the child has at a time, including the one that it runs."""
_STORE_AFTER_S = 0.02
"""A result waits at most this long for other results, which are stored with it."""
_LONG_S = 0.02
"""A job that has run for this time is not small after all: nothing more is claimed to wait behind it."""
_NAP_S = 0.0015
"""The pause between two looks at a child that has several leases: the parent need not wake up for each answer."""
_LOOK_AGAIN_S = 0.005
"""The pause between two looks at an empty queue, while the group still has work."""
_TURN_S = 1.0
"""After this time the group claims nothing more, because other slots may wait for the GPU."""


class WaitingMessages(Protocol):
    """The messages that wait behind a job in its slot's queue. Both methods may raise redis.RedisError."""

    def waiting(self, at_most: int) -> Sequence[tuple[UUID, int]]:
        """The first attempts in the queue: the ids of their jobs, and their numbers."""
        ...

    def forget(self, attempts: Collection[tuple[UUID, int]]) -> None:
        """Remove the messages of attempts that were claimed, or that nobody can claim any more."""
        ...


@dataclass(slots=True)
class _Member:
    """A claimed job of the group, the points that it has measured, when the child began it, and when it ended."""

    lease: Lease
    points: Points = field(default_factory=Points)
    began: float = 0.0
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: float = 0.0
    ended_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    over: bool = False
    """Whether its end is stored already, or another worker has the job, although the child still has the lease."""

    def begin(self) -> None:
        if not self.began:  # else another child goes on with it
            self.began, self.began_at = time.monotonic(), datetime.now(UTC)

    def end(self) -> None:
        self.ended, self.ended_at = time.monotonic(), datetime.now(UTC)


_Ended = tuple[_Member, Ending]


class Group:
    """The jobs that a slot has claimed and not ended. One object serves one group, and one thread calls it."""

    def __init__(self, place: Place, behind: WaitingMessages | None = None) -> None:
        self._place = place
        self._behind = behind  # None when nothing more is to be claimed
        self._waiting: deque[_Member] = deque()  # claimed, in their order, not sent to the child yet
        self._sent: deque[_Member] = deque()  # sent to the child, which runs the first
        self._ended: deque[_Ended] = deque()  # not stored yet
        self._desk: ThreadPoolExecutor | None = None
        self._claiming: Future[ClaimedGroup] | None = None
        self._storing: Future[None] | None = None
        self._stored: Sequence[_Ended] = ()  # the jobs that `_storing` stores
        self._since = time.monotonic()
        self._next_beat = self._since + place.settings.heartbeat_s
        self._progress: Progress | None = None
        self._answered = 0
        self._looked = False
        self._claimed = False
        self._look_again = 0.0

    def run(self, first: Lease) -> None:
        """Run a claimed job and, if it is small, the small ones behind it, until none is left or the turn of this group
        is over."""
        if not first.small:
            self._behind = None
        self._waiting.append(_Member(first))
        self._place.show(first.job_id)
        try:
            with self._place.turn.hold(self._given_up):
                self._since = time.monotonic()
                while self._waiting or self._sent or self._claiming is not None:
                    self._place.slot.ready(self._given_up)
                    with self._place.slot.exchange() as exchange:
                        self._exchange(exchange)
                    self._waiting.extendleft(reversed([member for member in self._sent if not member.over]))
                    self._sent.clear()
                    if self._place.slot.pid is None:
                        self._store_all()  # now that a child that was ended writes no more files
            self._store_all()
        except (WaitAbandoned, StopRequested):
            self._put_back()
        except BrokenSlot:
            self._put_back()
            raise
        finally:
            if self._desk is not None:
                self._desk.shutdown()

    def _exchange(self, exchange: LeaseExchange) -> None:
        """Go on until the child has nothing left to do, or cannot be used any more."""
        while True:
            self._take_in_claimed()
            self._claim_more()
            self._send(exchange)
            self._look_behind_first()
            if not self._sent and not self._waiting and self._claiming is None:
                return
            self._store_some()
            if not self._beat():
                return
            if not self._sent:
                if self._claiming is not None:
                    wait([self._claiming], timeout=_NAP_S)
                continue
            if not self._receive(exchange):
                return

    def _send(self, exchange: LeaseExchange) -> None:
        while self._waiting and len(self._sent) < _AHEAD:
            member = self._waiting.popleft()
            if not self._sent:
                self._show(member)
            self._sent.append(member)
            exchange.send(member.lease)

    def _show(self, member: _Member) -> None:
        member.begin()
        self._place.show(member.lease.job_id)

    def _receive(self, exchange: LeaseExchange) -> bool:
        """Listen to the child for a while; returns False if the child cannot be used any more."""
        now = time.monotonic()
        deadline = self._sent[0].began + self._sent[0].lease.timeout_s
        if now >= deadline:
            return self._take_in(EndCause.TIMEOUT)
        several = len(self._sent) > 1
        if several:
            time.sleep(_NAP_S)
        busy = several or self._ended or self._claiming is not None or self._storing is not None
        until = min(deadline, self._next_beat, now + _STORE_AFTER_S if busy else deadline)
        received = exchange.receive(max(0.0, until - time.monotonic()))
        while received is not None:
            if not self._take_in(received):
                return False
            if not self._sent:
                return True
            received = exchange.receive(0.0)
        return True

    def _take_in(self, received: News | Pulse | Ending) -> bool:
        """Take down a message of the child, or that its job is to end; returns False if the child cannot be used any
        more. The other jobs wait for the next child."""
        match received:
            case Progress():
                self._progress = received
            case PointBegun() | Measured():
                self._sent[0].points.take(received)
            case EndCause.STOPPING:
                raise StopRequested
            case Success() | Failure() | EndCause() | Died() | Hung():
                self._progress = None
                self._end(self._sent.popleft(), received)
                replaced = isinstance(received, Failure) and received.replace
                if replaced or not isinstance(received, Success | Failure):
                    return False
                self._answered += 1
                if self._sent:
                    self._show(self._sent[0])
        return True

    def _end(self, member: _Member, ending: Ending) -> None:
        """Note how a job ended. Another child goes on with a benchmark whose child was lost."""
        rest = member.points.rest(member.lease, ending)
        if rest is not None:
            log.warning("child lost in the middle of a benchmark", points=len(rest.done), **rest.log_fields)
            member.lease = rest
            self._waiting.appendleft(member)
        elif not member.over:
            member.end()
            self._ended.append((member, ending))

    # --- the leases of the group, while one of its jobs runs

    def _given_up(self) -> bool:
        """Keep the leases alive while the group waits for a GPU or a child, which may take long; returns whether to
        give up the wait."""
        self._beat()
        return self._place.stop.requested or not self._waiting

    def _beat(self) -> bool:
        """Renew all leases from time to time, and end the jobs that were cancelled or lost; returns False if the
        running job is one of them, which ends the child. While Postgres is away the jobs go on: nobody can take them
        back meanwhile."""
        self._place.turned()
        if time.monotonic() < self._next_beat:
            return True
        settings = self._place.settings
        members = [member for member in (*self._sent, *self._waiting) if not member.over]
        ended = [member.lease for member, _ in (*self._stored, *self._ended)]
        try:
            held = [member.lease for member in members] + ended
            asked_to_cancel = self._place.database.step(leases.renew, held, settings.lease_s)
            self._store_progress()
        except DATABASE_LOST as error:
            log.warning("leases not renewed", error=str(error).strip())
            asked_to_cancel = {member.lease.job_id: False for member in members}
        self._next_beat = time.monotonic() + settings.heartbeat_s
        head = self._sent[0] if self._sent else None
        for member in members:
            cancelled = asked_to_cancel.get(member.lease.job_id)
            if cancelled is False:
                continue
            ending = EndCause.CANCELLED if cancelled else EndCause.ABANDONED
            if member is head:
                return self._take_in(ending)
            self._end(member, ending)
            member.over = True
        self._waiting = deque(member for member in self._waiting if not member.over)
        return True

    def _store_progress(self) -> None:
        """Store how far the running job is, if there is news."""
        progress, self._progress = self._progress, None
        if progress is None or not self._sent:
            return
        lease = self._sent[0].lease
        try:
            self._place.database.step(leases.note_progress, lease, progress.done, progress.total, progress.unit)
        except DATABASE_LOST:
            raise
        except StatementError:
            log.exception("progress not stored", **lease.log_fields)

    # --- claiming

    def _claim_more(self) -> None:
        """Claim more jobs before the child runs out of them, unless the running job turns out to be long."""
        behind, have = self._behind, len(self._waiting) + len(self._sent)
        if behind is None or self._claiming is not None or have > _AT_ONCE // 2:
            return
        now = time.monotonic()
        if now - self._since > _TURN_S or self._place.stop.requested:
            self._behind = None
        elif self._answered and now >= self._look_again and not self._runs_long(now):
            self._claiming = self._at_desk(self._claim, behind, _AT_ONCE if self._claimed else _AT_FIRST)

    def _runs_long(self, now: float) -> bool:
        return bool(self._sent) and now - self._sent[0].began > _LONG_S

    def _look_behind_first(self) -> None:
        """Look whether other jobs wait behind the first job while the child runs it. Most jobs come alone, and then the
        group is complete. Nothing is claimed yet, because the first job may turn out to be long."""
        if self._looked or self._behind is None or not self._sent:
            return
        self._looked = True
        try:
            if not self._behind.waiting(1):
                self._behind = None
        except RedisError:  # the consumer meets the same error at the next message
            self._behind = None

    def _claim(self, behind: WaitingMessages, at_most: int) -> ClaimedGroup:
        attempts = behind.waiting(at_most)
        claimed = self._place.database.step(
            leases.claim_behind, attempts, self._place.worker, self._place.settings.lease_s
        )
        try:
            behind.forget([each for each in attempts if each[0] not in claimed.waiting])
        except RedisError as error:  # the jobs are claimed, so their messages do nothing any more
            log.warning("could not remove messages", error=str(error))
            return ClaimedGroup(claimed.leases, {job_id for job_id, _ in attempts})
        return claimed

    def _take_in_claimed(self, *, wait: bool = False) -> None:
        if self._claiming is None or not (wait or self._claiming.done()):
            return
        claiming, self._claiming = self._claiming, None
        try:
            claimed = claiming.result()
        except (RedisError, *DATABASE_LOST) as error:
            log.warning("nothing more claimed", error=str(error).strip())
            self._behind = None
            return
        self._claimed = True
        self._waiting.extend(_Member(lease) for lease in claimed.leases)
        if not claimed.leases:
            self._look_again = time.monotonic() + _LOOK_AGAIN_S
        # A job that was left waiting has the slot next; and where no work is left, the consumer waits for some.
        if claimed.waiting or not (claimed.leases or self._sent or self._waiting):
            self._behind = None

    # --- storing

    def _store_some(self) -> None:
        if self._storing is not None and self._storing.done():
            self._storing.result()
            self._storing, self._stored = None, ()
        if self._storing is not None or not self._ended:
            return
        oldest, _ = self._ended[0]
        if not self._sent or len(self._ended) >= _AT_ONCE or time.monotonic() - oldest.ended >= _STORE_AFTER_S:
            self._stored = [self._ended.popleft() for _ in range(min(_AT_ONCE, len(self._ended)))]
            self._storing = self._at_desk(self._store, self._stored)

    def _store_all(self) -> None:
        """Store the ended jobs in this thread, at once."""
        if self._storing is not None:
            self._storing.result()
            self._storing, self._stored = None, ()
        while self._ended:
            self._store([self._ended.popleft() for _ in range(min(_AT_ONCE, len(self._ended)))])

    def _store(self, ended: Sequence[_Ended]) -> None:
        together = list[tuple[Lease, Success]]()
        for member, ending in ended:
            if isinstance(ending, Success) and ending.stored is None:
                together.append((member.lease, ending))
            else:
                store(self._place, member.lease, ending, member.points.done)
        store_together(self._place, together)
        for member, ending in ended:
            span, points = (member.began_at, member.ended_at), member.points.spans
            record_attempt(self._place.tracing, member.lease, self._place.worker, ending, span=span, points=points)

    def _put_back(self) -> None:
        """Store the ended jobs and give the others back, because the worker stops."""
        self._take_in_claimed(wait=True)
        rest = [member for member in (*self._sent, *self._waiting) if not member.over]
        self._sent.clear()
        self._waiting.clear()
        self._store_all()
        put_back(self._place, [(member.lease, member.points.done) for member in rest])

    def _at_desk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._desk is None:
            self._desk = ThreadPoolExecutor(1, thread_name_prefix="desk")
        return self._desk.submit(work, *args, **kwargs)
