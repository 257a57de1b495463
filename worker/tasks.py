"""The life of one attempt on its worker: claim it, have the child run it, store how it ended."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import StatementError
from structlog.contextvars import bound_contextvars
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.app.db import DATABASE_LOST, BlockingDatabase
from warpfold.app.jobs import leases
from warpfold.app.jobs.leases import Lease
from warpfold.app.tracing.tracing import NoTracing, Tracing
from warpfold.contract.measurement import Measurement
from warpfold.contract.states import Loss, Reason
from warpfold.worker.attempt_span import AttemptSpan, attempt_span
from warpfold.worker.failures import incident
from warpfold.worker.gpu_lock import GpuTurn
from warpfold.worker.messages import Begun, Failure, Measured, Progress, Request, Success
from warpfold.worker.points import Points
from warpfold.worker.slot import Died, Ending, Halt, Hung, Slot, Verdict
from warpfold.worker.stop import GaveUp, Stop, StopRequested

log: FilteringBoundLogger = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where attempts run: a worker, its slot, and what both need."""

    worker: str
    slot: Slot
    turn: GpuTurn
    database: BlockingDatabase
    settings: Settings
    stop: Stop
    show: Callable[[UUID | None], None] = lambda job_id: None
    """Told which job runs, None for none."""
    tracing: Tracing = field(default_factory=NoTracing)


def run_job(place: Place, job_id: UUID, attempt: int) -> None:
    """Run one attempt of a job from claim to end; does nothing if the attempt is not to be had.

    Raises one of DATABASE_LOST if Postgres cannot be reached for the claim: then nothing has happened, or the answer
    was lost on its way, and the attempt is taken back when its lease expires.
    """
    lease = place.database.step(leases.claim, job_id, attempt, place.worker, place.settings.lease_s)
    if lease is None:
        log.info("dropped", job=str(job_id), attempt=attempt)
        return
    points = Points()
    place.show(job_id)
    facts = {"job": str(job_id), "attempt": attempt, "request_id": lease.request_id}
    try:
        with bound_contextvars(**facts), attempt_span(place.tracing, lease, place.worker) as span:
            ending = _run(place, lease, points, span)
            _store(place, lease, ending, points.done)
            span.ended(ending)
    finally:
        place.show(None)


def _run(place: Place, lease: Lease, points: Points, span: AttemptSpan) -> Ending:
    beat_s = place.settings.heartbeat_s
    pulse = _Pulse(place, lease)
    request = Request(lease.job_id, lease.attempt, lease.spec, lease.queued_ms, request_id=lease.request_id)

    def keep(news: Begun | Measured) -> None:
        span.heard(news)
        points.take(news)

    try:
        with place.turn.hold(pulse.give_up):
            span.begun()
            deadline = time.monotonic() + lease.timeout_s
            while True:
                left_s = deadline - time.monotonic()
                ending = place.slot.run(request, timeout_s=left_s, beat_s=beat_s, beat=pulse.beat, keep=keep)
                rest = points.rest(request, ending)
                if rest is None:
                    return ending
                log.warning("child lost in the middle of a benchmark", points=len(rest.done))
                request = rest
                place.slot.ready(pulse.give_up)
    except GaveUp:
        return pulse.halted
    except StopRequested:
        return Halt.STOPPING


def _store(place: Place, lease: Lease, ending: Ending, measured: Sequence[Measurement]) -> None:
    """Write down how the attempt ended, and what it had measured if that was not its end. All of these writes are
    guarded by the lease and safe to repeat."""
    losses = place.settings.max_losses
    match ending:
        case Success(result, points):
            try:
                kept = _patiently(place, leases.succeed, lease, result, points)
            except DATABASE_LOST:
                raise
            except StatementError as error:  # Postgres, or the way there, refuses what the child made
                sentence = incident(error, lease.job_id, lease.attempt)
                kept = _patiently(place, leases.fail, lease, Reason.INTERNAL, sentence)
            log.info("succeeded" if kept else "result dropped: the lease is gone")
        case Failure(reason, error):
            _patiently(place, leases.fail, lease, reason, error, measured)
            log.info("failed", reason=reason.value, error=error)
        case Halt.TIMEOUT:
            sentence = f"It ran longer than its time-out of {lease.timeout_s:g} s."
            _patiently(place, leases.fail, lease, Reason.TIMEOUT, sentence, measured)
            log.info("timed out")
        case Halt.CANCELLED:
            _patiently(place, leases.cancelled, lease, measured)
            log.info("cancelled")
        case Halt.STOPPING:
            _patiently(place, leases.put_back, lease, "its worker was stopped", measured)
            log.info("put back")
        case Halt.ABANDONED:
            log.warning("abandoned: the lease is gone")
        case Died(exit_code) if exit_code == -signal.SIGBUS:
            # What a memory-mapped file does to its reader when it shrinks.
            sentence = "The file was cut short while it was read."
            _patiently(place, leases.fail, lease, Reason.INVALID_INPUT, sentence)
            log.warning("bus error")
        case Hung(seconds):
            _patiently(place, leases.lost, lease, losses, Loss.CHILD_SILENT)
            log.error("child hung", seconds=seconds)
        case Died(exit_code):
            _patiently(place, leases.lost, lease, losses)
            log.error("child died", exit_code=exit_code)


def _patiently(place: Place, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` until Postgres took it; after a request to stop, no longer than half a second.

    While Postgres is away nobody else can take the job either, so that there is no reason to give up a result.
    """
    while True:
        try:
            return place.database.run_patiently(0.5, work, *args, **kwargs)
        except DATABASE_LOST as error:
            if place.stop.requested:
                raise
            log.warning("Postgres cannot be reached; trying on", error=str(error).strip())


@dataclass
class _Pulse:
    """Keeps a lease alive, passes progress on, and finds out when the job is to end."""

    place: Place
    lease: Lease
    halted: Halt = Halt.ABANDONED
    _next: float = field(default_factory=time.monotonic)

    def beat(self, progress: Progress | None) -> Verdict:
        """Renew the lease. While Postgres is away the job goes on: nobody can take it back meanwhile."""
        told = None if progress is None else (progress.done, progress.total, progress.unit)
        try:
            standing = self.place.database.step(leases.renew, self.lease, self.place.settings.lease_s, told)
        except DATABASE_LOST as error:
            log.warning("lease not renewed", error=str(error).strip())
            return Verdict.GO_ON
        if not standing.held:
            return Verdict.ABANDON
        return Verdict.CANCEL if standing.cancel_requested else Verdict.GO_ON

    def give_up(self) -> bool:
        """For the wait for a GPU, which may be long: beat while waiting."""
        if self.place.stop.requested:
            self.halted = Halt.STOPPING
            return True
        if time.monotonic() < self._next:
            return False
        verdict = self.beat(None)
        self._next = time.monotonic() + self.place.settings.heartbeat_s
        self.halted = Halt.CANCELLED if verdict is Verdict.CANCEL else Halt.ABANDONED
        return verdict is not Verdict.GO_ON
