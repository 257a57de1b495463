"""Read-only links to jobs: the part of a job's page that lists and makes them, and the page that a link leads to."""

from typing import Annotated
from uuid import UUID

from fastapi import Form
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.forms.keys import number_of
from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.error_handlers import as_api_error
from warpfold.app.http.errors import ApiError, NotFound
from warpfold.app.reports.endpoints import HEADERS, html_of
from warpfold.app.sharing import links
from warpfold.app.sharing.link_endpoints import PAGE, LinkRequest, drop_link, links_of, new_link

router = pages()

_UNSEEN = {
    **HEADERS,
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",  # what the report links to does not learn the link
    "X-Robots-Tag": "noindex",
}


@router.get("/jobs/{job_id}/links")
async def show(job_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the links to a job."""
    return await _part(request, visitor, context, job_id)


@router.post("/jobs/{job_id}/links")
async def make(
    job_id: UUID,
    request: Request,
    visitor: Visitor,
    context: Using,
    days: Annotated[str, Form(max_length=32)] = "",
) -> Response:
    """Make a link, and show it this once."""
    try:
        wanted = LinkRequest.model_validate({"expires_in_days": number_of(days)} if days.strip() else {})
        _, path = await new_link(context, visitor, job_id, wanted.expires_in_days)
    except ValidationError as error:
        return await _part(request, visitor, context, job_id, error=as_api_error(error))
    return await _part(request, visitor, context, job_id, made=f"{request.url.scheme}://{request.url.netloc}{path}")


@router.post("/jobs/{job_id}/links/{link_id}/remove")
async def remove(job_id: UUID, link_id: int, request: Request, visitor: Visitor, context: Using) -> Response:
    """Remove a link."""
    await drop_link(context, visitor, job_id, link_id)
    return await _part(request, visitor, context, job_id)


@router.get(f"{PAGE}/{{secret}}")
async def read(secret: str, request: Request, context: Using) -> Response:
    """Show the report of the job that a link leads to, to whoever has the link."""
    job_id = await context.database.read(links.job_of, secret[:64])
    if job_id is None:
        await context.failures.note(request)
        raise NotFound("This link is over, or it never was one.")
    text = await html_of(context, job_id)
    if text is None:
        answer = page(request, "not_ended")
        answer.headers.update({"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer"})
        return answer
    return HTMLResponse(text, headers=_UNSEEN)


async def _part(
    request: Request,
    visitor: Principal,
    context: Context,
    job_id: UUID,
    *,
    made: str | None = None,
    error: ApiError | None = None,
) -> Response:
    listed = await links_of(context, visitor, job_id)
    answer = part("links", job_id=job_id, links=listed, made=made, error=error).response(request)
    answer.headers["Cache-Control"] = "no-store"
    return answer
