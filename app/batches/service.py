"""The work of requests about batches, one function for each request."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection
from sse_starlette import ServerSentEvent
from structlog.typing import FilteringBoundLogger

from warpfold.app.auth import audit
from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.audit import Action, Deed
from warpfold.app.auth.visibility import Viewer
from warpfold.app.batches import accept, preparing, repository, transitions
from warpfold.app.batches.accept import AcceptedBatch, NewBatch
from warpfold.app.batches.preparing import Origin, Portion, UnreadBatch
from warpfold.app.batches.repository import Batch
from warpfold.app.batches.views import BatchEnd, progress_of
from warpfold.app.db import DATABASE_LOST
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Conflict, Forbidden, NotFound
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.app.http.middleware import current_request_id
from warpfold.app.jobs.accept import Key
from warpfold.app.notifications import LOOK_AGAIN_S, Watch
from warpfold.app.quotas.quota import Limits
from warpfold.contract.batches import MAX_JOBS
from warpfold.contract.states import Status

T = TypeVar("T")

log: FilteringBoundLogger = structlog.get_logger()

_FEW = 32
"""The most specs of a small body that are checked at once; the process for large bodies checks more specs."""

_PAUSE_S = 0.01
_PAUSE_OF_A_JOB_S = 200e-6
_LONGEST_PAUSE_S = 0.5
"""A follower of a batch pauses after each look, the longer the more jobs there are: the events of ten thousand jobs
become two looks a second, and the end of three jobs is known at once."""


async def submit(context: Context, user: Principal, unread: UnreadBatch, key: Key | None) -> AcceptedBatch:
    """Accept all jobs of a batch, or find the batch that was accepted with the same key."""
    settings, limits = context.settings, Limits.of(context.settings)
    with context.tracing.span("submit", kind="batch") as span:
        small, apart = len(unread.body) <= LARGE_BYTES, _Apart(context, user.id, len(unread.body))
        request = await apart.done(small, preparing.opened, unread.body, settings)
        few = small and request.count <= _FEW
        origin = Origin(user, current_request_id(), span.traceparent)
        portions: list[Portion] = []
        for piece in request.pieces:
            portions.append(await apart.done(few, preparing.prepared, piece, request.options, origin, settings))
            if sum(portion.stored for portion in portions) > MAX_JOBS:
                raise preparing.too_many_jobs()
        new = NewBatch(uuid4(), origin, request.options, request.count, portions, settings.share_jobs)
        accepted = await context.database.run(accept.submit, new, key, limits, context.viewer(user))
        span.note(batch=str(accepted.batch.id), jobs=accepted.batch.count, new=accepted.new)
    if accepted.new:
        log.info("submitted a batch", batch=str(accepted.batch.id), jobs=accepted.batch.count, owner=user.name)
    return accepted


@dataclass(frozen=True, slots=True)
class _Apart:
    """Where the body of a user, of so many bytes, is worked on."""

    context: Context
    user_id: int
    nbytes: int

    async def done(self, here: bool, function: Callable[..., T], *args: object) -> T:
        """The result of `function`, here or in a process for large bodies."""
        if here:
            return function(*args)
        return await self.context.large_bodies.apart(self.user_id, self.nbytes, function, *args)


async def get(context: Context, user: Principal, batch_id: UUID) -> Batch:
    """Read a batch that the user sees. Raises NotFound."""
    return await context.database.read(repository.existing, batch_id, context.viewer(user))


async def cancel(context: Context, user: Principal, batch_id: UUID) -> Batch:
    """Ask for the end of a batch's jobs. Raises NotFound, Forbidden, or Conflict if they have all ended otherwise."""
    return await context.database.run(_cancel, user, context.viewer(user), batch_id)


def _cancel(connection: Connection, user: Principal, viewer: Viewer, batch_id: UUID) -> Batch:
    batch = repository.existing(connection, batch_id, viewer)
    if batch.owner_id != user.id and not user.is_admin:
        raise Forbidden(f"The batch belongs to {batch.owner}; only its owner and admins may cancel it.")
    if not batch.status.terminal:
        if not batch.cancel_requested:
            audit.record(connection, Deed(user, Action.CANCEL_BATCH, str(batch_id), batch.owner, {"jobs": batch.count}))
        transitions.cancel(connection, batch_id)
        batch = repository.existing(connection, batch_id)
    if batch.status in (Status.SUCCEEDED, Status.FAILED):
        raise Conflict(f"The batch has already {batch.status}.", extension={"batch_status": batch.status.value})
    return batch


async def hold(
    context: Context,
    user: Principal,
    batch_id: UUID,
    seconds: float,
    enough: Callable[[Batch], bool],
    *,
    gone: Callable[[], Awaitable[bool]],
) -> Batch:
    """Wait until `enough` is true of the batch, the time is over, or the client is `gone`; returns its last state."""
    until = time.monotonic() + seconds
    with context.notifications.watch(batch_id) as watch:
        while True:
            batch = await get(context, user, batch_id)
            left = until - time.monotonic()
            if enough(batch) or left <= 0 or await gone():
                return batch
            await _news(watch, batch, left)


async def _news(watch: Watch, batch: Batch, left: float) -> None:
    """Wait for news of a batch, and then a moment longer, so that the ends of many jobs make one event."""
    started = time.monotonic()
    await watch.wait(left)
    pause = min(_LONGEST_PAUSE_S, _PAUSE_S + _PAUSE_OF_A_JOB_S * batch.count)
    await asyncio.sleep(max(0.0, min(pause - (time.monotonic() - started), left)))


async def stream(
    context: Context, user: Principal, batch_id: UUID, allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[ServerSentEvent]:
    """How the jobs of a batch stand, whenever that has changed; ends with the batch, or when the client that follows it
    is no longer `allowed` to.

    The number of an event is how many jobs have ended, and of the last event one more. No event is recorded: each says
    all that there is to say.
    """
    shown = ""
    with context.notifications.watch(batch_id) as watch:
        while True:
            try:
                if not await allowed():
                    return
                batch = await get(context, user, batch_id)
            except DATABASE_LOST:
                await watch.wait(LOOK_AGAIN_S)
                continue
            except NotFound:
                return  # retention removed the batch, or it is shared with the user no more
            progress = progress_of(batch)
            now = progress.model_dump_json()
            if now != shown:
                shown = now
                yield ServerSentEvent(now, event="progress", id=str(batch.done))
            if batch.status.terminal:
                assert batch.finished_at is not None
                end = BatchEnd(status=batch.status, at=batch.finished_at, progress=progress)
                yield ServerSentEvent(end.model_dump_json(), event=batch.status.value, id=str(batch.count + 1))
                return
            await _news(watch, batch, LOOK_AGAIN_S)
