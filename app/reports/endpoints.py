"""HTTP of reports."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.charts.chart import Theme
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.errors import Conflict, Invalid, NotAcceptable, NotFound
from warpfold.app.http.headers import preferred
from warpfold.app.http.openapi import answers
from warpfold.app.jobs import service
from warpfold.app.reports import rendering
from warpfold.app.reports.finished import Finished, finished
from warpfold.app.reports.report import Report

_JSON, _HTML, _MARKDOWN, _SVG, _PNG = "application/json", "text/html", "text/markdown", "image/svg+xml", "image/png"
_TEXT = {"schema": {"type": "string"}}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
# The page holds what users wrote. It is escaped; should that ever fail, nothing of it may run.
HEADERS = {
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}

router = APIRouter(prefix="/v1/reports", tags=["results"])


@router.get(
    "/{job_id}",
    response_model=Report,
    summary="Show the report of a finished job",
    responses={
        200: {"content": {_HTML: _TEXT, _MARKDOWN: _TEXT}},
        **answers(NotFound, NotAcceptable, Conflict, Invalid),
    },
)
async def show_report(
    job_id: UUID, user: User, context: Using, accept: Annotated[str | None, Header(max_length=1024)] = None
) -> Response:
    """Show a report: expected or published values beside measured values, tables, charts, timings and provenance, as
    JSON, HTML or Markdown by `Accept`. The HTML contains its charts and prints on A4. `python -m warpfold.app.reports`
    draws the charts of the JSON on another machine."""
    media_type = preferred(accept, (_JSON, _HTML, _MARKDOWN))
    if media_type is None:
        raise NotAcceptable(f"A report is {_JSON}, {_HTML} or {_MARKDOWN}.")
    report = await _report(context, user, job_id)
    if media_type == _JSON:
        content = report.model_dump_json()
    elif media_type == _HTML:
        content = await _html(context, report)
    else:
        pictures = {name: f"/v1/reports/{job_id}/charts/{name}.svg" for name in rendering.charts_of(report)}
        content = rendering.markdown(report, pictures)
    return Response(content, media_type=media_type, headers=HEADERS)


@router.get(
    "/{job_id}/charts/{name}.{suffix}",
    response_class=Response,
    summary="Show a chart of a report",
    responses={200: {"content": {_SVG: _TEXT, _PNG: _BYTES}}, **answers(NotFound, Conflict, Invalid)},
)
async def show_chart(
    *,
    job_id: UUID,
    name: str,
    suffix: Literal["svg", "png"],
    user: User,
    context: Using,
    theme: Annotated[Theme, Query()] = Theme.LIGHT,
) -> Response:
    """Show one chart of a report by its name, as SVG or PNG."""
    charts = rendering.charts_of(await _report(context, user, job_id))
    if name not in charts:
        known = ", ".join(charts) or "it has none"
        raise NotFound(f"The report has no chart {name[:64]!r}: {known}.")
    if suffix == "svg":
        (drawn,) = await context.chart_renderer.svg([charts[name]], theme)
        return Response(drawn, media_type=_SVG, headers=HEADERS)
    return Response(await context.chart_renderer.png(charts[name], theme), media_type=_PNG, headers=HEADERS)


async def html_of(context: Context, job_id: UUID) -> str | None:
    """The report of a job as a page that needs nothing else, for whoever may see it; None before the job's end. Raises
    NotFound."""
    ended = await _finished(context, job_id)
    return await _html(context, await run_in_threadpool(_make, ended)) if ended.job.status.terminal else None


async def _html(context: Context, report: Report) -> str:
    charts = rendering.charts_of(report)
    drawn = dict(zip(charts, await context.chart_renderer.svg(list(charts.values())), strict=True))
    return rendering.html(report, drawn)


async def _report(context: Context, user: Principal, job_id: UUID) -> Report:
    job = await service.get(context, user, job_id)
    if not job.status.terminal:
        raise Conflict(f"The job is {job.status}; its report comes with its end.", headers={"Retry-After": "1"})
    return await run_in_threadpool(_make, await _finished(context, job_id))


async def _finished(context: Context, job_id: UUID) -> Finished:
    ended = await context.database.read(finished, job_id)
    if ended is None:
        raise NotFound("The job was removed when its time was over.")
    return ended


def _make(job: Finished) -> Report:
    from warpfold.app.reports.making import report_of  # loads Altair

    return report_of(job)
