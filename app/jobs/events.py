"""SQL of what happened to a job, and of how far it is: for streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select

from warpfold.app.tables.jobs import events, jobs
from warpfold.contract.states import EventType, Status


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a job's history; `seq` is the job's version after it."""

    seq: int
    type: EventType
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a job is."""

    version: int
    status: Status
    done: int
    total: int
    unit: str


_EVENTS = (
    select(events.c.seq, events.c.type, events.c.data, events.c.at)
    .where(events.c.job_id == bindparam("job_id"), events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
)
_STANDING = select(
    jobs.c.version, jobs.c.status, jobs.c.progress_done, jobs.c.progress_total, jobs.c.progress_unit
).where(jobs.c.id == bindparam("job_id"))


def standing(connection: Connection, job_id: UUID) -> Standing | None:
    """How far one job is, for streams, which look every second: without spec, result and place in the queue."""
    row = connection.execute(_STANDING, {"job_id": job_id}).one_or_none()
    return None if row is None else Standing(row[0], Status(row[1]), *row[2:])


def events_after(connection: Connection, job_id: UUID, seq: int) -> list[Event]:
    """A job's events with numbers above `seq`, in order."""
    rows = connection.execute(_EVENTS, {"job_id": job_id, "after": seq})
    return [Event(row.seq, EventType(row.type), row.data, row.at) for row in rows]
