"""SQL of the dispatcher for what it has handed over: sent again, given to others, taken back from lost workers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Text, and_, case, cast, func, or_, select, tuple_, update

from warpfold.app.jobs.origin import UNKNOWN, Origin
from warpfold.app.jobs.suitable import suits
from warpfold.app.jobs.transitions import change, durably
from warpfold.app.metrics import counters
from warpfold.app.metrics.counters import Name
from warpfold.app.tables.jobs import OPEN, in_hand, in_lanes, is_, jobs, lives, still, workers
from warpfold.contract.needs import GANG
from warpfold.contract.states import EventType, Loss, Reason, Status

_FAILED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class HandOver:
    """One attempt at a job, as the queue carries it."""

    job_id: UUID
    attempt: int
    worker: str
    origin: Origin = UNKNOWN
    waited: tuple[datetime, datetime] | None = None
    """From acceptance to this hand-over, if it has only just been made."""
    at: datetime | None = None
    """When it was made, if it was read back: a mark of this hand-over, by Postgres' clock."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running attempt. `renewed_until` changes whenever its worker renews the lease: by Postgres' clock, so it may
    serve as a mark, and not to tell the time."""

    job_id: UUID
    token: UUID
    renewed_until: datetime


def _dispatched() -> ColumnElement[bool]:
    return and_(still(Status.QUEUED), jobs.c.dispatched_at.is_not(None), in_hand())


_HANDED_OVER = select(jobs.c.id, jobs.c.attempt, jobs.c.slot, jobs.c.request_id, jobs.c.dispatched_at)


def _read_back(row: Row[*tuple[Any, ...]]) -> HandOver:
    return HandOver(row.id, row.attempt, row.slot, Origin(row.request_id), at=row.dispatched_at)


def handed_over(connection: Connection) -> list[HandOver]:
    """Jobs that were sent to a slot and have not been claimed: a few for each slot."""
    return [_read_back(row) for row in connection.execute(_HANDED_OVER.where(_dispatched()))]


def stuck(connection: Connection) -> list[HandOver]:
    """Jobs that wait behind a running one, although a live slot with nothing in hand could take them."""
    running, held = jobs.alias(), jobs.alias()
    behind = (
        select(running.c.id)
        .where(running.c.slot == jobs.c.slot, is_(Status.RUNNING, running), in_hand(running))
        .exists()
    )
    idle = (
        select(workers.c.id)
        .where(
            OPEN,
            suits(workers.c.backend),
            ~select(held.c.id).where(held.c.slot == workers.c.id, in_hand(held)).exists(),
        )
        .exists()
    )
    rows = connection.execute(_HANDED_OVER.where(_dispatched(), behind, idle).order_by(jobs.c.rank.desc(), jobs.c.seq))
    return [_read_back(row) for row in rows]


def withdraw(connection: Connection, lost: Collection[HandOver]) -> int:
    """Make handed-over jobs that never arrived available again; returns how many still were waiting."""
    if not lost:
        return 0
    return connection.execute(
        update(jobs)
        .where(_dispatched(), or_(*(and_(jobs.c.id == one.job_id, jobs.c.attempt == one.attempt) for one in lost)))
        .values(slot=None, dispatched_at=None)
    ).rowcount


def running_attempts(connection: Connection) -> list[Running]:
    """Every running attempt: one for each slot at most."""
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
    unrenewed = mark.in_([(one.job_id, one.token, one.renewed_until) for one in silent])
    return take_back(connection, unrenewed, max_losses, why)


def take_back(connection: Connection, which: ColumnElement[bool], max_losses: int, why: Loss) -> Sequence[UUID]:
    """End the running attempts that match `which` as lost. Returns the ids of the jobs."""
    losses = jobs.c.losses + (1 if why.counts else 0)
    # Locked before anything is decided: a cancel that is asked for meanwhile waits, and finds what became of the job.
    # In the order of their ids, for all alike, but not by the index of ids: that has the whole history.
    matching = select(jobs.c.id).where(in_hand(), still(Status.RUNNING), which).order_by(cast(jobs.c.id, Text))
    lost = connection.execute(matching.with_for_update(key_share=True)).scalars().all()
    if not lost:
        return lost
    durably(connection)
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
        update(jobs).where(running).values(losses=losses, **requeued_values()),
        EventType.REQUEUED,
        {"detail": why.value},
    )
    counters.add(connection, {(Name.ATTEMPTS_LOST, counters.labelled(cause=why.name.lower())): len(lost)})
    return lost


def requeued_values() -> dict[str, object]:
    """Columns of a job that goes back to the queue as its next attempt."""
    return {
        "status": Status.QUEUED,
        "attempt": jobs.c.attempt + 1,
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


def offered(connection: Connection) -> frozenset[str]:
    """The kinds of slots that a live worker serves."""
    return frozenset(connection.execute(select(workers.c.backend).where(lives()).distinct()).scalars())


def fail_unservable(connection: Connection, kinds: Collection[str], after_s: float) -> Sequence[UUID]:
    """Fail jobs that have waited `after_s` seconds for a slot of one of `kinds`, which no worker has served so long, up
    to 500 a call. The jobs of a preset, which does without those that nothing here can run, do not wait first."""
    if not kinds:
        return []
    preset = jobs.alias("preset")
    of_preset = select(preset.c.id).where(preset.c.id == jobs.c.parent_id, preset.c.kind == "preset").exists()
    waited = or_(jobs.c.created_at < func.now() - timedelta(seconds=after_s), of_preset)
    found = select(jobs.c.id).where(in_lanes(sorted(kinds)), waited).limit(_FAILED_AT_ONCE)
    ids = connection.execute(found).scalars().all()
    if not ids:
        return []
    rows = change(
        connection,
        update(jobs)
        .where(jobs.c.id.in_(ids), still(Status.QUEUED), jobs.c.dispatched_at.is_(None))
        .values(
            status=Status.FAILED,
            reason=Reason.UNAVAILABLE,
            error=case(
                (jobs.c.needs == "cuda", "No worker with a GPU serves this queue."),
                (jobs.c.needs == GANG, "No worker with all GPUs of a machine (slot gang) serves this queue."),
                else_="No worker of the kind that this job needs serves this queue.",
            ),
            finished_at=func.now(),
        ),
        EventType.FAILED,
        {"reason": Reason.UNAVAILABLE.value},
    )
    if rows:
        durably(connection)
    return [row.id for row in rows]
