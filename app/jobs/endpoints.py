"""HTTP of jobs: submit, list, show, follow, cancel, edit, delete, and the result."""

import hashlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Header, Query, Request
from pydantic import TypeAdapter, ValidationError
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.http.bearer import User, still_allowed
from warpfold.app.http.context import Context, Using, context_of
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorized,
    UnsupportedMedia,
)
from warpfold.app.http.headers import applied, matches, seconds_to_wait
from warpfold.app.http.openapi import answers
from warpfold.app.http.requests import JsonRequest, JsonRoute
from warpfold.app.jobs import listing, placing, service
from warpfold.app.jobs.accept import Key, check_lengths
from warpfold.app.jobs.editing import JobEdit
from warpfold.app.jobs.events import ITEM_SCHEMA, KEEP_ALIVE_S, stream
from warpfold.app.jobs.query import JobQuery
from warpfold.app.jobs.store import JobVersion
from warpfold.app.jobs.value_rows import CSV, csv_of_result
from warpfold.app.jobs.views import JobPage, JobView, job_json, page_json
from warpfold.contract.jobs import JobResult, JobSpec

_LISTING = "jobs"
_JSON = "application/json"
_LONGEST_PREFER = 256
_WAIT = "`wait=30` holds the request for up to that many seconds; 60 is the most."

Prefer = Annotated[str | None, Header(description=_WAIT, max_length=_LONGEST_PREFER)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="A key that you choose: repeating a submission with the same key never makes a second job.",
    ),
]


class JobRequest(JsonRequest):
    """A submission. Far too many values are refused before each of them is looked at."""

    @staticmethod
    def read(body: bytes, max_values: int) -> Any:
        """`body` as JSON. Raises Invalid as well."""
        value = JsonRequest.read(body, max_values)
        if isinstance(value, dict):
            check_lengths(value, max_values)
        return value


_SPEC: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


class JobRoute(JsonRoute):
    """A route of jobs. A plain submission of a lone job is read here: to solve the dependencies of its route takes
    FastAPI longer than to check a spec."""

    request_class = JobRequest

    async def at_once(self, request: JsonRequest, principal: Principal) -> Response | None:
        prefer = request.headers.get("prefer")
        is_plain = not request.scope["query_string"] and "idempotency-key" not in request.headers
        if self.endpoint is not submit_job or not is_plain or len(prefer or "") > _LONGEST_PREFER:
            return None
        if request.checked is not None or not await request.body():
            return None
        try:
            spec = _SPEC.validate_python(await request.json())
        except ValidationError:
            return None
        return await submitted(request, principal, await context_of(request), spec, prefer=prefer)


router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JobRoute)


