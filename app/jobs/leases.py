"""Leases: a worker claims attempts, keeps them alive and ends them, one or many by one statement, each with a lease of
its own.

Every write of a worker is guarded by the token of a lease, so an attempt that was taken back (`app.jobs.losses`)
changes nothing. The attempts of a group may be in different states: some run, some have ended, some were cancelled or
taken back. A statement changes those whose leases are still held, and returns which they are.

What every job needs is built once, with bound parameters: building a statement costs more than running it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    CTE,
    JSON,
    ColumnElement,
    Connection,
    Integer,
    Interval,
    TableValuedAlias,
    Text,
    TextClause,
    Update,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    text,
    update,
)

from warpfold.app.db import JOB
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.app.jobs.transitions import Change
from warpfold.app.tables.jobs import in_groups, is_, jobs, still_waits, workers
from warpfold.contract.measurement import FIELDS, Measurement
from warpfold.contract.states import EventType, Reason, Status


@dataclass(frozen=True, slots=True)
class ClaimedGroup:
    """The leases of a group, in the order in which its jobs were asked for; and the jobs that wait on, because one of
    them is to run alone, they were asked for after that one, or another transaction has locked them. A job in neither
    list can no longer be claimed."""

    leases: Sequence[Lease]
    waiting: Collection[UUID]


def requeued_values(*, child_died: bool = False) -> dict[str, object]:
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


def _asked(**columns: type[Uuid[UUID]] | type[Integer]) -> TableValuedAlias:
    """Parameters as a table: an array `all_<name>` a column, and the `place` of each row."""
    arrays = [bindparam(f"all_{name}", type_=ARRAY(kind)) for name, kind in columns.items()]
    return func.unnest(*arrays).table_valued(*columns, with_ordinality="place").render_derived("asked")


_AMONG = jobs.c.id == func.any(bindparam("all_id", type_=ARRAY(Uuid)))
"""Whether a row is one of the group. By these words every plan finds it in the index of ids. A join alone could read
all of that index, by a plan that was made while the table was empty."""


def _held(asked: TableValuedAlias, *also: ColumnElement[Any]) -> CTE:
    """The ids of the rows that the leases hold, beside the columns `also` of each lease. The rows are locked in the
    order of their ids, as everywhere where several rows are locked."""
    guard = (
        (jobs.c.id == asked.c.id)
        & _AMONG
        & is_(Status.RUNNING)
        & (jobs.c.attempt == asked.c.attempt)
        & (jobs.c.lease_token == asked.c.token)
    )
    locked = select(jobs.c.id, *also).select_from(jobs.join(asked, guard)).order_by(cast(jobs.c.id, Text))
    return locked.with_for_update(key_share=True, of=jobs).cte("held")


_LEASES = _asked(id=Uuid, attempt=Integer, token=Uuid)
_HELD = _held(_LEASES, jobs.c.cancel_requested_at)
_ASKED_TO_CANCEL = select(_HELD.c.id).where(_HELD.c.cancel_requested_at.is_not(None))
_EXPIRY = func.now() + bindparam("lease", type_=Interval)
# A column that a point leaves out has the default of the table.
_COLUMNS = [f'"{each.name}"' for each in FIELDS]
# By the token: a crash of Postgres may have undone the claim of a job, which one group has twice then.
_MEASURED: TextClause = text(f"""
    insert into measurements (job_id, {", ".join(_COLUMNS)})
    select changed.id, {", ".join(f"point.{each}" for each in _COLUMNS)}
    from json_array_elements(cast(:points as json)) as sent
    join changed on changed.lease_token = cast(sent ->> 'lease' as uuid)
    cross join lateral json_populate_record(null::measurements, sent) as point
