"""How a job's row changes: version, event and notification go together, in one statement (`Change`).

Beside it stand the changes that belong to no attempt: a job is cancelled, jobs that have waited long go up in rank, and
expired jobs are removed, a small portion at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    JSON,
    ColumnElement,
    Connection,
    Interval,
    Row,
    SmallInteger,
    Text,
    TextClause,
    Update,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
    update,
)

from warpfold.app.db import ENDED, FREED, JOB, QUEUE
from warpfold.app.jobs import outcome, tags
from warpfold.app.tables.jobs import NONE, events, idempotency_keys, in_lanes, is_, jobs, still_waits, waits
from warpfold.app.tables.service import uncounted_jobs
from warpfold.contract.needs import ALL
from warpfold.contract.states import PRIORITIES, EventType, Status

_ENDINGS = frozenset({EventType.SUCCEEDED, EventType.FAILED, EventType.CANCELLED})
_DURABLY = text("set local synchronous_commit to on")
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Change:
    """An UPDATE of `jobs` that records `event` for each row it touches and notifies those who wait for the job or for
    its batch. An end is left to be counted (`app.metrics.counters`). If a job ends alone, those who wait for its end
    get its outcome (`app.jobs.outcome`).

    Built once and run often: with bound parameters (named unlike columns), SQLAlchemy finds its compiled form at once.
    `also` are columns to return beside id, version, attempt and status; `frees_slot` wakes the dispatcher too, and
    tells it whether any job waits. `of_many` changes thousands of rows at once: it notifies those who wait for a batch,
    and those who wait for one job find out within a second, by looking again. `of_group` changes a hundred rows at
    most, and notifies those who wait for one of the jobs by one notification. `data` makes the data of each job's event
    from the changed rows; without it all events have the data that `run` is given. `beside` is one more part of the
    statement, which may read the changed rows as `changed`.
    """

    def __init__(
        self,
        statement: Update,
        event: EventType,
        *also: ColumnElement[Any],
        frees_slot: bool = False,
        of_many: bool = False,
        of_group: bool = False,
        data: Callable[[CTE], ColumnElement[Any]] | None = None,
        beside: TextClause | None = None,
    ) -> None:
        ends = event in _ENDINGS
        returned = (jobs.c.id, jobs.c.version, jobs.c.attempt, jobs.c.status, jobs.c.batch_id, *also)
        tells_outcome = ends and not of_many
        of_outcome = (*outcome.COLUMNS, jobs.c.secret) if tells_outcome else ()
        beyond = [each for each in of_outcome if each not in returned]
        changed = statement.values(version=jobs.c.version + 1).returning(*returned, *beyond).cte("changed")
        recorded_data = bindparam("event_data", type_=JSON) if data is None else data(changed)
        recorded = (
            insert(events)
            .from_select(
                ["job_id", "seq", "type", "data"],
                select(changed.c.id, changed.c.version, literal(event.value), recorded_data),
            )
            .cte("recorded")
        )
        # Postgres sends equal notifications of a transaction once: so a batch is notified once.
        of_batch = case((changed.c.batch_id.is_not(None), func.pg_notify(JOB, cast(changed.c.batch_id, Text))))
        notified: list[ColumnElement[Any]] = [of_batch]
        if tells_outcome:
            notified.append(outcome.notify_waiting(changed))
        news = ENDED if ends else JOB
        if of_group:
            ids = func.string_agg(cast(changed.c.id, Text), literal_column("','", Text))
            notified.append(select(func.pg_notify(news, ids)).select_from(changed).scalar_subquery())
        elif not of_many:
            notified.append(func.pg_notify(news, cast(changed.c.id, Text)))
        if frees_slot:
            notified.append(func.pg_notify(QUEUE, case((exists().where(in_lanes(ALL)), ""), else_=FREED)))
        selected = [column for column in changed.c if column.name not in {each.name for each in beyond}]
        self._statement = select(*selected, *notified).add_cte(recorded)
        if ends:
            left = insert(uncounted_jobs).from_select(["job_id"], select(changed.c.id)).cte("left_to_count")
            self._statement = self._statement.add_cte(left)

        if beside is not None:
            self._statement = self._statement.add_cte(beside.columns().cte("beside"))

    def run(
        self,
        connection: Connection,
        parameters: Mapping[str, object] = _NOTHING,
        data: Mapping[str, object] = _NOTHING,
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Change the rows that still match; `data` goes into the event. Returns the changed rows."""
        return connection.execute(self._statement, {**parameters, "event_data": dict(data)}).all()