@router.post(
    "",
    status_code=202,
    response_model=JobView,
    summary="Submit a job",
    responses={
        200: {"model": JobView, "description": "The same key and body made this job before."},
        202: {
            "description": "The job is accepted.",
            "headers": {
                "Location": {"description": "The path of the job.", "schema": {"type": "string"}},
                "Retry-After": {
                    "description": "How many seconds to wait before asking for the job.",
                    "schema": {"type": "integer"},
                },
            },
        },
        **answers(BadRequest, Forbidden, TooLarge, UnsupportedMedia, Invalid, TooMany),
    },
)
async def submit_job(
    *,
    spec: JobSpec,
    request: Request,
    user: User,
    context: Using,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> Response:
    """Accept a job. With `Prefer: wait=N` the answer comes when the job has ended, or after N seconds; its status is
    202 in any case. A repetition with the same `Idempotency-Key` and the same body gets 200 and the first job; a
    repetition with another body gets 422."""
    key = None
    if idempotency_key is not None:
        key = Key(idempotency_key, hashlib.sha256(await request.body()).digest())
    return await submitted(request, user, context, spec, key=key, prefer=prefer)


async def submitted(
    request: Request, user: User, context: Context, spec: JobSpec, *, key: Key | None = None, prefer: str | None
) -> Response:
    """Accept a job, wait for it as long as `prefer` says, and answer with it. Raises ApiError."""
    wait = seconds_to_wait(prefer)
    job_id = uuid4()
    if wait is None:
        job = await service.placed(context, await service.submit(context, user, spec, key, job_id))
    else:
        left = partial(gone, request)
        job = await service.submit_and_wait(context, user, spec, key, job_id, seconds=wait, gone=left)
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": "1", **applied(wait)}
    return Response(job_json(job), 202 if job.id == job_id else 200, headers, _JSON)


@router.get("", response_model=JobPage, summary="List jobs", responses=answers(Invalid))
async def list_jobs(*, user: User, context: Using, query: Annotated[JobQuery, Query()]) -> Response:
    """List the jobs that you see, newest first. The list shows long `values` in brief, and results of studies not at
    all. To restrict by several states, kinds, owners or tags, repeat the parameter. Where several restrictions meet in
    few jobs, a page may have fewer than `limit` jobs, or none, before the last: follow `next_cursor` until it is
    null."""
    chosen = query.chosen(context.viewer(user))
    page = await context.database.search(listing.page, chosen, query.limit, key_of(_LISTING, query.cursor))
    following = None if page.following is None else cursor_of(_LISTING, page.following)
    count = await context.database.search(listing.count, chosen) if query.count else None
    jobs = await placing.placed(context, page.jobs)
    return Response(page_json(jobs, following, count), media_type=_JSON)


@router.get(
    "/{job_id}",
    response_model=JobView,
    summary="Show a job",
    responses={
        200: {
            "headers": {
                "ETag": {"description": "The entity tag of this state of the job.", "schema": {"type": "string"}}
            }
        },
        304: {"description": "The job is still in the state that the ETag in `If-None-Match` stands for."},
        **answers(NotFound, Invalid, TooMany),
    },
)
async def show_job(
    *,
    job_id: UUID,
    request: Request,
    user: User,
    context: Using,
    if_none_match: Annotated[str | None, Header(description="The ETag of an earlier answer.", max_length=1024)] = None,
    prefer: Prefer = None,
) -> Response:
    """Show a job. With `Prefer: wait=N` the answer is held until the job's status changes (queued → running → ended); a
    job that has ended is answered at once. With `If-None-Match` as well, the answer is held until anything changes,
    progress and place in the queue included. To wait for the end, repeat until the status is succeeded, failed or
    cancelled."""
    wait = seconds_to_wait(prefer)
    if wait is not None or if_none_match is not None:
        seen = await _held(context, user, job_id, request, if_none_match=if_none_match, wait=wait)
        etag = seen.etag(job_id)
        if if_none_match is not None and matches(if_none_match, etag):
            return Response(status_code=304, headers={"ETag": etag, **applied(wait)})
    job = await service.get(context, user, job_id)
    headers = {"ETag": job.stamp.etag(job.id), "Cache-Control": "private, no-cache", **applied(wait)}
    return await context.heavy_answers.text(user.id, job_json(job), _JSON, headers)


async def _held(
    context: Context, user: Principal, job_id: UUID, request: Request, *, if_none_match: str | None, wait: int | None
) -> JobVersion:
    first = await service.stamp(context, user, job_id)
    if wait is None or first.status.terminal:
        return first

    def enough(seen: JobVersion) -> bool:
        if if_none_match is not None:
            return not matches(if_none_match, seen.etag(job_id))
        return seen.status is not first.status

    def ended(seen: JobVersion) -> bool:
        return seen.status.terminal or enough(seen)

    return await service.hold(context, user, job_id, wait, ended, gone=partial(gone, request))


@router.get(
    "/{job_id}/events",
    summary="Follow a job",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "The events as they happen, the past ones first; the stream ends with the job. "
            "`id` is the event's number, `event` is its type, and `data` is an EventView; of `progress` it is a "
            "ProgressView.",
            "content": {"text/event-stream": {"itemSchema": dict(ITEM_SCHEMA)}},
        },
        204: {"description": "The job has ended and `Last-Event-ID` is its last event: do not connect again."},
        **answers(NotFound, Invalid),
    },
)
async def follow_job(
    *,
    job_id: UUID,
    request: Request,
    user: User,
    context: Using,
    last_event_id: Annotated[
        int | None,
        Header(
            ge=0,
            le=2**31 - 1,
            description="The number of the last event that you saw: only later ones are sent.",
        ),
    ] = None,
) -> Response:
    """Send the events of a job as they happen, with a comment every 15 seconds to keep the connection."""
    seen = await service.stamp(context, user, job_id)
    after = last_event_id or 0
    if seen.status.terminal and after >= seen.version:
        return Response(status_code=204)
    return EventSourceResponse(
        stream(context, user, job_id, after, partial(still_allowed, request)),
        ping=KEEP_ALIVE_S,
        headers={"Cache-Control": "no-store"},
    )


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=JobView,
    summary="Cancel a job",
    responses=answers(Forbidden, NotFound, Conflict, Invalid),
)
async def cancel_job(job_id: UUID, user: User, context: Using) -> Response:
    """Cancel a job: a queued job is cancelled at once, a running job within about a second. The request may be
    repeated, also once the job is cancelled; for a job that succeeded or failed the answer is a 409."""
    job = await service.cancel(context, user, job_id)
    return Response(job_json(job), 202, {"Location": f"/v1/jobs/{job.id}"}, _JSON)