""")  # noqa: S608 (the names of our own columns)


def _of_held(held: CTE = _HELD) -> Update:
    return update(jobs).where(_AMONG, jobs.c.id == held.c.id)


def _json(**values: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.json_build_object(*(part for name, value in values.items() for part in (text(f"'{name}'"), value)))


class _Ending(Change):
    """The change of attempts that end with `status`, and of what they measured. It returns the ids of the jobs."""

    def __init__(self, statement: Update, status: Status, event: EventType, **options: Any) -> None:
        ended = statement.values(status=status, lease_expires_at=None, finished_at=func.now())
        super().__init__(ended, event, jobs.c.lease_token, frees_slot=True, beside=_MEASURED, **options)
        self._status = status

    def of(
        self, connection: Connection, measured: Sequence[tuple[Lease, Sequence[Measurement]]], **values: object
    ) -> Collection[UUID]:
        """End those whose leases are held; returns the ids of all that have ended so, now or by an earlier call."""
        leases = _named([lease for lease, _ in measured])
        points = [{"lease": str(lease.token), **vars(point)} for lease, its in measured for point in its]
        kept = {row.id for row in self.run(connection, {**leases, **values, "points": json.dumps(points)})}
        if len(kept) < len(measured):
            kept.update(connection.execute(_ENDED_BY, {**leases, "ending": self._status.value}).scalars())
        return kept


_LEASED = (
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


def _claiming(*, behind: bool) -> Change:
    """The claim of a job or, `behind` another, of jobs that are small, up to the first that is to run alone."""
    asked = (jobs.c.id == _LEASES.c.id) & (jobs.c.attempt == _LEASES.c.attempt)
    # The message may have been on its way when an admin began to drain the slot.
    drained = select(workers.c.id).where(workers.c.id == bindparam("the_worker"), workers.c.draining).exists()
    free = select(jobs.c.id, _LEASES.c.token).select_from(jobs.join(_LEASES, asked))
    free = free.where(_AMONG, still_waits(), ~drained)
    if behind:
        # A job that is to run alone comes before those that were sent after it.
        alone = select(func.min(_LEASES.c.place)).where(_AMONG, asked, still_waits(), ~in_groups())
        free = free.where(_LEASES.c.place < func.coalesce(alone.correlate(None).scalar_subquery(), 1 << 31))
    # Behind another, a row that a cancel or a withdrawal has locked is skipped, because it is about to change.
    locked = free.with_for_update(key_share=True, skip_locked=behind, of=jobs).cte("free")
    return Change(
        _of_held(locked).values(
            status=Status.RUNNING,
            slot=bindparam("the_worker"),
            worker=bindparam("the_worker"),
            lease_token=locked.c.token,
            lease_expires_at=_EXPIRY,
            started_at=func.now(),
        ),
        EventType.STARTED,
        *_LEASED,
        of_group=True,
        data=lambda changed: _json(worker=bindparam("the_worker", type_=Text), attempt=changed.c.attempt),
    )


_CLAIM, _CLAIM_BEHIND = _claiming(behind=False), _claiming(behind=True)
_STILL_WAITING = select(jobs.c.id).where(_AMONG, still_waits())
_RENEW = _of_held().values(lease_expires_at=_EXPIRY).returning(jobs.c.id, jobs.c.cancel_requested_at)
_PROGRESS = (
    _of_held()
    .values(
        progress_done=bindparam("done"),
        progress_total=bindparam("total"),
        progress_unit=bindparam("unit"),
        version=jobs.c.version + 1,
    )
    .returning(func.pg_notify(JOB, cast(jobs.c.id, Text)))
)
# As one text of JSON: an array would have every quote in it escaped, and the results are full of quotes.
_outcomes = (
    func.json_to_recordset(cast(bindparam("outcomes", type_=Text), JSON))
    .table_valued(column("id", Uuid), column("attempt", Integer), column("token", Uuid), column("outcome", JSON))
    .render_derived("asked", with_types=True)
)
_succeeding = _held(_outcomes, _outcomes.c.outcome)
_SUCCEED = _Ending(
    # The last progress may not have been stored; a job that succeeded has done all of it.
    _of_held(_succeeding).values(result=_succeeding.c.outcome, progress_done=jobs.c.progress_total),
    Status.SUCCEEDED,
    EventType.SUCCEEDED,
    of_group=True,
)
_FAIL = _Ending(
    _of_held().values(reason=bindparam("why"), error=bindparam("sentence")),
    Status.FAILED,
    EventType.FAILED,
    data=lambda changed: _json(reason=bindparam("why", type_=Text)),
)
_CANCEL = _Ending(_of_held(), Status.CANCELLED, EventType.CANCELLED)
_PUT_BACK = Change(_of_held().values(requeued_values()), EventType.REQUEUED, frees_slot=True, of_group=True)
_ENDED_BY = select(jobs.c.id).where(
    _AMONG,
    jobs.c.status == bindparam("ending"),
    jobs.c.lease_token == func.any(bindparam("all_token", type_=ARRAY(Uuid))),
)


def claim(connection: Connection, job_id: UUID, attempt: int, worker: str, lease_s: float) -> Lease | None:
    """Start an attempt. None if the attempt was claimed, cancelled or superseded meanwhile, or the worker is
    drained: then the worker must drop the message."""
    return next(iter(_claimed(connection, _CLAIM, [(job_id, attempt)], worker, lease_s)), None)


def claim_behind(
    connection: Connection, asked: Sequence[tuple[UUID, int]], worker: str, lease_s: float
) -> ClaimedGroup:
    """Start those of the attempts `asked` that can still be claimed, each a job's id and its number, up to the first
    whose job is to run alone."""
    claimed = _claimed(connection, _CLAIM_BEHIND, asked, worker, lease_s) if asked else ()
    rest = [job_id for job_id, _ in asked if job_id not in {lease.job_id for lease in claimed}]
    waiting = connection.execute(_STILL_WAITING, {"all_id": rest}).scalars().all() if rest else ()
    return ClaimedGroup(claimed, frozenset(waiting))


def _claimed(
    connection: Connection, change: Change, asked: Sequence[tuple[UUID, int]], worker: str, lease_s: float
) -> Sequence[Lease]:
    tokens = {job_id: uuid4() for job_id, _ in asked}
    ids, attempts = zip(*asked, strict=True)
    parameters = {"all_id": [*ids], "all_attempt": [*attempts], "all_token": [*tokens.values()]}
    rows = change.run(connection, {**parameters, "the_worker": worker, "lease": timedelta(seconds=lease_s)})
    claimed = {
        row.id: Lease(
            row.id,
            row.attempt,
            tokens[row.id],
            row.spec,
            row.timeout_s,
            float(row.queued_ms),
            request_id=row.request_id,
            traceparent=row.traceparent,
            small=row.small,
            placement=row.placement,
            child_died=row.child_died,
        )
        for row in rows
    }
    return [claimed[job_id] for job_id in ids if job_id in claimed]


def renew(connection: Connection, group: Sequence[Lease], lease_s: float) -> Mapping[UUID, bool]:
    """Extend the leases that are still held. Returns the ids of their jobs, and whether their cancellation was asked
    for."""
    rows = connection.execute(_RENEW, {**_named(group), "lease": timedelta(seconds=lease_s)})
    return {row.id: row.cancel_requested_at is not None for row in rows}


def note_progress(connection: Connection, lease: Lease, done: int, total: int, unit: str) -> None:
    """Store how far an attempt is. Nothing happens if the lease is gone."""
    connection.execute(_PROGRESS, {**_named([lease]), "done": done, "total": total, "unit": unit})


def succeed(connection: Connection, answered: Sequence[tuple[Lease, Success]]) -> Collection[UUID]:
    """Store the results of these attempts and their measurements; returns the ids of those whose leases were still
    held: only these results count. What a success has stored in files is not looked at.

    Safe to run again after a commit whose answer was lost: then nothing changes, and the answer is the same.
    """
    outcomes = [
        {"id": str(lease.job_id), "attempt": lease.attempt, "token": str(lease.token), "outcome": success.result}
        for lease, success in answered
    ]
    measured = [(lease, success.points) for lease, success in answered]
    return _SUCCEED.of(connection, measured, outcomes=json.dumps(outcomes))


def fail(connection: Connection, lease: Lease, reason: Reason, error: str, points: Sequence[Measurement] = ()) -> bool:
    """End the attempt as failed, with a sentence for people, and keep what it had measured. False if the lease is gone.
    It is as safe to repeat as `succeed`."""
    return bool(_FAIL.of(connection, [(lease, points)], why=reason.value, sentence=error))


def cancelled(connection: Connection, lease: Lease, points: Sequence[Measurement] = ()) -> bool:
    """End the attempt as cancelled, and keep what it had measured. It is as safe to repeat as `succeed`."""
    return bool(_CANCEL.of(connection, [(lease, points)]))


def put_back(connection: Connection, unfinished: Sequence[tuple[Lease, Sequence[Measurement]]], why: str) -> None:
    """Give unfinished jobs back to the queue, without blame: the worker is shutting down.

    A job whose cancellation was asked for meanwhile ends as cancelled instead, and keeps what it had measured; of
    another the next attempt measures it all.
    """
    leases = _named([lease for lease, _ in unfinished])
    # The rows stay locked, so that a request cannot slip in before the change.
    asked_to_cancel = set(connection.execute(_ASKED_TO_CANCEL, leases).scalars())
    for lease, points in unfinished:
        if lease.job_id in asked_to_cancel:
            cancelled(connection, lease, points)
    _PUT_BACK.run(connection, leases, {"detail": why})


def _named(group: Sequence[Lease]) -> dict[str, object]:
    return {
        "all_id": [lease.job_id for lease in group],
        "all_attempt": [lease.attempt for lease in group],
        "all_token": [lease.token for lease in group],
    }
