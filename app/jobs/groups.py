"""Small jobs in groups: one statement claims, renews or ends many attempts, each with a lease of its own.

Each job's row and its events come out as `app.jobs.leases` writes them for a job alone, under the same guard. The
attempts of a group may be in different states: some run, some have ended, some were cancelled or
taken back. A statement changes those whose leases are still held, and returns which they are.
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
    Uuid,
    bindparam,
    cast,
    column,
    func,
    select,
    text,
    update,
)

from warpfold.app.jobs import leases
from warpfold.app.jobs.attempt import Answer, Failure, Lease, Success
from warpfold.app.jobs.leases import LEASED, Renewal, leased
from warpfold.app.jobs.transitions import Change
from warpfold.app.tables.jobs import in_groups, is_, jobs, still_waits, workers
from warpfold.contract.measurement import FIELDS
from warpfold.contract.states import EventType, Status


@dataclass(frozen=True, slots=True)
class ClaimedGroup:
    """The leases of a group, in the order in which its jobs were asked for; and the jobs that wait on, because one of
    them is to run alone, they were asked for after that one, or another transaction has locked them. A job in neither
    list can no longer be claimed."""

    leases: Sequence[Lease]
    waiting: Collection[UUID]


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


_EXPIRY = func.now() + bindparam("lease", type_=Interval)

_claimable = _asked(id=Uuid, attempt=Integer, token=Uuid)
# A job that is to run alone comes before those that were sent after it.
_alone = select(func.min(_claimable.c.place)).where(
    _AMONG, jobs.c.id == _claimable.c.id, jobs.c.attempt == _claimable.c.attempt, still_waits(), ~in_groups()
)
# A row that a cancel or a withdrawal has locked is skipped, because it is about to change.
_free = (
    select(jobs.c.id, _claimable.c.token)
    .select_from(jobs.join(_claimable, (jobs.c.id == _claimable.c.id) & (jobs.c.attempt == _claimable.c.attempt)))
    .where(
        _AMONG,
        still_waits(),
        _claimable.c.place < func.coalesce(_alone.correlate(None).scalar_subquery(), 1 << 31),
        ~select(workers.c.id).where(workers.c.id == bindparam("the_worker"), workers.c.draining).exists(),
    )
    .with_for_update(skip_locked=True, of=jobs)
    .cte("free")
)
_CLAIM = Change(
    update(jobs)
    .where(_AMONG, jobs.c.id == _free.c.id)
    .values(
        status=Status.RUNNING,
        slot=bindparam("the_worker"),
        worker=bindparam("the_worker"),
        lease_token=_free.c.token,
        lease_expires_at=_EXPIRY,
        started_at=func.now(),
    ),
    EventType.STARTED,
    *LEASED,
    of_group=True,
    data=lambda changed: func.json_build_object(
        text("'worker'"), bindparam("the_worker", type_=Text), text("'attempt'"), changed.c.attempt
    ),
)
_STILL_WAITING = select(jobs.c.id).where(_AMONG, still_waits())

_renewed = _held(_asked(id=Uuid, attempt=Integer, token=Uuid))
_RENEW = (
    update(jobs)
    .where(_AMONG, jobs.c.id == _renewed.c.id)
    .values(lease_expires_at=_EXPIRY)
    .returning(jobs.c.id, jobs.c.cancel_requested_at)
)

# As one text of JSON: an array would have every quote in it escaped, and the results are full of quotes.
_outcomes = (
    func.json_to_recordset(cast(bindparam("outcomes", type_=Text), JSON))
    .table_valued(column("id", Uuid), column("attempt", Integer), column("token", Uuid), column("outcome", JSON))
    .render_derived("asked", with_types=True)
)
# A column that a point leaves out has the default of the table.
_COLUMNS = ", ".join(f'"{each.name}"' for each in FIELDS)
_MEASURED: TextClause = text(f"""
    insert into measurements (job_id, {_COLUMNS})
    select job_id, {_COLUMNS} from json_populate_recordset(null::measurements, cast(:points as json))
    where job_id in (select id from changed)
