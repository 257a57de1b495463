"""New batch: specs as JSON lines, typed or from a file, or a sweep of one spec over lists of values."""

import hashlib
from typing import Any
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.batches import service
from warpfold.app.batches.preparing import UnreadBatch
from warpfold.app.dashboard.forms.batch import SentBatch, read_batch
from warpfold.app.dashboard.pages.new_job import small_body
from warpfold.app.dashboard.rendering import page
from warpfold.app.dashboard.routes import LargeFormRoute
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import ApiError, Invalid
from warpfold.app.http.large_bodies import LARGE_BYTES
from warpfold.app.jobs.accept import Key

_EXAMPLE = """\
{
  "spec": {"kind": "reduce", "source": {"type": "generate", "distribution": "normal", "n": 1000000}},
  "over": {"source.seed": [1, 2, 3], "op": ["sum", "max"]}
}"""

router = pages(LargeFormRoute)


@router.get("/batches/new")
async def show(request: Request, visitor: Visitor) -> Response:
    """The form, with a sweep as an example in it."""
    return await _page(request, visitor, SentBatch("", "", _EXAMPLE, uuid4().hex, None, (), ()))


@router.post("/batches/new")
async def submit(request: Request, visitor: Visitor, context: Using) -> Response:
    """Submit all jobs, and go to the batch. Faults are named by their lines, and the form stays as it was."""
    small = await small_body(request)
    if small is not None:
        return await _submitted(request, context, visitor, read_batch(small))
    async with context.large_bodies.place(visitor.id):
        body = await request.body()
        sent = await context.large_bodies.apart(visitor.id, len(body), read_batch, body)
        return await _submitted(request, context, visitor, sent)


async def _submitted(request: Request, context: Context, visitor: Principal, sent: SentBatch) -> Response:
    if sent.body is None:
        return await _page(request, visitor, sent, Invalid.at(sent.problems))
    digest = hashlib.sha256(sent.body).digest()
    # A form sent twice makes one batch; the same form with other specs makes another.
    key = Key(f"form-{sent.nonce[:64]}-{digest.hex()[:32]}", digest) if sent.nonce.isalnum() else None
    try:
        accepted = await service.submit(context, visitor, UnreadBatch(sent.body), key)
    except ApiError as error:
        return await _page(request, visitor, sent, error)
    return RedirectResponse(f"/batches/{accepted.batch.id}", 303)


async def _page(request: Request, visitor: Principal, sent: SentBatch, error: ApiError | None = None) -> Response:
    model: dict[str, Any] = {"sent": sent, "nonce": sent.nonce or uuid4().hex, "error": error}
    model["problems"] = [sent.typed(problem) for problem in error.errors] if error is not None else []
    status = 200 if error is None else error.status
    if len(sent.specs) > LARGE_BYTES:
        return await run_in_threadpool(page, request, "new_batch", status, user=visitor, **model)
    return page(request, "new_batch", status, user=visitor, **model)
