"""Attempts that were lost: the leader takes back what silent workers held, a worker what its child or its predecessor
held. A lost job goes back to the queue, or fails after too many losses."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Text, and_, cast, func, select, tuple_, update

from warpfold.app.jobs import slot_time
from warpfold.app.jobs.attempt import Lease
from warpfold.app.jobs.leases import requeued_values
from warpfold.app.jobs.transitions import change, durably, wake_dispatcher
from warpfold.app.metrics import counters
from warpfold.app.metrics.counters import Name
from warpfold.app.tables.jobs import in_hand, is_, jobs, still
from warpfold.contract.states import EventType, Loss, Reason, Status


@dataclass(frozen=True, slots=True)
class Running:
    """A running attempt. `renewed_until` changes whenever its worker renews the lease: by Postgres' clock, so it may
    serve as a mark, and not to tell the time."""

    job_id: UUID
    token: UUID
    renewed_until: datetime


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
        update(jobs).where(running).values(losses=losses, **requeued_values(child_died=why is Loss.CHILD_DIED)),
        EventType.REQUEUED,
        {"detail": why.value},
    )
    counters.add(connection, {(Name.ATTEMPTS_LOST, counters.labelled(cause=why.name.lower())): len(lost)})
    return lost


def lost(connection: Connection, lease: Lease, max_losses: int, why: Loss = Loss.CHILD_DIED) -> None:
    """The process that computed the attempt died or hung: requeue it, or fail it after `max_losses` such ends."""
    take_back(connection, _held_by(lease), max_losses, why)
    wake_dispatcher(connection)


def take_back_from(connection: Connection, worker: str, max_losses: int) -> Sequence[UUID]:
    """Take back the jobs that a worker's predecessor ran: a worker that starts holds its slot's lock, so its
    predecessor is dead."""
    taken = take_back(connection, jobs.c.worker == worker, max_losses, Loss.WORKER_DIED)
    if taken:
        wake_dispatcher(connection)
    return taken


def _held_by(lease: Lease) -> ColumnElement[bool]:
    return (
        (jobs.c.id == lease.job_id)
        & (is_(Status.RUNNING))
        & (jobs.c.attempt == lease.attempt)
        & (jobs.c.lease_token == lease.token)
    )
