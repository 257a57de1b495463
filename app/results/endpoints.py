"""HTTP of measurements: lists of them, a candidate against a baseline, and the latest against earlier ones."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.http.openapi import answers
from warpfold.app.results import comparison, repository
from warpfold.app.results.comparison import WORST
from warpfold.app.results.comparison_views import ComparisonView, Regressions, RegressionView
from warpfold.app.results.repository import Measured, MeasurementFilter
from warpfold.app.results.views import CSV, PARQUET, MeasurementPage, MeasurementView, csv_of, parquet_of
from warpfold.contract.jobs import Kind
from warpfold.kernels.bench import Cache, Flag
from warpfold.kernels.outcome import Outcome

_LISTING = "results"
_LARGEST = (1 << 63) - 1

Name = Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Query(ge=0, le=_LARGEST)]
_EARLIER = 10
"""Points before the latest that a regression is judged by."""
_MOST_CASES = 1000
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

Side = Annotated[
    str, Query(max_length=128, pattern=rf"^{_UUID}(:[a-z0-9_]+)?$", description="a benchmark job, or job:strategy")
]


class Format(StrEnum):
    """Of an answer."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


router = APIRouter(prefix="/v1/results", tags=["results"])


@router.get(
    "",
    response_model=MeasurementPage,
    summary="Measurements across jobs",
    responses={
        200: {
            "content": {
                CSV: {"schema": {"type": "string"}},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
            "headers": {"Link": {"description": 'rel="next": the next page', "schema": {"type": "string"}}},
        },
        **answers(Invalid),
    },
)
async def page(
    *,
    request: Request,
    user: User,
    context: Using,
    kind: Kind | None = None,
    op: Name | None = None,
    dtype: Name | None = None,
    strategy: Name | None = None,
    backend: Name | None = None,
    device: Annotated[Name | None, Query(description="the device's name")] = None,
    driver: Annotated[Name | None, Query(description="the GPU driver's version")] = None,
    host: Name | None = None,
    cache: Cache | None = None,
    outcome: Outcome | None = None,
    flag: Annotated[Flag | None, Query(description="that is set")] = None,
    job_id: UUID | None = None,
    n_min: Annotated[Count | None, Query(description="fewest elements")] = None,
    n_max: Annotated[Count | None, Query(description="most elements")] = None,
    format: Annotated[Format, Query(description="of the answer; of csv and parquet, Link names the next page")] = (
        Format.JSON
    ),
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    cursor: Annotated[Name | None, Query(description="next_cursor of the page before")] = None,
) -> Response:
    """What was measured, newest first: one row a point, whatever job it came from."""
    chosen = MeasurementFilter(
        kind=kind,
        op=op,
        dtype=dtype,
        strategy=strategy,
        backend=backend,
        device=device,
        driver=driver,
        host=host,
        cache=cache,
        outcome=outcome,
        job_id=job_id,
        n_min=n_min,
        n_max=n_max,
        flag=flag,
    )
    found = await context.database.search(repository.page, chosen, limit + 1, key_of(_LISTING, cursor))
    rows = found[:limit]
    following = cursor_of(_LISTING, found[limit - 1].id) if len(found) > limit else None
    headers = {} if following is None else {"Link": f'<{_next(request, following)}>; rel="next"'}
    match format:
        case Format.CSV:
            return Response(await run_in_threadpool(csv_of, rows), 200, headers, CSV)
        case Format.PARQUET:
            return Response(await run_in_threadpool(parquet_of, rows), 200, headers, PARQUET)
        case Format.JSON:
            return Response(await run_in_threadpool(_json_of, rows, following), 200, headers, "application/json")


@router.get("/compare", summary="A benchmark against another", responses=answers(NotFound, Invalid))
async def compare(
    *,
    user: User,
    context: Using,
    baseline: Side,
    candidate: Side,
    across: Annotated[bool, Query(description="compare different devices or drivers all the same")] = False,
) -> ComparisonView:
    """How much faster the candidate is, case by case, with intervals of confidence. Two strategies of one job are
    `baseline=JOB:cub` and `candidate=JOB:single_pass`. What was measured on different devices or with different drivers
    is compared only if asked; suspect, failed and skipped points never are."""
    return ComparisonView.of(await comparison.compare(context, baseline, candidate, across=across))


@router.get("/regressions", summary="What got slower", responses=answers(Invalid))
async def regressions(
    *,
    user: User,
    context: Using,
    worst: Annotated[float, Query(ge=1, le=1000, allow_inf_nan=False, description="slowdown to overlook")] = WORST,
    op: Name | None = None,
    dtype: Name | None = None,
    strategy: Name | None = None,
    device: Name | None = None,
    driver: Name | None = None,
    host: Name | None = None,
) -> Regressions:
    """The latest point of each case against the median of up to ten earlier ones on the same device with the same
    driver. Listed is what takes more than `worst` times as long, beyond what the intervals of confidence explain."""
    chosen = MeasurementFilter(op=op, dtype=dtype, strategy=strategy, device=device, driver=driver, host=host)
    points = await context.database.read(repository.histories, chosen, _EARLIER + 1, _MOST_CASES)
    return Regressions(items=[RegressionView.of(regression) for regression in comparison.regressions(points, worst)])


def _json_of(rows: Sequence[Measured], following: str | None) -> str:
    return MeasurementPage(items=[MeasurementView.of(row) for row in rows], next_cursor=following).model_dump_json()


def _next(request: Request, cursor: str) -> str:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*kept, ('cursor', cursor)])}"