def change(
    connection: Connection, statement: Update, event: EventType, data: Mapping[str, object] = _NOTHING
) -> Sequence[Row[*tuple[Any, ...]]]:
    """A change that is too rare to be built beforehand."""
    return Change(statement, event).run(connection, data=data)


def durably(connection: Connection) -> None:
    """Wait for the disk when this transaction commits, which this process need not do otherwise: a crash of
    Postgres must not undo an end that a client has seen."""
    connection.execute(_DURABLY)


def wake_dispatcher(connection: Connection) -> None:
    """Tell the dispatcher, when this transaction commits, that there is something to hand out or room for it."""
    connection.execute(select(func.pg_notify(QUEUE, "")))


def request_cancel(connection: Connection, job_id: UUID) -> None:
    """Cancel a queued job at once; leave a running one a note that its worker finds. No effect on other states, and
    none on presets, which have `presets.cancel`."""
    # Locked first, or the job could go back to the queue between the two changes, and be run.
    connection.execute(select(jobs.c.id).where(jobs.c.id == job_id).with_for_update(key_share=True))
    ended = change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, still_waits())
        .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
        EventType.CANCELLED,
    )
    if ended:
        wake_dispatcher(connection)
        return
    change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, is_(Status.RUNNING), jobs.c.needs != NONE, jobs.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=func.now()),
        EventType.CANCEL_REQUESTED,
    )


_LOW, _NORMAL = PRIORITIES["low"], PRIORITIES["normal"]


def raise_waiting(connection: Connection, after_s: float, at_most: int) -> int:
    """Have jobs that were accepted `after_s` seconds ago wait as normal ones at least, and after twice as long as high
    ones; up to `at_most` of each, the oldest first. Returns how many went up."""
    return _raise(connection, _NORMAL, 2 * after_s, at_most) + _raise(connection, _LOW, after_s, at_most)


def _raise(connection: Connection, rank: int, after_s: float, at_most: int) -> int:
    # The oldest of the rank, and then their age: to look for the age first would read the whole queue.
    is_due = jobs.c.created_at < func.now() - bindparam("after", timedelta(seconds=after_s), type_=Interval)
    # From one rank to the same, and in the order of both columns: only `ix_jobs_queue` has that order.
    this = literal_column(str(rank), SmallInteger)
    oldest = connection.execute(
        select(jobs.c.id, is_due)
        .where(waits(), jobs.c.rank >= this, jobs.c.rank <= this)
        .order_by(jobs.c.rank.desc(), jobs.c.seq)
        .limit(at_most)
    )
    due = [job_id for job_id, old in oldest if old]
    if not due:
        return 0
    free = select(jobs.c.id).where(jobs.c.id.in_(due), still_waits(), jobs.c.rank == rank)
    raisable = connection.execute(free.with_for_update(skip_locked=True)).scalars().all()
    raised = update(jobs).where(jobs.c.id.in_(raisable)).values(rank=rank + 1, version=jobs.c.version + 1)
    return connection.execute(raised).rowcount


def remove_old(connection: Connection, older_than: timedelta, at_most: int = 1000) -> int:
    """Delete up to `at_most` finished jobs past their time, the oldest first, with events, measurements and keys;
    returns how many. The jobs of a preset go with it, not before it."""
    aged = jobs.c.finished_at < func.now() - older_than
    old = (
        select(jobs.c.id)
        .where(aged, jobs.c.parent_id.is_(None))
        .order_by(jobs.c.finished_at)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    )
    ids = connection.execute(old).scalars().all()
    if ids:
        remove(connection, ids)
    return len(ids)


def remove(connection: Connection, ids: Sequence[UUID]) -> None:
    """Delete jobs that have ended, with events, measurements and keys, and the jobs of presets among them."""
    tags.forget(connection, ids)
    connection.execute(delete(jobs).where(jobs.c.id.in_(ids)))


def remove_old_keys(connection: Connection, older_than: timedelta, at_most: int) -> int:
    """Delete up to `at_most` idempotency keys past their time, the oldest first; returns how many."""
    key = (idempotency_keys.c.owner_id, idempotency_keys.c.key)
    old = (
        select(*key)
        .where(idempotency_keys.c.created_at < func.now() - older_than)
        .order_by(idempotency_keys.c.created_at)
        .limit(at_most)
        .subquery("old")
    )
    gone = delete(idempotency_keys).where(key[0] == old.c.owner_id, key[1] == old.c.key)
    return connection.execute(gone).rowcount
