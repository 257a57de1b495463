"""SQL of the api for one job: accept it, read it, ask for its end. `app.jobs.pages` has the lists.

Statements are built once, here, with bound parameters: SQLAlchemy then finds their compiled form at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from app.auth.models import users
from app.channels import QUEUE
from app.jobs.changes import change, wake_dispatcher
from app.jobs.models import events, idempotency_keys, is_, jobs
from app.jobs.states import EventType, Status


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be accepted. `spec` is its JSON text, `spec_brief` what lists show in place of a bulky one."""

    id: UUID
    owner_id: int
    kind: str
    priority: int
    needs: str
    timeout_s: float
    spec: str
    spec_brief: str | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Enough of a job to say whether an answer about it is still current."""

    version: int
    status: Status
    queue_position: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job's row. `spec` and `result` are JSON as text: they are passed on, not read.

    `queue_position` is 1 for the queued job that is next by priority and age (fair share may let another owner's
    pass), None unless queued.
    """

    id: UUID
    seq: int
    version: int
    kind: str
    status: Status
    spec: str
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
    result: str | None
    queue_position: int | None

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.version, self.status, self.queue_position)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a job's history; `seq` is the job's version after it."""

    seq: int
    type: EventType
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """An idempotency key that was used before."""

    body_hash: bytes
    job_id: UUID


COLUMNS = (
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
    cast(jobs.c.result, Text).label("result"),
)
OWNED = jobs.join(users, users.c.id == jobs.c.owner_id)

_ahead = jobs.alias("ahead")
_POSITION = case(
    (
        is_(Status.QUEUED),
        select(1 + func.count())
        .select_from(_ahead)
        .where(
            is_(Status.QUEUED, _ahead),
            or_(
                _ahead.c.priority > jobs.c.priority,
                and_(_ahead.c.priority == jobs.c.priority, _ahead.c.seq < jobs.c.seq),
            ),
        )
        .correlate(jobs)
        .scalar_subquery(),
    )
).label("queue_position")
_ONE = jobs.c.id == bindparam("job_id")

_GET = select(cast(jobs.c.spec, Text).label("spec"), *COLUMNS, _POSITION).select_from(OWNED).where(_ONE)
_STAMP = select(jobs.c.version, jobs.c.status, _POSITION).where(_ONE)
_EVENTS = (
    select(events.c.seq, events.c.type, events.c.data, events.c.at)
    .where(events.c.job_id == bindparam("job_id"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("at_most"))
)
_QUEUED_OF = select(func.count()).where(jobs.c.owner_id == bindparam("owner_id"), is_(Status.QUEUED))
_KEY = select(idempotency_keys.c.body_hash, idempotency_keys.c.job_id).where(
    idempotency_keys.c.owner_id == bindparam("owner_id"), idempotency_keys.c.key == bindparam("key")
)
_KEEP_KEY = upsert(idempotency_keys).on_conflict_do_nothing().returning(idempotency_keys.c.job_id)

# The job, its first event and the dispatcher's wake-up in one round trip.
_TEXTS = ("spec", "spec_brief")
_accepted = (
    insert(jobs)
    .values({name: bindparam(name) for name in NewJob.__dataclass_fields__ if name not in _TEXTS})
    .values({name: cast(bindparam(name, type_=Text), jobs.c[name].type) for name in _TEXTS})
    .returning(jobs.c.id)
    .cte("accepted")
)
_first_event = select(_accepted.c.id, literal(1), literal(EventType.SUBMITTED.value), literal({}, events.c.data.type))
_submitted = insert(events).from_select(["job_id", "seq", "type", "data"], _first_event).cte("submitted")
_ACCEPT = select(_accepted.c.id, func.pg_notify(QUEUE, "")).add_cte(_submitted)


def accept(connection: Connection, new: NewJob) -> None:
    """Store a queued job with its first event and wake the dispatcher."""
    connection.execute(_ACCEPT, {name: getattr(new, name) for name in NewJob.__dataclass_fields__})


def keep_key(connection: Connection, owner_id: int, key: str, body_hash: bytes, job_id: UUID) -> bool:
    """Bind an idempotency key to a job accepted in this transaction; False if the key is bound already.

    Two requests with one key that arrive together meet in the unique index: the second waits for the first's commit.
    """
    bound = connection.execute(
        _KEEP_KEY, {"owner_id": owner_id, "key": key, "body_hash": body_hash, "job_id": job_id}
    ).one_or_none()
    return bound is not None


def find_key(connection: Connection, owner_id: int, key: str) -> Kept | None:
    """What an idempotency key of this owner is bound to."""
    row = connection.execute(_KEY, {"owner_id": owner_id, "key": key}).one_or_none()
    return None if row is None else Kept(row.body_hash, row.job_id)


def count_queued(connection: Connection, owner_id: int) -> int:
    """How many jobs of this owner wait."""
    return int(connection.execute(_QUEUED_OF, {"owner_id": owner_id}).scalar_one())


def get(connection: Connection, job_id: UUID) -> Job | None:
    """One job, whole."""
    row = connection.execute(_GET, {"job_id": job_id}).mappings().one_or_none()
    return None if row is None else job_of(row)


def stamp(connection: Connection, job_id: UUID) -> Stamp | None:
    """One job's version, for polls: one row by primary key, and its place in the queue if it waits."""
    row = connection.execute(_STAMP, {"job_id": job_id}).one_or_none()
    return None if row is None else Stamp(row[0], Status(row[1]), row[2])


def events_after(connection: Connection, job_id: UUID, seq: int, limit: int = 1000) -> list[Event]:
    """A job's events with numbers above `seq`, in order."""
    rows = connection.execute(_EVENTS, {"job_id": job_id, "after": seq, "at_most": limit})
    return [Event(row.seq, EventType(row.type), row.data, row.at) for row in rows]


def request_cancel(connection: Connection, job_id: UUID) -> None:
    """Cancel a queued job at once; leave a running one a note that its worker finds. No effect on other states."""
    ended = change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, is_(Status.QUEUED))
        .values(status=Status.CANCELLED, cancel_requested_at=func.now(), finished_at=func.now()),
        EventType.CANCELLED,
    )
    if ended:
        wake_dispatcher(connection)
        return
    change(
        connection,
        update(jobs)
        .where(jobs.c.id == job_id, is_(Status.RUNNING), jobs.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=func.now()),
        EventType.CANCEL_REQUESTED,
    )


def job_of(row: Mapping[Any, Any]) -> Job:
    """A row of `COLUMNS`, `spec` and `queue_position`."""
    return Job(**{**row, "status": Status(row["status"])})
