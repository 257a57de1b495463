"""HTTP of reports."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.auth.bearer import User
from app.context import Using
from app.errors import Conflict, Invalid, NotAcceptable, NotFound
from app.jobs import service
from app.negotiation import preferred
from app.openapi import answers
from app.reports import rendering
from app.reports.report import Report, report_of

_JSON, _HTML, _MARKDOWN = "application/json", "text/html", "text/markdown"
_TEXT = {"schema": {"type": "string"}}
# The page holds what users wrote. It is escaped; should that ever fail, nothing of it may run.
_HEADERS = {
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}

router = APIRouter(prefix="/v1/reports", tags=["results"])


@router.get(
    "/{job_id}",
    response_model=Report,
    summary="The report of a finished job",
    responses={
        200: {"content": {_HTML: _TEXT, _MARKDOWN: _TEXT}},
        **answers(NotFound, NotAcceptable, Conflict, Invalid),
    },
)
async def show(
    job_id: UUID, user: User, context: Using, accept: Annotated[str | None, Header(max_length=1024)] = None
) -> Response:
    """Expected against measured value, timings and provenance, as JSON, HTML or Markdown by `Accept`."""
    media_type = preferred(accept, (_JSON, _HTML, _MARKDOWN))
    if media_type is None:
        raise NotAcceptable(f"A report is {_JSON}, {_HTML} or {_MARKDOWN}.")
    job = await service.get(context, job_id)
    if not job.status.terminal:
        raise Conflict(f"The job is {job.status}; its report comes with its end.", headers={"Retry-After": "1"})
    report = await run_in_threadpool(report_of, job)
    if media_type == _JSON:
        content = report.model_dump_json()
    else:
        content = rendering.html(report) if media_type == _HTML else rendering.markdown(report)
    return Response(content, media_type=media_type, headers=_HEADERS)