@router.patch(
    "/{job_id}",
    response_model=JobView,
    summary="Change the name, the note or the tags of a job",
    responses=answers(BadRequest, Forbidden, NotFound, TooLarge, UnsupportedMedia, Invalid),
)
async def edit_job(job_id: UUID, edit: JobEdit, user: User, context: Using) -> Response:
    """Change the name, the note or the tags of a job, at any time. What is left out stays as it is; `tags` are all tags
    that the job has then. The name of a part of a preset stays. The event `edited` says who changed the job."""
    return Response(job_json(await service.edit(context, user, job_id, edit)), media_type=_JSON)


@router.delete(
    "/{job_id}",
    status_code=204,
    summary="Delete a job",
    responses=answers(Forbidden, NotFound, Conflict, Invalid),
)
async def delete_job(job_id: UUID, user: User, context: Using) -> Response:
    """Delete a job that has ended, with its events, its measurements and its stored result; the job of a preset with
    all its parts. For a job that has not ended the answer is a 409, and also for a part of a preset and for a job of a
    batch whose jobs have not all ended."""
    await service.delete(context, user, job_id)
    return Response(status_code=204)


@router.get(
    "/{job_id}/result",
    response_model=JobResult,
    summary="Show the result of a job",
    responses={
        200: {"content": {CSV: {"schema": {"type": "string"}}}},
        **answers(NotFound, Conflict, Invalid, TooMany),
    },
)
async def show_result(
    job_id: UUID,
    user: User,
    context: Using,
    format: Annotated[
        Literal["json", "csv"],
        Query(description="Format of the answer. `csv` is for reductions: a row for each value, with its index."),
    ] = "json",
) -> Response:
    """Show the result of a job. Before the job's end, and for a job that has no result, the answer is a 409 problem
    with `job_status`, `job_reason` and `job_error`."""
    if format == "csv":
        return await context.heavy_answers.answer(user.id, _csv_of(context, user, job_id), CSV)
    return await context.heavy_answers.text(user.id, await service.result(context, user, job_id), _JSON)


async def _csv_of(context: Context, user: Principal, job_id: UUID) -> AsyncIterator[bytes]:
    """The result of a job as CSV, in pieces. Its result is read once there is a place for the answer."""
    stored = await service.result(context, user, job_id)
    for piece in await context.heavy_answers.made(user.id, csv_of_result, stored):
        yield piece


async def gone(request: Request) -> bool:
    """Whether the client hung up. Raises Unauthorized if their token was revoked meanwhile."""
    if not await still_allowed(request):
        raise Unauthorized("The token expired or was revoked meanwhile.")
    return await request.is_disconnected()
