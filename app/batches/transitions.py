"""The changes of many jobs at once: a batch, or all that a user has, is cancelled. And those of a batch as a whole: its
counts are kept once all of its jobs have ended, and it is removed after its last job."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Connection,
    Integer,
    TextClause,
    Uuid,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)

from warpfold.app.jobs.transitions import Change, wake_dispatcher
from warpfold.app.metrics import counters
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import NONE, is_, jobs, still, still_waits
from warpfold.contract.batches import status_of_ended
from warpfold.contract.states import EventType, Status

_THIS = bindparam("the_batch", type_=Uuid)
_LISTED = jobs.c.id == func.any(bindparam("listed", type_=ARRAY(Uuid)))
_ACTIVE = or_(still(Status.QUEUED), still(Status.RUNNING))
_parents = jobs.alias("parents")
_ASK = (
    update(batches)
    .where(batches.c.id == _THIS, batches.c.cancel_requested_at.is_(None), batches.c.settled_at.is_(None))
    .values(cancel_requested_at=func.now())
)
_ACTIVE_JOBS = select(jobs.c.id).where(jobs.c.batch_id == _THIS, _ACTIVE)
_ACTIVE_CHILDREN = (
    select(jobs.c.id)
    .join(_parents, _parents.c.id == jobs.c.parent_id)
    .where(_parents.c.batch_id == _THIS, _parents.c.needs == literal_column(f"'{NONE}'"), _ACTIVE)
)
_LOCK = select(jobs.c.id).where(_LISTED).order_by(jobs.c.id).with_for_update(key_share=True)
_CANCEL_QUEUED = Change(
    update(jobs)
    .where(_LISTED, still_waits())
    .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
    EventType.CANCELLED,
    of_many=True,
)
# Of presets, too: the dispatcher ends them when their last child has ended.
_CANCEL_OTHERS = Change(
    update(jobs).where(_LISTED, _ACTIVE, jobs.c.cancel_requested_at.is_(None)).values(cancel_requested_at=func.now()),
    EventType.CANCEL_REQUESTED,
    of_many=True,
)


def cancel(connection: Connection, batch_id: UUID) -> None:
    """Cancel the jobs that wait, and leave those that run a note that their workers find; of presets, the children. A
    few statements, however many jobs there are."""
    this = {"the_batch": batch_id}
    connection.execute(_ASK, this)
    active = [*connection.execute(_ACTIVE_JOBS, this).scalars(), *connection.execute(_ACTIVE_CHILDREN, this).scalars()]
    _cancel_listed(connection, active)


def cancel_all_of(connection: Connection, owner_id: int) -> None:
    """Cancel all jobs and batches of a user in the same way."""
    asked = update(batches).where(batches.c.owner_id == owner_id, batches.c.settled_at.is_(None))
    connection.execute(asked.values(cancel_requested_at=func.coalesce(batches.c.cancel_requested_at, func.now())))
    active = select(jobs.c.id).where(jobs.c.owner_id == owner_id, or_(is_(Status.QUEUED), is_(Status.RUNNING)))
    _cancel_listed(connection, connection.execute(active).scalars().all())


def _cancel_listed(connection: Connection, active: Sequence[UUID]) -> None:
    if not active:
        return
    listed = {"listed": list(active)}
    connection.execute(_LOCK, listed)  # else a job could go back to the queue in between, and be run
    _CANCEL_QUEUED.run(connection, listed)
    _CANCEL_OTHERS.run(connection, listed)
    wake_dispatcher(connection)


_open = select(jobs.c.id).where(jobs.c.batch_id == batches.c.id, _ACTIVE)
_DONE = (
    select(batches.c.id)
    .where(batches.c.settled_at.is_(None), ~_open.exists())
    .order_by(batches.c.seq)
    .limit(bindparam("at_most", type_=Integer))
)
_SETTLE: TextClause = text("""
    update batches set settled_at = now(), succeeded = live.succeeded, failed = live.failed, cancelled = live.cancelled,
                       started_at = live.started_at, finished_at = coalesce(live.finished_at, now())
    from unnest(:listed) as listed(id) cross join lateral (
        select count(*) filter (where status = 'succeeded') as succeeded,
               count(*) filter (where status = 'failed') as failed,
               count(*) filter (where status = 'cancelled') as cancelled,
               min(started_at) as started_at, max(finished_at) as finished_at
        from jobs where batch_id = listed.id
    ) as live
    where batches.id = listed.id and batches.settled_at is null
    returning batches.failed, batches.cancelled, batches.cancel_requested_at is not null as cancel_requested
""").bindparams(bindparam("listed", type_=ARRAY(Uuid)))


def settle(connection: Connection, at_most: int) -> int:
    """Keep the counts of up to `at_most` batches whose last job has ended, the oldest first, and count their ends;
    returns how many. What has ended stays so: the counts never change again."""
    done = connection.execute(_DONE, {"at_most": at_most}).scalars().all()
    if done:
        ended = Counter(
            status_of_ended(row.failed, row.cancelled, cancel_requested=row.cancel_requested)
            for row in connection.execute(_SETTLE, {"listed": done})
        )
        counters.add(
            connection,
            {
                (counters.Name.BATCHES_ENDED, counters.labelled(status=status.value)): float(number)
                for status, number in ended.items()
            },
        )
    return len(done)


def remove_old(connection: Connection, older_than: timedelta, at_most: int) -> int:
    """Delete up to `at_most` batches past their time whose jobs are gone, the oldest first; returns how many."""
    left = select(jobs.c.id).where(jobs.c.batch_id == batches.c.id)
    old = (
        select(batches.c.id)
        .where(batches.c.finished_at < func.now() - older_than, ~left.exists())
        .order_by(batches.c.finished_at)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(delete(batches).where(batches.c.id.in_(old))).rowcount
