"""Batches as the api reads them. The counts of a batch are one read of one index; those of a batch that has settled
stand in its row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    func,
    select,
    true,
)

from warpfold.app.auth.visibility import THE_SERVICE, Viewer, sees, visible
from warpfold.app.http.errors import no_such_batch
from warpfold.app.jobs.store import brief_spec, light_result
from warpfold.app.tables.batches import batches
from warpfold.app.tables.jobs import is_, jobs, still
from warpfold.app.tables.users import users
from warpfold.contract.batches import status_of_ended
from warpfold.contract.id_beginning import range_of_ids
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch and how its jobs stand. `started_at` is when the first of them started, `finished_at` when the last of
    them ended; None while that has not happened."""

    id: UUID
    seq: int
    owner: str
    owner_id: int
    name: str
    tags: Mapping[str, str]
    count: int
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int

    @property
    def done(self) -> int:
        """How many jobs have ended."""
        return self.succeeded + self.failed + self.cancelled

    @property
    def status(self) -> Status:
        """The status that follows from the jobs: queued until the first has started or ended, running until the last
        has ended, and then what `status_of_ended` says."""
        if self.queued or self.running:
            return Status.RUNNING if self.done or self.running else Status.QUEUED
        return status_of_ended(self.failed, self.cancelled, cancel_requested=self.cancel_requested)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of one job of a batch. `spec`, `value` and `result` are JSON as text. The result of a study, which
    may have megabytes, is None here: `has_result` tells that there is one."""

    seq: int
    id: UUID
    index: int
    kind: str
    status: str
    spec: str
    value: str | None
    result: str | None
    has_result: bool
    reason: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job of a batch that failed. `spec` is JSON as text, in brief where it carries many values."""

    id: UUID
    index: int
    kind: str
    spec: str
    reason: str
    error: str


def _count(status: Status) -> ColumnElement[int]:
    return func.count().filter(is_(status)).label(status.value)


_live = (
    select(
        *(_count(status) for status in Status),
        func.min(jobs.c.started_at).label("started_at"),
        func.max(jobs.c.finished_at).label("finished_at"),
    )
    # A batch that has settled is not counted: the scan does not begin.
    .where(jobs.c.batch_id == batches.c.id, batches.c.settled_at.is_(None))
    .correlate(batches)
    .lateral("live")
)


def _now(name: str) -> ColumnElement[Any]:
    return case((batches.c.settled_at.is_not(None), batches.c[name]), else_=_live.c[name]).label(name)


_BATCHES = (
    select(
        batches.c.id,
        batches.c.seq,
        users.c.name.label("owner"),
        batches.c.owner_id,
        batches.c.name,
        batches.c.tags,
        batches.c.count,
        batches.c.cancel_requested_at.is_not(None).label("cancel_requested"),
        batches.c.created_at,
        _now("started_at"),
        case(
            (batches.c.settled_at.is_not(None), batches.c.finished_at),
            (_live.c.queued + _live.c.running == 0, _live.c.finished_at),
        ).label("finished_at"),
        _live.c.queued,
        _live.c.running,
        _now("succeeded"),
        _now("failed"),
        _now("cancelled"),
    )
    .select_from(batches)
    .join(users, users.c.id == batches.c.owner_id)
    .join(_live, true())
)
_GET = _BATCHES.where(batches.c.id == bindparam("batch_id", type_=Uuid))
# The batches of the page are found first and their jobs counted afterwards: no plan may count the jobs of other pages.
_LISTED = _BATCHES.where(batches.c.id == func.any(bindparam("listed", type_=ARRAY(Uuid)))).order_by(
    batches.c.seq.desc()
)
_OWNER = select(users.c.id).where(users.c.name == bindparam("name"))
_IDS = (
    select(func.concat('"', jobs.c.id, '"'))
    .where(jobs.c.batch_id == bindparam("batch_id", type_=Uuid))
    .order_by(jobs.c.seq)
)
_OUTCOMES = (
    select(
        jobs.c.seq,
        jobs.c.id,
        jobs.c.batch_index.label("index"),
        jobs.c.kind,
        jobs.c.status,
        brief_spec,
        case((jobs.c.kind == "reduce", cast(jobs.c.result.op("->")("value"), Text))).label("value"),
        light_result,
        jobs.c.result.is_not(None).label("has_result"),
        jobs.c.reason,
        jobs.c.error,
    )
    .where(jobs.c.batch_id == bindparam("batch_id", type_=Uuid), jobs.c.seq > bindparam("after"))
    .order_by(jobs.c.batch_id, jobs.c.seq)
    .limit(bindparam("limit", type_=Integer))
)
_FAILED = (
    select(jobs.c.id, jobs.c.batch_index, jobs.c.kind, brief_spec, jobs.c.reason, jobs.c.error)
    .where(jobs.c.batch_id == bindparam("batch_id", type_=Uuid), still(Status.FAILED))
    .order_by(jobs.c.batch_id, jobs.c.seq)
    .limit(bindparam("limit", type_=Integer))
)
_RESULT = select(cast(jobs.c.result, Text)).where(jobs.c.id == bindparam("job_id", type_=Uuid))


