"""The events of a job: its history and its progress, read from Postgres and sent as server-sent events."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select
from sse_starlette import ServerSentEvent

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.visibility import Viewer, sees
from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.context import Context
from warpfold.app.jobs.views import EventView, ProgressView
from warpfold.app.notifications import LOOK_AGAIN_S
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
class Progress:
    """How far a job is; `version` is the number of its row."""

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
_PROGRESS = select(
    jobs.c.version,
    jobs.c.status,
    jobs.c.progress_done,
    jobs.c.progress_total,
    jobs.c.progress_unit,
    jobs.c.owner_id,
).where(jobs.c.id == bindparam("job_id"))


def progress(connection: Connection, job_id: UUID, viewer: Viewer) -> Progress | None:
    """How far one job is, for streams, which look every second: without spec, result and place in the queue. None where
    the viewer does not see it."""
    row = connection.execute(_PROGRESS, {"job_id": job_id}).one_or_none()
    if row is None or not sees(connection, viewer, jobs, job_id, row.owner_id):
        return None
    return Progress(row[0], Status(row[1]), *row[2:5])


def events_after(connection: Connection, job_id: UUID, seq: int) -> list[Event]:
    """A job's events with numbers above `seq`, in order."""
    rows = connection.execute(_EVENTS, {"job_id": job_id, "after": seq})
    return [Event(row.seq, EventType(row.type), row.data, row.at) for row in rows]


KEEP_ALIVE_S = 15

ITEM_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[0-9]+$"},
            "event": {"type": "string", "enum": [*(kind.value for kind in EventType), "progress"]},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {
                    "anyOf": [EventView.model_json_schema(), ProgressView.model_json_schema()],
                },
            },
        },
        "required": ["id", "event", "data"],
    }
)
"""One event, as OpenAPI 3.2 describes streams (`itemSchema`); earlier versions leave the keyword aside."""


def event_json(event: Event) -> str:
    """An `EventView` as JSON."""
    return json.dumps({"type": event.type.value, "at": event.at.isoformat(), "data": event.data}, ensure_ascii=False)


def progress_json(now: Progress) -> str:
    """The data of a progress event: a `ProgressView` as JSON."""
    return json.dumps({"done": now.done, "total": now.total, "unit": now.unit})


async def stream(
    context: Context, user: Principal, job_id: UUID, after: int, allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[ServerSentEvent]:
    """Events numbered above `after`: the recorded ones, then new ones and progress as they come; ends with the job, or
    when the client that follows it is no longer `allowed` to.

    A progress event has the number of the job's row, which counts on from the last event; it is not recorded, so a
    client that connects again gets what matters and no event twice.
    """
    with context.notifications.watch(job_id) as watch:
        while True:
            try:
                if not await allowed():
                    return
                # In this order, so that an event between the two reads is not overtaken by progress after it.
                now = await context.database.read(progress, job_id, context.viewer(user))
                new = await context.database.read(events_after, job_id, after)
            except DATABASE_LOST:
                await watch.wait(LOOK_AGAIN_S)
                continue
            if now is None:
                return  # retention removed the job, or it is shared with the user no more
            for event in new:
                after = event.seq
                yield ServerSentEvent(event_json(event), event=event.type.value, id=str(event.seq))
            if now.status.terminal and after >= now.version:
                return
            if now.version > after:
                after = now.version
                yield ServerSentEvent(progress_json(now), event="progress", id=str(after))
            await watch.wait(LOOK_AGAIN_S)
