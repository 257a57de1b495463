"""The life of one attempt on its worker: claim it, have the child run it, store how it ended."""

import time
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from sqlalchemy.exc import StatementError
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from warpfold.app.db import DATABASE_LOST
from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Lease
from warpfold.contract.states import Reason
from warpfold.worker.attempt_span import AttemptSpan, attempt_span
from warpfold.worker.endings import Place, patiently, store
from warpfold.worker.failures import incident
from warpfold.worker.group import EmptyQueue, Group, WaitingMessages
from warpfold.worker.lease_exchange import EndCause, Ending
from warpfold.worker.messages import Measured, PointBegun, Progress
from warpfold.worker.points import Points
from warpfold.worker.slot import Verdict
from warpfold.worker.stop import StopRequested, WaitAbandoned

log: FilteringBoundLogger = structlog.get_logger()

_NOTHING = EmptyQueue()


def run_job(
    place: Place, job_id: UUID, attempt: int, behind: WaitingMessages = _NOTHING, ahead: Lease | None = None
) -> None:
    """Run one attempt of a job from claim to end; for a small job, run the small jobs `behind` it, too. Does nothing if
    the attempt cannot be claimed. The child runs the attempt `ahead` of its claim where it may.

    Raises one of DATABASE_LOST if Postgres cannot be reached for the claim: then nothing has happened, or the answer
    was lost on its way, and the attempt is taken back when its lease expires.
    """
    lease = _claimed(place, job_id, attempt, ahead)
    if lease is None:
        log.info("dropped", job=str(job_id), attempt=attempt)
        return
    try:
        if lease.small:
            _run_group(place, lease, behind)
        else:
            _run_alone(place, lease)
    except DATABASE_LOST:
        raise
    except StatementError as error:  # Postgres refuses something about this job, and would refuse it again
        sentence = incident(error, lease.job_id, lease.attempt)
        patiently(place, leases.fail, lease, Reason.INTERNAL, sentence)
    finally:
        place.slot.forget()  # an attempt was begun and not run to its end, because the worker stops
        place.show(None)


def _claimed(place: Place, job_id: UUID, attempt: int, ahead: Lease | None) -> Lease | None:
    lease = None
    if ahead is not None and not place.turn.is_shared:
        place.slot.begin(ahead)
    try:
        lease = place.database.quickly(leases.claim, job_id, attempt, place.worker, place.settings.lease_s)
    finally:
        if lease is None:
            place.slot.forget()
        else:
            place.slot.keep(lease)
    return lease


def _run_group(place: Place, lease: Lease, behind: WaitingMessages) -> None:
    pulse = _Pulse(place, lease)
    try:
        with place.turn.hold(pulse.give_up):
            Group(place, behind).run(lease)
    except WaitAbandoned:
        store(place, lease, pulse.halted)


def _run_alone(place: Place, lease: Lease) -> None:
    points = Points()
    place.show(lease.job_id)
    with bound_contextvars(**lease.log_fields), attempt_span(place.tracing, lease, place.worker) as span:
        ending = _run(place, lease, points, span)
        store(place, lease, ending, points.done)
        span.ended(ending)


def _run(place: Place, lease: Lease, points: Points, span: AttemptSpan) -> Ending:
    beat_s = place.settings.heartbeat_s
    pulse = _Pulse(place, lease)

    def keep(news: PointBegun | Measured) -> None:
        span.heard(news)
        points.take(news)

    try:
        with place.turn.hold(pulse.give_up):
            if place.slot.pid is None:  # the child had begun an attempt that the claim did not confirm
                place.slot.ready(pulse.give_up)
            span.begun()
            deadline = time.monotonic() + lease.timeout_s
            while True:
                left_s = deadline - time.monotonic()
                ending = place.slot.run(lease, timeout_s=left_s, beat_s=beat_s, beat=pulse.beat, keep=keep)
                rest = points.rest(lease, ending)
                if rest is None:
                    return ending
                log.warning("child lost in the middle of a benchmark", points=len(rest.done))
                lease = rest
                place.slot.ready(pulse.give_up)
    except WaitAbandoned:
        return pulse.halted
    except StopRequested:
        return EndCause.STOPPING


@dataclass
class _Pulse:
    """Keeps a lease alive, passes progress on, and finds out whether the job has to be ended."""

    place: Place
    lease: Lease
    halted: EndCause = EndCause.ABANDONED
    _next: float = field(default_factory=time.monotonic)

    def beat(self, progress: Progress | None) -> Verdict:
        """Renew the lease. While Postgres is away the job goes on: nobody can take it back meanwhile."""
        self.place.turned()
        done = None if progress is None else (progress.done, progress.total, progress.unit)
        try:
            standing = self.place.database.step(leases.renew, self.lease, self.place.settings.lease_s, done)
        except DATABASE_LOST as error:
            log.warning("lease not renewed", error=str(error).strip())
            return Verdict.GO_ON
        except StatementError:
            if done is None:
                raise
            log.exception("progress not stored")
            return self.beat(None)
        if not standing.held:
            return Verdict.ABANDON
        return Verdict.CANCEL if standing.cancel_requested else Verdict.GO_ON

    def give_up(self) -> bool:
        """Whether to give up the wait for a GPU. The wait may be long, so this renews the lease meanwhile."""
        self.place.turned()
        if self.place.stop.requested:
            self.halted = EndCause.STOPPING
            return True
        if time.monotonic() < self._next:
            return False
        verdict = self.beat(None)
        self._next = time.monotonic() + self.place.settings.heartbeat_s
        self.halted = EndCause.CANCELLED if verdict is Verdict.CANCEL else EndCause.ABANDONED
        return verdict is not Verdict.GO_ON
