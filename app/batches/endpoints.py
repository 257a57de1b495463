"""HTTP of batches: submit, list, show, follow, cancel, and the results of all jobs."""

import hashlib
from collections.abc import Callable, Coroutine
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.batches import repository, results, service
from warpfold.app.batches.preparing import UnreadBatch
from warpfold.app.batches.repository import Batch
from warpfold.app.batches.results import JSON_LINES, PARQUET, BatchResultView
from warpfold.app.batches.views import (
    AcceptedBatchView,
    BatchEnd,
    BatchPage,
    BatchView,
    accepted_json,
    etag_of,
    view_of,
)
from warpfold.app.http.bearer import User, authenticate, still_allowed
from warpfold.app.http.context import Using, context_of
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotAcceptable,
    NotFound,
    TooLarge,
    TooMany,
    UnsupportedMedia,
)
from warpfold.app.http.headers import applied, matches, preferred, seconds_to_wait
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRequest, JsonRoute
from warpfold.app.jobs.accept import Key
from warpfold.app.jobs.endpoints import IdempotencyKey, Prefer, gone
from warpfold.app.jobs.events import KEEP_ALIVE_S
from warpfold.app.results.views import check_parquet
from warpfold.contract.batches import BatchProgress
from warpfold.contract.id_beginning import IdBeginning

PREFIX = "/v1/batches"
_LISTING = "batches"
_JSON = "application/json"
_ETAG = {"ETag": {"description": "The entity tag of this state of the batch.", "schema": {"type": "string"}}}
_EVENTS = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "event": {"type": "string", "enum": ["progress", "succeeded", "failed", "cancelled"]},
        "data": {
            "type": "string",
            "contentMediaType": _JSON,
            "contentSchema": {"anyOf": [BatchProgress.model_json_schema(), BatchEnd.model_json_schema()]},
        },
    },
    "required": ["id", "event", "data"],
}


class ResultFormat(StrEnum):
    """The format of a batch's results."""

    JSONL = "jsonl"
    PARQUET = "parquet"


class BatchRoute(JsonRoute):
    """A route whose body, however small, has a place among the user's large bodies until it is answered: a small sweep
    comes to many jobs."""

    most_bytes_here = -1

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def placed(request: Request) -> Response:
            if self.body_field is None:
                return await handle(request)
            principal = await authenticate(request)
            async with (await context_of(request)).large_bodies.place(principal.id):
                return await handle(request)

        return placed

    async def check_apart(self, request: JsonRequest, principal: Principal) -> None:
        """Leave the body as it is: `service.submit` has it checked piece by piece."""
        request.checked = UnreadBatch(await request.body())


router = APIRouter(prefix=PREFIX, tags=["batches"], route_class=BatchRoute)


