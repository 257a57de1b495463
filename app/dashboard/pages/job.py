"""One job: how far it is, what happened, what was asked, what came out."""

import json
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.figures import figures_of_result
from warpfold.app.dashboard.points import rows_of
from warpfold.app.dashboard.rendering import etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import JobRow
from warpfold.app.dashboard.timeline import parts_of
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.jobs import events as history
from warpfold.app.jobs import service
from warpfold.app.jobs.etags import matches
from warpfold.app.jobs.store import Job
from warpfold.app.json_view import Facts, facts_of
from warpfold.app.reports.kinds.registry import tables_of
from warpfold.app.results.repository import MeasurementFilter
from warpfold.app.results.repository import page as page_of_measurements
from warpfold.contract.jobs import result_of

_MOST_POINTS = 500
_APART = ("timings", "device", "provenance", "state")

router = pages()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result as the page shows it: the value at the top, where it has one, and everything else as facts."""

    value: str | None
    hexadecimal: str | None
    correctly_rounded: bool | None
    timeline: Any
    main: Facts
    others: list[Facts]


@router.get("/jobs/{job_id}")
async def show(job_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """The whole page."""
    job = await service.get(context, job_id)
    return page(request, "job", user=visitor, **await _model(context, job, visitor))


@router.get("/live/jobs/{job_id}")
async def live(
    job_id: UUID,
    request: Request,
    visitor: Visitor,
    context: Using,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Its changing part, for polls. Once the job has ended, the part that is sent polls no more."""
    tag = etag(visitor, job_id, await service.stamp(context, job_id))
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)
    job = await service.get(context, job_id)
    answer = part("job_live", **await _model(context, job, visitor)).response(request)
    if job.status.terminal:
        answer.headers["HX-Trigger-After-Settle"] = "ended"
    return answer


@router.get("/jobs/{job_id}/measured")
async def measured(job_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """Charts and tables, of a job that succeeded. A reduction is told by the page itself."""
    job = await service.get(context, job_id)
    if job.result is None or job.kind == "reduce":
        return Response()
    chosen = MeasurementFilter(job_id=job_id)
    points = list(reversed(await context.database.search(page_of_measurements, chosen, _MOST_POINTS, None)))
    result = result_of(job.result)
    return part(
        "measured",
        job_id=job_id,
        figures=await run_in_threadpool(figures_of_result, result, points),
        exports=bool(points),
        points=rows_of(points) if job.kind == "benchmark" else [],
        more=len(points) == _MOST_POINTS,
        tables=() if job.kind == "benchmark" else tables_of(result, ()),
    ).response(request)


async def _model(context: Context, job: Job, visitor: Principal) -> dict[str, Any]:
    result = None if job.result is None else json.loads(job.result)
    return {
        "job": job,
        "row": JobRow.of(job, visitor),
        "spec": json.loads(job.spec),
        "events": await context.database.read(history.events_after, job.id, 0),
        "outcome": None if result is None else _outcome(result),
        "etag": etag(visitor, job.id, job.stamp),
    }


def _outcome(result: dict[str, Any]) -> Outcome:
    value = result.get("value")
    shown = {"value", "hex", "correctly_rounded"} if value is not None else set()
    # Lists have tables of their own: see `measured`. A preset's jobs are listed as they are now, above its result.
    rest = {
        name: inner
        for name, inner in result.items()
        if name not in (*_APART, *shown, "study") and not isinstance(inner, list)
    }
    others = [facts_of(name.capitalize(), result[name]) for name in _APART if isinstance(result.get(name), dict)]
    return Outcome(
        value=None if value is None else str(value).lower() if isinstance(value, bool) else str(value),
        hexadecimal=result.get("hex"),
        correctly_rounded=result.get("correctly_rounded"),
        timeline=parts_of(result.get("timings") or {}),
        main=facts_of("Result", rest),
        others=[one for one in others if one.title != "Timings"],
    )