""")  # noqa: S608 (the names of our own columns)
_succeeding = _held(_outcomes, _outcomes.c.outcome)
_SUCCEED = Change(
    update(jobs)
    .where(_AMONG, jobs.c.id == _succeeding.c.id)
    .values(
        status=Status.SUCCEEDED,
        lease_expires_at=None,
        finished_at=func.now(),
        result=_succeeding.c.outcome,
        progress_done=jobs.c.progress_total,
    ),
    EventType.SUCCEEDED,
    frees_slot=True,
    of_group=True,
    beside=_MEASURED,
)
_ENDED_BY = select(jobs.c.id).where(
    _AMONG,
    jobs.c.status == Status.SUCCEEDED.value,
    jobs.c.lease_token == func.any(bindparam("all_token", type_=ARRAY(Uuid))),
)


def claim(connection: Connection, asked: Sequence[tuple[UUID, int]], worker: str, lease_s: float) -> ClaimedGroup:
    """Start those of the attempts `asked` that can still be claimed, each a job's id and its number, up to the first
    whose job is to run alone."""
    if not asked:
        return ClaimedGroup((), frozenset())
    tokens = {job_id: uuid4() for job_id, _ in asked}
    rows = _CLAIM.run(
        connection,
        {
            "all_id": [job_id for job_id, _ in asked],
            "all_attempt": [attempt for _, attempt in asked],
            "all_token": [tokens[job_id] for job_id, _ in asked],
            "the_worker": worker,
            "lease": timedelta(seconds=lease_s),
        },
    )
    claimed = {row.id: leased(row, tokens[row.id]) for row in rows}
    rest = [job_id for job_id, _ in asked if job_id not in claimed]
    waiting = connection.execute(_STILL_WAITING, {"all_id": rest}).scalars().all() if rest else ()
    return ClaimedGroup([claimed[job_id] for job_id, _ in asked if job_id in claimed], frozenset(waiting))


def renew(connection: Connection, group: Sequence[Lease], lease_s: float) -> Mapping[UUID, Renewal]:
    """Extend the leases, and look for cancel requests; what each job's worker learns, by the job's id."""
    rows = connection.execute(_RENEW, {**_named(group), "lease": timedelta(seconds=lease_s)})
    requested = {row.id: row.cancel_requested_at is not None for row in rows}
    return {
        lease.job_id: Renewal(held=lease.job_id in requested, cancel_requested=requested.get(lease.job_id, False))
        for lease in group
    }


def end(connection: Connection, answered: Sequence[tuple[Lease, Answer]]) -> Collection[UUID]:
    """Store how these attempts ended; returns the ids of those whose leases were still held: only these answers count.
    All successes are one statement, with their measurements, and each failure is one: each may be a transaction. What
    a success has stored in files is not looked at: small jobs store nothing there.

    As safe to repeat as `leases.succeed`.
    """
    kept: set[UUID] = set()
    succeeded = [(lease, answer) for lease, answer in answered if isinstance(answer, Success)]
    if succeeded:
        group = [lease for lease, _ in succeeded]
        outcomes = [
            {"id": str(lease.job_id), "attempt": lease.attempt, "token": str(lease.token), "outcome": success.result}
            for lease, success in succeeded
        ]
        points = [
            {"job_id": str(lease.job_id), **vars(point)} for lease, success in succeeded for point in success.points
        ]
        rows = _SUCCEED.run(
            connection,
            {
                "all_id": [lease.job_id for lease in group],
                "outcomes": json.dumps(outcomes),
                "points": json.dumps(points),
            },
        )
        kept.update(row.id for row in rows)
        if len(kept) < len(group):
            kept.update(connection.execute(_ENDED_BY, _named(group)).scalars())
    for lease, answer in answered:
        if isinstance(answer, Failure) and leases.fail(connection, lease, answer.reason, answer.error):
            kept.add(lease.job_id)
    return kept


def put_back(connection: Connection, group: Sequence[Lease], why: str) -> None:
    """Give jobs that have not begun back to the queue, without blame, as `leases.put_back` does one."""
    for lease in group:
        leases.put_back(connection, lease, why)


def _named(group: Sequence[Lease]) -> dict[str, object]:
    return {
        "all_id": [lease.job_id for lease in group],
        "all_attempt": [lease.attempt for lease in group],
        "all_token": [lease.token for lease in group],
    }