@router.post(
    "",
    status_code=201,
    response_model=AcceptedBatchView,
    summary="Submit a batch",
    responses={
        200: {"model": AcceptedBatchView, "description": "The same key and body made this batch before."},
        201: {
            "description": "All jobs are accepted.",
            "headers": {"Location": {"description": "The path of the batch.", "schema": {"type": "string"}}},
        },
        **answers(BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid, TooMany),
    },
)
async def submit_batch(
    *,
    batch: UnreadBatch,
    user: User,
    context: Using,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Accept up to 10,000 jobs by one request: all of them, or none. The jobs are `specs`, or a `sweep` of one spec
    over lists of values. A wrong spec refuses the batch, and the problem names its field: `specs[17].source.dtype`,
    `sweep.over.op[1]`. A batch beyond the quota `queued` is a 429. A repetition with the same `Idempotency-Key` and
    the same body is answered with 200 and the first batch, a repetition with another body with 422."""
    key = None
    if idempotency_key is not None:
        key = Key(idempotency_key, hashlib.sha256(batch.body).digest())
    accepted = await service.submit(context, user, batch, key)
    headers = {"Location": f"{PREFIX}/{accepted.batch.id}"}
    return Response(accepted_json(accepted.batch, accepted.ids), 201 if accepted.new else 200, headers, _JSON)


@router.get("", response_model=BatchPage, summary="List batches", responses=answers(Invalid))
async def list_batches(
    *,
    user: User,
    context: Using,
    id: Annotated[
        IdBeginning | None,
        Query(
            description="List the batch with this id, or the batches whose ids begin so. They may be of any user "
            "whose batches you see, unless `owner` names one."
        ),
    ] = None,
    owner: Annotated[
        str | None,
        Query(max_length=64, pattern=r"^[^\x00]*$", description="List the batches of this user in place of yours."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[
        str | None,
        Query(max_length=321, pattern=r"^[^\x00]*$", description="The `next_cursor` of the page before."),
    ] = None,
) -> BatchPage:
    """List your batches, those of `owner`, or those whose ids begin with `id`, newest first."""
    whose = owner or (user.name if id is None else None)
    before = key_of(_LISTING, cursor)
    batches = await context.database.search(repository.page, whose, limit + 1, before, id, viewer=context.viewer(user))
    following = cursor_of(_LISTING, batches[limit - 1].seq) if len(batches) > limit else None
    return BatchPage(items=[view_of(batch) for batch in batches[:limit]], next_cursor=following)


@router.get(
    "/{batch_id}",
    response_model=BatchView,
    summary="Show a batch",
    responses={
        200: {"headers": _ETAG},
        304: {"description": "The batch is still in the state that the ETag in `If-None-Match` stands for."},
        **answers(NotFound, Invalid),
    },
)
async def show_batch(
    *,
    batch_id: UUID,
    request: Request,
    user: User,
    context: Using,
    if_none_match: Annotated[str | None, Header(description="The ETag of an earlier answer.", max_length=1024)] = None,
    prefer: Prefer = None,
) -> Response:
    """Show a batch with the counts of its jobs by status. With `Prefer: wait=N` the answer is held until the batch's
    status changes (queued → running → ended); a batch that has ended is answered at once. With `If-None-Match` as well,
    the answer is held until anything changes. To wait for the end, repeat until the status is succeeded, failed or
    cancelled."""
    wait = seconds_to_wait(prefer)
    batch = await service.get(context, user, batch_id)
    if wait is not None and not batch.status.terminal:
        first = batch.status

        def enough(seen: Batch) -> bool:
            if if_none_match is not None:
                return seen.status.terminal or not matches(if_none_match, etag_of(seen))
            return seen.status is not first

        batch = await service.hold(context, user, batch_id, wait, enough, gone=partial(gone, request))
    headers = {"ETag": etag_of(batch), **applied(wait)}
    if if_none_match is not None and matches(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    headers["Cache-Control"] = "private, no-cache"
    return Response(view_of(batch).model_dump_json(), headers=headers, media_type=_JSON)


@router.get(
    "/{batch_id}/events",
    summary="Follow a batch",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": (
                "The stream sends the counts of the jobs at once, and again when they have changed, at most a few "
                "times a second. It ends with the batch. `event` is `progress`, and `data` is a BatchProgress; in "
                "the last event, `event` is the batch's status, and `data` is a BatchEnd. `id` is the number of "
                "jobs that have ended; in the last event it is one more."
            ),
            "content": {"text/event-stream": {"itemSchema": _EVENTS}},
        },
        204: {"description": "The batch has ended and `Last-Event-ID` is its last event: do not connect again."},
        **answers(NotFound, Invalid),
    },
)
async def follow_batch(
    *,
    batch_id: UUID,
    request: Request,
    user: User,
    context: Using,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=2**31 - 1, description="The number of the last event that you saw.")
    ] = None,
) -> Response:
    """Send the counts of a batch's jobs as they change, with a comment every 15 seconds to keep the connection."""
    batch = await service.get(context, user, batch_id)
    if batch.status.terminal and (last_event_id or 0) > batch.count:
        return Response(status_code=204)
    return EventSourceResponse(
        service.stream(context, user, batch_id, partial(still_allowed, request)),
        ping=KEEP_ALIVE_S,
        headers={"Cache-Control": "no-store"},
    )


@router.post(
    "/{batch_id}/cancel",
    status_code=202,
    response_model=BatchView,
    summary="Cancel a batch",
    responses=answers(Forbidden, NotFound, Conflict, Invalid),
)
async def cancel_batch(batch_id: UUID, user: User, context: Using) -> Response:
    """Cancel all jobs of a batch: waiting jobs are cancelled at once, running jobs within about a second. Jobs that
    have ended stay as they are. The request may be repeated; for a batch that succeeded or failed the answer is a
    409."""
    batch = await service.cancel(context, user, batch_id)
    return Response(view_of(batch).model_dump_json(), 202, {"Location": f"{PREFIX}/{batch.id}"}, _JSON)


@router.get(
    "/{batch_id}/results",
    response_class=Response,
    summary="Read the results of a batch",
    responses={
        200: {
            "description": "A line of JSON for each job in the order of the specs. In Parquet, `spec` and `result` are "
            "columns of JSON text, `value_text` is the value as JSON, and `value` is null where a "
            "float64 does not hold the value exactly.",
            "content": {
                JSON_LINES: {"schema": {"type": "string"}, "itemSchema": BatchResultView.model_json_schema()},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        **answers(NotFound, NotAcceptable, Invalid, TooMany),
    },
)
async def read_batch_results(
    *,
    batch_id: UUID,
    user: User,
    context: Using,
    format: Annotated[
        ResultFormat | None, Query(description="Format of the answer; without it, `Accept` decides.")
    ] = None,
    accept: Annotated[str | None, Header(max_length=1024)] = None,
) -> Response:
    """Read the outcome of every job of a batch, in the order of the specs. Jobs that have not ended are listed, too,
    with their status and without a result."""
    media_type = preferred(accept, (JSON_LINES, PARQUET))
    if format is not None:
        media_type = PARQUET if format is ResultFormat.PARQUET else JSON_LINES
    if media_type is None:
        raise NotAcceptable(f"The results of a batch are {JSON_LINES} or {PARQUET}.")
    await service.get(context, user, batch_id)
    if media_type == PARQUET:
        check_parquet()
    make = results.parquet if media_type == PARQUET else results.json_lines
    pieces = make(context.database, batch_id)
    return await context.heavy_answers.answer(user.id, pieces, media_type, {"Vary": "Accept"})
