"""A job's events as server-sent events."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sse_starlette import ServerSentEvent

from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.context import Context
from warpfold.app.jobs import events as history
from warpfold.app.jobs.views import EventView, ProgressView, event_json, progress_json
from warpfold.app.notifications import LOOK_AGAIN_S
from warpfold.contract.states import EventType

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


async def stream(
    context: Context, job_id: UUID, after: int, allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[ServerSentEvent]:
    """Events numbered above `after`: the recorded ones, then new ones and progress as they come; ends with the job, or
    when who follows it is no longer `allowed`.

    A progress event has the number of the job's row, which counts on from the last event; it is not recorded, so a
    client that connects again gets what matters and no event twice.
    """
    with context.notifications.watch(job_id) as watch:
        while True:
            try:
                if not await allowed():
                    return
                # In this order, so that an event between the two reads is not overtaken by progress after it.
                standing = await context.database.read(history.standing, job_id)
                events = await context.database.read(history.events_after, job_id, after)
            except DATABASE_LOST:
                await watch.wait(LOOK_AGAIN_S)
                continue
            if standing is None:
                return  # its time was over
            for event in events:
                after = event.seq
                yield ServerSentEvent(event_json(event), event=event.type.value, id=str(event.seq))
            if standing.status.terminal and after >= standing.version:
                return
            if standing.version > after:
                after = standing.version
                yield ServerSentEvent(progress_json(standing), event="progress", id=str(after))
            await watch.wait(LOOK_AGAIN_S)
