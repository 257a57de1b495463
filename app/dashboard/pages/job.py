"""The page of a job: it shows the job's progress, its events, its spec and its result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.dashboard.figures import shown_of_result
from warpfold.app.dashboard.rendering import etag, page, part, unchanged
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import JobRow, rows_of
from warpfold.app.dashboard.values import in_words, meaning_of
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Context, Using
from warpfold.app.http.headers import matches
from warpfold.app.jobs import events, service
from warpfold.app.jobs.store import Job
from warpfold.app.json_view import JsonView, json_view_of
from warpfold.app.results.repository import MeasurementFilter
from warpfold.app.results.repository import page as page_of_measurements
from warpfold.contract.group_tables import GroupTableResult
from warpfold.contract.jobs import result_of
from warpfold.contract.kinds.reduce import ReduceArrayResult, ReduceResult
from warpfold.contract.placement import Placement
from warpfold.contract.timings import bound_in_words

_MOST_POINTS = 500
_NARROWEST = 0.4
"""A segment takes at least so many percent of the time line, so that it can be seen."""
_APART = ("timings", "device", "provenance", "state", "placement")

router = pages()

_NO_VALUE = object()
"""Stands for the value of a result without a value."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of the time line. `start` and `width` are in percent of the whole, `ms` is the time itself."""

    name: str
    style: str
    ms: float
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class PlacementView:
    """Why a job ran where it did: a sentence, the bytes on which the predictions rest, None without predictions, and
    the seconds that were predicted for each slot, the fastest first. `took_ms` is how long the job ran on `slot`."""

    slot: str
    reason: str
    bytes: int | None
    predicted: Sequence[tuple[str, float]]
    took_ms: float


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """A result as the page shows it: the value, if it has one, stands at the top, and everything else below."""

    value: str | None
    hexadecimal: str | None
    correctly_rounded: bool | None
    timeline: Sequence[Segment]
    bound: str
    placement: PlacementView | None
    main: JsonView
    others: list[JsonView]


@router.get("/jobs/{job_id}")
async def show(job_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the page."""
    job = await service.get(context, visitor, job_id)
    return page(request, "job", user=visitor, **await _model(context, job, visitor))


@router.get("/live/jobs/{job_id}")
async def live(
    job_id: UUID,
    request: Request,
    visitor: Visitor,
    context: Using,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Show the changing part of the page, for polls. Once the job has ended, the part that is sent polls no more."""
    tag = etag(visitor, job_id, await service.stamp(context, visitor, job_id))
    if if_none_match is not None and matches(if_none_match, tag):
        return unchanged(tag)
    job = await service.get(context, visitor, job_id)
    answer = part("job_live", **await _model(context, job, visitor)).response(request)
    if job.status.terminal:
        answer.headers["HX-Trigger-After-Settle"] = "ended"
    return answer


@router.get("/jobs/{job_id}/measured")
async def measured(job_id: UUID, request: Request, visitor: Visitor, context: Using) -> Response:
    """Show the charts and tables of a job that succeeded. A reduction to one value has no charts or tables: the page
    itself shows its result."""
    job = await service.get(context, visitor, job_id)
    result = None if job.result is None else await run_in_threadpool(result_of, job.result)
    if result is None or isinstance(result, ReduceResult):
        return Response()
    chosen = MeasurementFilter(job_id=job_id)
    points = list(reversed(await context.database.search(page_of_measurements, chosen, _MOST_POINTS, None)))
    benchmark = job.kind == "benchmark"
    figures, tables = await run_in_threadpool(shown_of_result, result, points)
    return part(
        "measured",
        job_id=job_id,
        figures=figures,
        exports=bool(points),
        values=isinstance(result, ReduceArrayResult | GroupTableResult),
        artefact=getattr(result, "artefact", None),
        points=rows_of(points) if benchmark else [],
        more=len(points) == _MOST_POINTS,
        tables=() if benchmark else tables,  # the points are the table of a benchmark
    ).response(request)


async def _model(context: Context, job: Job, visitor: Principal) -> dict[str, Any]:
    result = None if job.result is None else json.loads(job.result)
    return {
        "job": job,
        "row": JobRow.of(job, visitor),
        "spec": json.loads(job.spec),
        "events": await context.database.read(events.events_after, job.id, 0),
        "outcome": None if result is None else _summary(result),
        "etag": etag(visitor, job.id, job.stamp),
    }


def _summary(result: dict[str, Any]) -> ResultSummary:
    value = result.get("value", _NO_VALUE)
    meant = meaning_of(result)
    if meant is not None:
        # The rounded value of a decimal and the integer of a time are facts beside what they stand for.
        shown = {"decimal", "correctly_rounded"}
    else:
        shown = {"value", "hex", "correctly_rounded"} if value is not _NO_VALUE else set()
    # A null says nothing. `measured` shows lists as tables. A preset's jobs are listed above its result, in their
    # present state.
    rest = {
        name: inner
        for name, inner in result.items()
        if inner is not None and name not in (*_APART, *shown, "study", "artefact") and not isinstance(inner, list)
    }
    others = [json_view_of(name.capitalize(), result[name]) for name in _APART if isinstance(result.get(name), dict)]
    return ResultSummary(
        value=meant or (None if value is _NO_VALUE else in_words(value)),
        hexadecimal=None if meant is not None or result.get("hex") is None else in_words(result["hex"]),
        correctly_rounded=result.get("correctly_rounded"),
        timeline=timeline_of(result.get("timings") or {}),
        bound=bound_in_words(result.get("timings") or {}),
        placement=placement_of(result.get("placement"), result.get("timings") or {}),
        main=json_view_of("Result", rest),
        others=[table for table in others if table.title not in ("Timings", "Placement")],
    )


def placement_of(stored: object, timings: Mapping[str, Any]) -> PlacementView | None:
    """The `placement` of a result, as any version wrote it; None where the request named the backend."""
    try:
        placement = Placement.model_validate(stored)
    except ValidationError:
        return None
    predicted = sorted(placement.predicted.items(), key=lambda slot: slot[1])
    return PlacementView(placement.slot, placement.reason, placement.bytes, predicted, _ms(timings, "total_ms"))


def timeline_of(timings: Mapping[str, Any]) -> Sequence[Segment]:
    """The segments of a job's time, by the `timings` of its result.

    They are waiting, preparing kernels, loading, the kernel, and the rest of the total.
    """
    names = ("queued_ms", "prepare_ms", "load_ms", "kernel_ms", "total_ms")
    queued, prepare, load, kernel, total = (_ms(timings, name) for name in names)
    known = prepare + load + kernel
    rest = max(0.0, total - known)
    spans = (
        ("waiting", "queued", queued),
        ("preparing", "prepare", prepare),
        ("loading", "load", load),
        ("kernel", "kernel", kernel),
        ("other" if load or kernel else "running", "rest", rest),
    )
    whole = queued + max(total, known)
    segments: list[Segment] = []
    start = 0.0
    for name, style, ms in spans:
        if ms > 0:
            width = max(_NARROWEST, 100 * ms / whole)
            segments.append(Segment(name, style, ms, start, width))
            start += width
    scale = 100 / start if start else 1.0
    return [replace(segment, start=segment.start * scale, width=segment.width * scale) for segment in segments]


def _ms(timings: Mapping[str, Any], name: str) -> float:
    value = timings.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
