"""SQL of the api: accept jobs, read them, ask for their end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.auth.models import users
from app.jobs.changes import change, wake_dispatcher
from app.jobs.models import events, idempotency_keys, jobs
from app.jobs.states import EventType, Status


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be accepted. `spec_brief` is what lists show in place of a bulky spec."""

    id: UUID
    owner_id: int
    kind: str
    priority: int
    needs: str
    timeout_s: float
    spec: Mapping[str, Any]
    spec_brief: Mapping[str, Any] | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """A job's row. `spec` and `result` are as stored: JSON values."""

    id: UUID
    seq: int
    version: int
    kind: str
    status: Status
    spec: Mapping[str, Any]
    owner: str
    owner_id: int
    priority: int
    tags: Mapping[str, str]
    attempt: int
    worker: str | None
    cancel_requested_at: datetime | None
    reason: str | None
    error: str | None
    progress_done: int
    progress_total: int
    progress_unit: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Stamp:
    """Enough of a job to say whether an answer about it is still current."""

    version: int
    status: Status
    priority: int
    seq: int


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a job's history; `seq` is the job's version after it."""

    seq: int
    type: EventType
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs a page lists; None does not restrict. `tag` is a (name, value) pair, its value None for any."""

    status: Status | None = None
    kind: str | None = None
    owner: str | None = None
    tag: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """An idempotency key that was used before."""

    body_hash: bytes
    job_id: UUID


_COLUMNS = (
    jobs.c.id,
    jobs.c.seq,
    jobs.c.version,
    jobs.c.kind,
    jobs.c.status,
    users.c.name.label("owner"),
    jobs.c.owner_id,
    jobs.c.priority,
    jobs.c.tags,
    jobs.c.attempt,
    jobs.c.worker,
    jobs.c.cancel_requested_at,
    jobs.c.reason,
    jobs.c.error,
    jobs.c.progress_done,
    jobs.c.progress_total,
    jobs.c.progress_unit,
    jobs.c.created_at,
    jobs.c.started_at,
    jobs.c.finished_at,
    jobs.c.result,
)
_BRIEF = func.coalesce(jobs.c.spec_brief, jobs.c.spec, type_=jobs.c.spec.type).label("spec")
_JOBS = jobs.join(users, users.c.id == jobs.c.owner_id)


def accept(connection: Connection, new: NewJob) -> None:
    """Store a queued job with its first event and wake the dispatcher."""
    connection.execute(
        insert(jobs).values(
            id=new.id,
            owner_id=new.owner_id,
            kind=new.kind,
            priority=new.priority,
            needs=new.needs,
            timeout_s=new.timeout_s,
            spec=dict(new.spec),
            spec_brief=None if new.spec_brief is None else dict(new.spec_brief),
            tags=dict(new.tags),
        )
    )
    connection.execute(insert(events).values(job_id=new.id, seq=1, type=EventType.SUBMITTED, data={}))
    wake_dispatcher(connection)


def keep_key(connection: Connection, owner_id: int, key: str, body_hash: bytes, job_id: UUID) -> Kept | None:
    """Bind an idempotency key to a job already accepted in this transaction; the earlier binding, if there is one.

    Two requests with one key that arrive together meet in the unique index: the second waits for the first's commit.
    """
    bound = connection.execute(
        upsert(idempotency_keys)
        .values(owner_id=owner_id, key=key, body_hash=body_hash, job_id=job_id)
        .on_conflict_do_nothing()
        .returning(idempotency_keys.c.job_id)
    ).one_or_none()
    return None if bound is not None else find_key(connection, owner_id, key)


def find_key(connection: Connection, owner_id: int, key: str) -> Kept | None:
    """What an idempotency key of this owner is bound to."""
    row = connection.execute(
        select(idempotency_keys.c.body_hash, idempotency_keys.c.job_id).where(
            idempotency_keys.c.owner_id == owner_id, idempotency_keys.c.key == key
        )
    ).one_or_none()
    return None if row is None else Kept(row.body_hash, row.job_id)


def count_queued(connection: Connection, owner_id: int) -> int:
    """How many jobs of this owner wait."""
    return connection.execute(
        select(func.count()).where(jobs.c.owner_id == owner_id, jobs.c.status == Status.QUEUED)
    ).scalar_one()


def get(connection: Connection, job_id: UUID) -> Job | None:
    """One job, whole."""
    row = (
        connection.execute(select(jobs.c.spec, *_COLUMNS).select_from(_JOBS).where(jobs.c.id == job_id))
        .mappings()
        .one_or_none()
    )
    return None if row is None else _job(row)


def stamp(connection: Connection, job_id: UUID) -> Stamp | None:
    """One job's version, for polls: reads four small columns by primary key."""
    row = connection.execute(
        select(jobs.c.version, jobs.c.status, jobs.c.priority, jobs.c.seq).where(jobs.c.id == job_id)
    ).one_or_none()
    return None if row is None else Stamp(row.version, Status(row.status), row.priority, row.seq)


def queue_position(connection: Connection, priority: int, seq: int) -> int:
    """1 for the queued job that is next by priority and age (fair share may let another owner's pass)."""
    ahead = or_(jobs.c.priority > priority, and_(jobs.c.priority == priority, jobs.c.seq < seq))
    return 1 + connection.execute(select(func.count()).where(jobs.c.status == Status.QUEUED, ahead)).scalar_one()


def page(connection: Connection, chosen: Filter, limit: int, before_seq: int | None) -> list[Job]:
    """Up to `limit` jobs, newest first, older than `before_seq`; bulky specs in brief."""
    where: list[ColumnElement[bool]] = []
    if chosen.status is not None:
        where.append(jobs.c.status == chosen.status)
    if chosen.kind is not None:
        where.append(jobs.c.kind == chosen.kind)
    if chosen.owner is not None:
        where.append(jobs.c.owner_id == select(users.c.id).where(users.c.name == chosen.owner).scalar_subquery())
    if chosen.tag is not None:
        name, value = chosen.tag
        where.append(jobs.c.tags.has_key(name) if value is None else jobs.c.tags.contains({name: value}))
    if before_seq is not None:
        where.append(jobs.c.seq < before_seq)
    rows = connection.execute(
        select(_BRIEF, *_COLUMNS).select_from(_JOBS).where(*where).order_by(jobs.c.seq.desc()).limit(limit)
    )
    return [_job(row) for row in rows.mappings()]


def events_after(connection: Connection, job_id: UUID, seq: int, limit: int = 1000) -> list[Event]:
    """A job's events with numbers above `seq`, in order."""
    rows = connection.execute(
        select(events.c.seq, events.c.type, events.c.data, events.c.at)
        .where(events.c.job_id == job_id, events.c.seq > seq)
        .order_by(events.c.seq)
        .limit(limit)
    )
    return [Event(row.seq, EventType(row.type), row.data, row.at) for row in rows]


def request_cancel(connection: Connection, job_id: UUID) -> None:
    """Cancel a queued job at once; leave a running one a note that its worker finds. No effect on other states."""
    ended = change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.status == Status.QUEUED)
        .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
        EventType.CANCELLED,
    )
    if ended:
        wake_dispatcher(connection)
        return
    change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, jobs.c.status == Status.RUNNING, jobs.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=func.now()),
        EventType.CANCEL_REQUESTED,
    )


def _job(row: RowMapping) -> Job:
    return Job(**{**row, "status": Status(row["status"])})
