"""Leases: a worker claims an attempt, keeps it alive and ends it; the leader takes back what its worker lost.

Every write of a worker is guarded by the token of its lease, so an attempt that was taken back changes nothing.

What every job needs is built once, with bound parameters: building a statement costs more than running it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Interval,
    Row,
    Text,
    Update,
    and_,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)

from warpfold.app.db import JOB
from warpfold.app.jobs import slot_time
from warpfold.app.jobs.attempt import Lease
from warpfold.app.jobs.transitions import Change, change, durably, wake_dispatcher
from warpfold.app.metrics import counters
from warpfold.app.metrics.counters import Name
from warpfold.app.tables.jobs import in_groups, in_hand, is_, jobs, still, still_waits, workers
from warpfold.app.tables.measurements import measurements
from warpfold.contract.measurement import Measurement
from warpfold.contract.states import EventType, Loss, Reason, Status


@dataclass(frozen=True, slots=True)
class Renewal:
    """The answer that a worker gets when it renews its lease."""

    held: bool
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Running:
    """A running attempt. `renewed_until` changes whenever its worker renews the lease: by Postgres' clock, so it may
    serve as a mark, and not to tell the time."""

    job_id: UUID
    token: UUID
    renewed_until: datetime


def _requeued_values(*, child_died: bool = False) -> dict[str, object]:
    """Columns of a job that goes back to the queue as its next attempt."""
    return {
        "status": Status.QUEUED,
        "attempt": jobs.c.attempt + 1,
        "child_died": child_died,
        "slot": None,
        "dispatched_at": None,
        "worker": None,
        "lease_token": None,
        "lease_expires_at": None,
        "started_at": None,
        "progress_done": 0,
        "progress_total": 0,
        "progress_unit": "",
    }


def _guard() -> ColumnElement[bool]:
    return (
        (jobs.c.id == bindparam("the_job"))
        & (is_(Status.RUNNING))
        & (jobs.c.attempt == bindparam("the_attempt"))
        & (jobs.c.lease_token == bindparam("the_token"))
    )


def _guarded(lease: Lease) -> dict[str, object]:
    return {"the_job": lease.job_id, "the_attempt": lease.attempt, "the_token": lease.token}


def _ending(status: Status, **values: object) -> Update:
    return update(jobs).where(_guard()).values(status=status, lease_expires_at=None, finished_at=func.now(), **values)


_EXPIRY = func.now() + bindparam("lease", type_=Interval)

LEASED = (
    cast(jobs.c.spec, Text).label("spec"),
    jobs.c.timeout_s,
    (func.extract("epoch", func.now() - jobs.c.created_at) * 1000).label("queued_ms"),
    jobs.c.request_id,
    jobs.c.traceparent,
    in_groups().label("small"),
    jobs.c.child_died,
    cast(jobs.c.placement, Text).label("placement"),
    # The claim need not wait for the disk. If a crash of Postgres undoes it, the job is claimed again, and the lost
    # lease can end nothing.
    func.set_config("synchronous_commit", "off", literal_column("true")).label("without_waiting_for_the_disk"),
)
"""The columns of a job that a claim returns, besides those that every change returns."""

_CLAIM = Change(
    update(jobs)
    .where(
        jobs.c.id == bindparam("the_job"),
        jobs.c.attempt == bindparam("the_attempt"),
        still_waits(),
        # The message may have been on its way when an admin began to drain the slot.
        ~select(workers.c.id).where(workers.c.id == bindparam("the_worker"), workers.c.draining).exists(),
    )
    .values(
        status=Status.RUNNING,
        slot=bindparam("the_worker"),
        worker=bindparam("the_worker"),
        lease_token=bindparam("the_token"),
        lease_expires_at=_EXPIRY,
        started_at=func.now(),
    ),
    EventType.STARTED,
    *LEASED,
)
_RENEW = update(jobs).where(_guard()).values(lease_expires_at=_EXPIRY).returning(jobs.c.cancel_requested_at)
_PROGRESS = (
    update(jobs)
    .where(_guard())
    .values(
        lease_expires_at=_EXPIRY,
        progress_done=bindparam("done"),
        progress_total=bindparam("total"),
        progress_unit=bindparam("unit"),
        version=jobs.c.version + 1,
    )
    .returning(jobs.c.cancel_requested_at, func.pg_notify(JOB, cast(jobs.c.id, Text)))
)
_SUCCEED = Change(
    # The last progress may not have been stored; a job that succeeded has done all of it.
    _ending(Status.SUCCEEDED, result=bindparam("outcome", type_=JSON), progress_done=jobs.c.progress_total),
    EventType.SUCCEEDED,
    frees_slot=True,
)
_FAIL = Change(
    _ending(Status.FAILED, reason=bindparam("why"), error=bindparam("sentence")), EventType.FAILED, frees_slot=True
)
_CANCEL = Change(_ending(Status.CANCELLED), EventType.CANCELLED, frees_slot=True)
_PUT_BACK = Change(update(jobs).where(_guard()).values(_requeued_values()), EventType.REQUEUED, frees_slot=True)
_ENDED_BY = select(jobs.c.id).where(
    jobs.c.id == bindparam("the_job"),
    jobs.c.status == bindparam("ending"),
    jobs.c.lease_token == bindparam("the_token"),
)
# Inline: RETURNING the new row's id, which is not needed, would take the right to read measurements, which workers
# lack.
_MEASURED = insert(measurements).inline()


def claim(connection: Connection, job_id: UUID, attempt: int, worker: str, lease_s: float) -> Lease | None:
    """Start an attempt. None if the attempt was claimed, cancelled or superseded meanwhile, or the worker is
    drained: then the worker must drop the message."""
    token = uuid4()
    rows = _CLAIM.run(
        connection,
        {
            "the_job": job_id,
            "the_attempt": attempt,
            "the_worker": worker,
            "the_token": token,
            "lease": timedelta(seconds=lease_s),
        },
        {"worker": worker, "attempt": attempt},
    )
    return leased(rows[0], token) if rows else None


def leased(row: Row[*tuple[Any, ...]], token: UUID) -> Lease:
    """The lease on a job that was just claimed; `row` has its id, its attempt and the columns `LEASED`."""
    return Lease(
        row.id,
        row.attempt,
        token,
        row.spec,
        row.timeout_s,
        float(row.queued_ms),
        request_id=row.request_id,
        traceparent=row.traceparent,
        small=row.small,
        placement=row.placement,
        child_died=row.child_died,
    )


def renew(
    connection: Connection, lease: Lease, lease_s: float, progress: tuple[int, int, str] | None = None
) -> Renewal:
    """Extend the lease, store progress (done, total, unit) if any is new, and look for a cancel request."""
    parameters = {**_guarded(lease), "lease": timedelta(seconds=lease_s)}
    if progress is None:
        row = connection.execute(_RENEW, parameters).one_or_none()
    else:
        how_far = dict(zip(("done", "total", "unit"), progress, strict=True))
        row = connection.execute(_PROGRESS, {**parameters, **how_far}).one_or_none()
    return Renewal(held=row is not None, cancel_requested=row is not None and row[0] is not None)


def succeed(connection: Connection, lease: Lease, result: Mapping[str, object], points: Sequence[Measurement]) -> bool:
    """Store the result and its measurements. False if the lease is gone: the attempt's outcome no longer counts.

    Safe to run again after a commit whose answer was lost: then nothing changes and the answer is True.
    """
    if not _SUCCEED.run(connection, {**_guarded(lease), "outcome": dict(result)}):
        return _ended_by(connection, lease, Status.SUCCEEDED)
    _keep(connection, lease, points)
    return True


def fail(connection: Connection, lease: Lease, reason: Reason, error: str, points: Sequence[Measurement] = ()) -> bool:
    """End the attempt as failed, with a sentence for people, and keep what it had measured. It is as safe to repeat
    as `succeed`."""
    ending = {**_guarded(lease), "why": reason.value, "sentence": error}
    if not _FAIL.run(connection, ending, {"reason": reason.value}):
        return _ended_by(connection, lease, Status.FAILED)
    _keep(connection, lease, points)
    return True


def cancelled(connection: Connection, lease: Lease, points: Sequence[Measurement] = ()) -> bool:
    """End the attempt as cancelled, and keep what it had measured. It is as safe to repeat as `succeed`."""
    if not _CANCEL.run(connection, _guarded(lease)):
        return _ended_by(connection, lease, Status.CANCELLED)
    _keep(connection, lease, points)
    return True


def put_back(connection: Connection, lease: Lease, why: str, points: Sequence[Measurement] = ()) -> bool:
    """Give an unfinished job back to the queue, without blame: the worker is shutting down.

    If its cancellation was asked for meanwhile, it ends as cancelled instead, and keeps what it had measured; otherwise
    the next attempt measures it all.
    """
    if _cancel_requested(connection, lease):
        return cancelled(connection, lease, points)
    return bool(_PUT_BACK.run(connection, _guarded(lease), {"detail": why}))


def running_attempts(connection: Connection) -> list[Running]:
    """All running attempts: one for each slot at most."""
    held = select(jobs.c.id, jobs.c.lease_token, jobs.c.lease_expires_at).where(
        in_hand(), still(Status.RUNNING), jobs.c.lease_token.is_not(None)
    )
    return [Running(*row) for row in connection.execute(held)]


def take_back_silent(
    connection: Connection, silent: Collection[Running], max_losses: int, why: Loss = Loss.LEASE_EXPIRED
) -> Sequence[UUID]:
    """End the attempts whose workers fell silent: requeue them, or fail them after `max_losses` lost workers.

    An attempt whose lease was renewed since it was found silent is left alone.
    """
    mark = tuple_(jobs.c.id, jobs.c.lease_token, jobs.c.lease_expires_at)
    unrenewed = mark.in_([(attempt.job_id, attempt.token, attempt.renewed_until) for attempt in silent])
    return take_back(connection, unrenewed, max_losses, why)


def take_back(connection: Connection, which: ColumnElement[bool], max_losses: int, why: Loss) -> Sequence[UUID]:
    """End the running attempts that match `which` as lost. Returns the ids of the jobs."""
    losses = jobs.c.losses + (1 if why.counts else 0)
    # The rows are locked before anything is decided: a cancel that comes meanwhile waits, and then finds the new state
    # of the job. They are locked in the order of their ids, as everywhere, but not found by the index of ids, which
    # holds the whole history.
    matching = select(jobs.c.id).where(in_hand(), still(Status.RUNNING), which).order_by(cast(jobs.c.id, Text))
    lost = connection.execute(matching.with_for_update(key_share=True)).scalars().all()
    if not lost:
        return lost
    durably(connection)
    slot_time.add_lost(connection, lost)
    running = and_(is_(Status.RUNNING), jobs.c.id.in_(lost))
    ended = {"lease_expires_at": None, "slot": None, "dispatched_at": None}
    change(
        connection,
        update(jobs)
        .where(running, jobs.c.cancel_requested_at.is_not(None))
        .values(status=Status.CANCELLED, finished_at=func.now(), **ended),
        EventType.CANCELLED,
        {"detail": why.value},
    )
    change(
        connection,
        update(jobs)
        .where(running, losses >= max_losses)
        .values(
            status=Status.FAILED,
            reason=Reason.WORKER_LOST,
            error=f"The worker was lost {max_losses} times while running this job; the last time {why}.",
            losses=losses,
            finished_at=func.now(),
            **ended,
        ),
        EventType.FAILED,
        {"reason": Reason.WORKER_LOST.value},
    )
    change(
        connection,
        update(jobs).where(running).values(losses=losses, **_requeued_values(child_died=why is Loss.CHILD_DIED)),
        EventType.REQUEUED,
        {"detail": why.value},
    )
    counters.add(connection, {(Name.ATTEMPTS_LOST, counters.labelled(cause=why.name.lower())): len(lost)})
    return lost


def lost(connection: Connection, lease: Lease, max_losses: int, why: Loss = Loss.CHILD_DIED) -> None:
    """The process that computed the attempt died or hung: requeue it, or fail it after `max_losses` such ends."""
    take_back(connection, _held(lease), max_losses, why)
    wake_dispatcher(connection)


def take_back_from(connection: Connection, worker: str, max_losses: int) -> Sequence[UUID]:
    """Take back the jobs that a worker's predecessor ran: a worker that starts holds its slot's lock, so its
    predecessor is dead."""
    taken = take_back(connection, jobs.c.worker == worker, max_losses, Loss.WORKER_DIED)
    if taken:
        wake_dispatcher(connection)
    return taken


def _keep(connection: Connection, lease: Lease, points: Sequence[Measurement]) -> None:
    if points:
        connection.execute(_MEASURED, [{"job_id": lease.job_id, **vars(point)} for point in points])


def _held(lease: Lease) -> ColumnElement[bool]:
    return (
        (jobs.c.id == lease.job_id)
        & (is_(Status.RUNNING))
        & (jobs.c.attempt == lease.attempt)
        & (jobs.c.lease_token == lease.token)
    )


def _cancel_requested(connection: Connection, lease: Lease) -> bool:
    # The row stays locked, so that a request cannot slip in before the caller's own change.
    noted = select(jobs.c.cancel_requested_at).where(_held(lease)).with_for_update()
    return connection.execute(noted).scalar_one_or_none() is not None


def _ended_by(connection: Connection, lease: Lease, status: Status) -> bool:
    parameters = {"the_job": lease.job_id, "the_token": lease.token, "ending": status.value}
    return connection.execute(_ENDED_BY, parameters).one_or_none() is not None