def get(connection: Connection, batch_id: UUID) -> Batch | None:
    """Read one batch; None if no batch has this id."""
    row = connection.execute(_GET, {"batch_id": batch_id}).one_or_none()
    return None if row is None else _batch(row)


def existing(connection: Connection, batch_id: UUID, viewer: Viewer = THE_SERVICE) -> Batch:
    """Read one batch. Raises NotFound, also where the viewer does not see it."""
    batch = get(connection, batch_id)
    if batch is None or not sees(connection, viewer, batches, batch_id, batch.owner_id):
        raise no_such_batch()
    return batch


def page(
    connection: Connection,
    owner: str | None,
    limit: int,
    before_seq: int | None,
    beginning: str | None = None,
    *,
    viewer: Viewer = THE_SERVICE,
) -> Sequence[Batch]:
    """Up to `limit` batches of one owner, or with None of all, newest first, older than `before_seq`, whose ids start
    with `beginning`, and which the viewer sees."""
    seen = visible(batches, viewer)
    of: Any = batches.c
    if beginning is not None:
        ids = range_of_ids(beginning)
        if ids is None:
            return []
        # Few ids begin so: they are looked up first, lest the newest batches are walked until some of them fit.
        of = select(batches).where(batches.c.id.between(*ids), seen).cte("few").prefix_with("MATERIALIZED").c
    statement = select(of.id).order_by(of.seq.desc()).limit(limit)
    if beginning is None:
        statement = statement.where(seen)
    if owner is not None:
        owner_id = connection.execute(_OWNER, {"name": owner}).scalar_one_or_none()
        if owner_id is None:
            return []
        statement = statement.where(of.owner_id == owner_id)
    if before_seq is not None:
        statement = statement.where(of.seq < before_seq)
    return listed(connection, connection.execute(statement).scalars().all())


def listed(connection: Connection, ids: Sequence[UUID]) -> Sequence[Batch]:
    """The batches with these ids, newest first."""
    return [_batch(row) for row in connection.execute(_LISTED, {"listed": ids})] if ids else []


def beginning_with(connection: Connection, beginning: str, viewer: Viewer) -> Sequence[UUID]:
    """The ids of batches that begin so and that the viewer sees, of several only two."""
    ids = range_of_ids(beginning)
    if ids is None:
        return ()
    seen = select(batches.c.id).where(batches.c.id.between(*ids), visible(batches, viewer)).limit(2)
    return connection.execute(seen).scalars().all()


def ids_of(connection: Connection, batch_id: UUID) -> str:
    """The JSON of the ids of a batch's jobs in their order, with commas between."""
    return ", ".join(connection.execute(_IDS, {"batch_id": batch_id}).scalars())


def outcomes(connection: Connection, batch_id: UUID, after_seq: int, limit: int) -> Sequence[JobOutcome]:
    """Up to `limit` jobs of a batch whose `seq` is above `after_seq`, in their order."""
    asked = {"batch_id": batch_id, "after": after_seq, "limit": limit}
    return [JobOutcome(*row) for row in connection.execute(_OUTCOMES, asked)]


def failures(connection: Connection, batch_id: UUID, limit: int) -> Sequence[FailedJob]:
    """The first `limit` jobs of a batch that failed, in their order."""
    return [FailedJob(*row) for row in connection.execute(_FAILED, {"batch_id": batch_id, "limit": limit})]


def result_of(connection: Connection, job_id: UUID) -> str | None:
    """The JSON of a job's result; None if the job has no result, or was removed."""
    return connection.execute(_RESULT, {"job_id": job_id}).scalar_one_or_none()


def _batch(row: Row[*tuple[Any, ...]]) -> Batch:
    return Batch(**row._mapping)
