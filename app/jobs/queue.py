"""SQL of the queue as the dispatcher sees it: which slots suit a job, and what becomes of jobs that were handed over.

`app.jobs.turns` chooses who is next. This module corrects hand-overs: jobs whose message never arrived are withdrawn,
jobs behind a long job go to an idle slot, and jobs that no slot here can run fail.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, or_, select, update

from warpfold.app.jobs.transitions import change, durably
from warpfold.app.tables.jobs import OPEN, in_groups, in_hand, in_lanes, is_, jobs, lives, still, workers
from warpfold.contract.needs import ALL, ANY, DASK, GANG, ONE_DEVICE, ORDERS
from warpfold.contract.states import EventType, Reason, Status

_FAILED_AT_ONCE = 500
_ANYTHING = select(or_(exists().where(in_lanes(ALL)), exists().where(in_hand())))


def taken_by(backend: str, live: Collection[str]) -> list[str]:
    """The needs of the jobs that a worker of `backend` may take, where workers of the backends `live` are there."""
    best_of = {name: next((choice for choice in order if choice in live), None) for name, order in ORDERS.items()}
    preferred = [name for name, best in best_of.items() if best == backend]
    return [backend, ANY, *preferred] if backend in ONE_DEVICE else [backend, *preferred]


def suits(backend: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a worker of `backend` may take the job."""
    preferred = (and_(jobs.c.needs == name, backend == _best(order)) for name, order in ORDERS.items())
    return or_(jobs.c.needs == backend, and_(jobs.c.needs == ANY, backend.in_(ONE_DEVICE)), *preferred)


def _best(order: tuple[str, ...]) -> ColumnElement[str]:
    """The first backend in `order` that a worker has, even one that is still starting."""
    live = workers.alias()
    rank = case({backend: place for place, backend in enumerate(order)}, value=live.c.backend)
    return (
        select(live.c.backend)
        .where(lives(live), live.c.state != "stopped", ~live.c.draining, live.c.backend.in_(order))
        .order_by(rank)
        .limit(1)
        .scalar_subquery()
    )


@dataclass(frozen=True, slots=True)
class HandOver:
    """One attempt at a job that goes to a worker's queue: the message there is its `job_id` and `attempt`."""

    job_id: UUID
    attempt: int
    worker: str
    waited: tuple[datetime, datetime] | None = None
    """When the job was accepted and when it was handed over, if that was just now; None if it was read back."""
    at: datetime | None = None
    """The time of the hand-over by Postgres' clock, if it was read back. It differs from that of a later hand-over."""
    request_id: str | None = None
    """The request that brought the job, for the logs."""
    traceparent: str | None = None
    """The parent of the span of the job's wait, if the hand-over was just now."""
    small: bool = False
    """Whether it may run in a group, if it was read back."""


def _dispatched() -> ColumnElement[bool]:
    return and_(still(Status.QUEUED), jobs.c.dispatched_at.is_not(None), in_hand())


_HANDED_OVER = select(
    jobs.c.id, jobs.c.attempt, jobs.c.slot, jobs.c.request_id, jobs.c.dispatched_at, in_groups().label("small")
)


def _read_back(row: Row[*tuple[Any, ...]]) -> HandOver:
    return HandOver(row.id, row.attempt, row.slot, at=row.dispatched_at, request_id=row.request_id, small=row.small)


def handed_over(connection: Connection) -> list[HandOver]:
    """Jobs that were sent to a slot and have not been claimed: a few for each slot."""
    return [_read_back(row) for row in connection.execute(_HANDED_OVER.where(_dispatched()))]


def stuck(connection: Connection) -> list[HandOver]:
    """Jobs that wait behind a running one, although a live slot with nothing in hand could take them; and small jobs
    that wait behind a long one, although a live slot with nothing but small jobs in hand could take them."""
    running, held = jobs.alias(), jobs.alias()
    before = (running.c.slot == jobs.c.slot) & is_(Status.RUNNING, running) & in_hand(running)
    suited = OPEN & suits(workers.c.backend)
    holds = (held.c.slot == workers.c.id) & in_hand(held)
    behind = select(running.c.id).where(before).exists()
    behind_long = select(running.c.id).where(before, ~in_groups(running)).exists()
    idle = select(workers.c.id).where(suited, ~select(held.c.id).where(holds).exists()).exists()
    quick = select(workers.c.id).where(suited, ~select(held.c.id).where(holds, ~in_groups(held)).exists()).exists()
    waits = or_(and_(behind, idle), and_(in_groups(), behind_long, quick))
    rows = connection.execute(_HANDED_OVER.where(_dispatched(), waits).order_by(jobs.c.rank.desc(), jobs.c.seq))
    return [_read_back(row) for row in rows]


def withdraw(connection: Connection, lost: Collection[HandOver]) -> int:
    """Make handed-over jobs that never arrived available again; returns how many still were waiting."""
    if not lost:
        return 0
    return connection.execute(
        update(jobs)
        .where(
            _dispatched(), or_(*(and_(jobs.c.id == handed.job_id, jobs.c.attempt == handed.attempt) for handed in lost))
        )
        .values(slot=None, dispatched_at=None)
    ).rowcount


def offered(connection: Connection) -> frozenset[str]:
    """The kinds of slots that live workers serve."""
    return frozenset(connection.execute(select(workers.c.backend).where(lives()).distinct()).scalars())


def anything(connection: Connection) -> bool:
    """Whether any job waits, was handed over or runs."""
    return bool(connection.execute(_ANYTHING).scalar_one())


def fail_unservable(connection: Connection, kinds: Collection[str], after_s: float) -> Sequence[UUID]:
    """Fail jobs that have waited `after_s` seconds for a slot of one of `kinds`, which no worker has served so long, up
    to 500 a call. The jobs of a preset, which does without those that nothing here can run, do not wait first."""
    if not kinds:
        return []
    preset = jobs.alias("preset")
    of_preset = select(preset.c.id).where(preset.c.id == jobs.c.parent_id, preset.c.kind == "preset").exists()
    waited = or_(jobs.c.created_at < func.now() - timedelta(seconds=after_s), of_preset)
    unservable = select(jobs.c.id).where(in_lanes(sorted(kinds)), waited).limit(_FAILED_AT_ONCE)
    ids = connection.execute(unservable).scalars().all()
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
                (jobs.c.needs == DASK, "No worker with a Dask cluster (slot dask) serves this queue."),
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
