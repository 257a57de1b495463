"""The page of a batch: how its jobs stand until the last has ended, the first that failed, all results to download."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Form, Header
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.batches import repository, service
from warpfold.app.batches.repository import Batch, FailedJob
from warpfold.app.dashboard.rendering import etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import BatchRow
from warpfold.app.dashboard.shared import Shared, Sharing
from warpfold.app.dashboard.visitors import Visitor, safe_path
from warpfold.app.http.context import Context, Using
from warpfold.app.http.headers import matches
from warpfold.contract.jobs import summary_of
from warpfold.contract.states import Status

_FIRST_FAILURES = 10

router = pages()


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A job of the batch that failed, with the reason in a sentence."""

    id: UUID
    index: int
    kind: str
    summary: str
    reason: str
    error: str

    @classmethod
    def of(cls, failure: FailedJob) -> "FailedRow":
        summary = summary_of(failure.kind, json.loads(failure.spec))
        return cls(failure.id, failure.index, failure.kind, summary, failure.reason, failure.error)


@router.get("/batches/{batch_id}")
async def show(batch_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the page."""
    batch = await service.get(context, visitor, batch_id)
    return page(request, "batch", user=visitor, **await _model(context, batch, visitor))


@router.get("/live/batches/{batch_id}")
async def live(
    *,
    batch_id: UUID,
    request: Request,
    visitor: Visitor,
    context: Using,
    shared: Sharing,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Show the changing part of the page, for polls. Once the batch has ended, the part that is sent polls no more."""
    batch = await _read(context, shared, visitor, batch_id)
    tag = etag(visitor, batch)
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)
    return part("batch_live", **await _model(context, batch, visitor)).response(request)


@router.post("/batches/{batch_id}/cancel")
async def cancel(
    batch_id: UUID, visitor: Visitor, context: Using, next: Annotated[str, Form(max_length=2048)] = ""
) -> Response:
    """Ask for the end of a batch's jobs, and go back to where the button was."""
    await service.cancel(context, visitor, batch_id)
    return RedirectResponse(safe_path(next) if next else f"/batches/{batch_id}", 303)


async def _read(context: Context, shared: Shared, visitor: Principal, batch_id: UUID) -> Batch:
    """The batch as it was within the last second: many windows of a user that show it count its jobs
    once."""

    async def read() -> Batch:
        return await service.get(context, visitor, batch_id)

    return await shared.polls.get(("batch", batch_id, context.viewer(visitor)), read)


async def _model(context: Context, batch: Batch, visitor: Principal) -> dict[str, Any]:
    failures: Sequence[FailedJob] = ()
    if batch.failed:
        failures = await context.database.read(repository.failures, batch.id, _FIRST_FAILURES)
    return {
        "row": BatchRow.of(batch, visitor),
        "states": list(Status),
        "started_at": batch.started_at,
        "finished_at": batch.finished_at,
        "ended": batch.status.terminal,
        "failures": [FailedRow.of(failure) for failure in failures],
        "etag": etag(visitor, batch),
    }
