"""HTTP of measurements: lists of them, a candidate against a baseline, and the latest against earlier ones."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
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
from warpfold.app.results.repository import Measured, MeasurementFilter, Name
from warpfold.app.results.views import CSV, PARQUET, MeasurementPage, MeasurementView, csv_of, parquet_of

_LISTING = "results"
_EARLIER = 10
"""Points before the latest that a regression is judged by."""
_MOST_CASES = 1000
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

Side = Annotated[
    str,
    Query(
        max_length=128,
        pattern=rf"^{_UUID}(:[a-z0-9_]+)?$",
        description="A benchmark job, as `JOB`, or one strategy of it, as `JOB:strategy`.",
    ),
]


class Format(StrEnum):
    """The format of an answer."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class PageQuery(MeasurementFilter):
    """The parameters of a list of measurements."""

    format: Format = Field(
        Format.JSON, description="Format of the answer. For csv and parquet, the header `Link` names the next page."
    )
    limit: int = Field(100, ge=1, le=10_000)
    cursor: Name | None = Field(None, description="The `next_cursor` of the page before.")


class RegressionQuery(BaseModel):
    """The parameters of a list of regressions."""

    model_config = ConfigDict(extra="forbid")

    worst: float = Field(
        WORST, ge=1, le=1000, allow_inf_nan=False, description="Slowdowns up to this factor are not listed."
    )
    op: Name | None = None
    dtype: Name | None = None
    strategy: Name | None = None
    device: Name | None = None
    driver: Name | None = None
    host: Name | None = None


router = APIRouter(prefix="/v1/results", tags=["results"])


@router.get(
    "",
    response_model=MeasurementPage,
    summary="List measurements",
    responses={
        200: {
            "content": {
                CSV: {"schema": {"type": "string"}},
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
            },
            "headers": {
                "Link": {
                    "description": 'Address of the next page, with rel="next". The header is absent on the last page.',
                    "schema": {"type": "string"},
                }
            },
        },
        **answers(Invalid),
    },
)
async def page(
    *,
    request: Request,
    user: User,
    context: Using,
    query: Annotated[PageQuery, Query()],
) -> Response:
    """List the measured points of jobs that you see, newest first. Each point is a row, whatever job it came from."""
    limit = query.limit
    before = key_of(_LISTING, query.cursor)
    points = await context.database.search(repository.page, query, limit + 1, before, context.viewer(user))
    rows = points[:limit]
    following = cursor_of(_LISTING, points[limit - 1].id) if len(points) > limit else None
    headers = {} if following is None else {"Link": f'<{_next(request, following)}>; rel="next"'}
    match query.format:
        case Format.CSV:
            return Response(await run_in_threadpool(csv_of, rows), 200, headers, CSV)
        case Format.PARQUET:
            return Response(await run_in_threadpool(parquet_of, rows), 200, headers, PARQUET)
        case Format.JSON:
            return Response(await run_in_threadpool(_json_of, rows, following), 200, headers, "application/json")


@router.get("/compare", summary="Compare two benchmarks", responses=answers(NotFound, Invalid))
async def compare(
    *,
    user: User,
    context: Using,
    baseline: Side,
    candidate: Side,
    across: Annotated[
        bool, Query(description="Whether to compare points of different devices or drivers, too.")
    ] = False,
) -> ComparisonView:
    """Compare a candidate with a baseline: how much faster the candidate is, case by case, with confidence intervals.
    To compare two strategies of one job, send `baseline=JOB:cub` and `candidate=JOB:single_pass`. Points of different
    devices or drivers are compared only with `across=true`. Suspect, failed and skipped points are never compared."""
    return ComparisonView.of(await comparison.compare(context, user, baseline, candidate, across=across))


@router.get("/regressions", summary="List regressions", responses=answers(Invalid))
async def regressions(
    *,
    user: User,
    context: Using,
    query: Annotated[RegressionQuery, Query()],
) -> Regressions:
    """Compare the latest point of each case with the median of up to ten earlier points on the same device with the
    same driver. The answer lists the cases whose latest point takes more than `worst` times as long, if the confidence
    intervals do not explain the difference."""
    chosen = MeasurementFilter(**query.model_dump(exclude={"worst"}))
    viewer = context.viewer(user)
    points = await context.database.read(repository.histories, chosen, _EARLIER + 1, _MOST_CASES, viewer)
    slower = comparison.regressions(points, query.worst)
    return Regressions(items=[RegressionView.of(regression) for regression in slower])


def _json_of(rows: Sequence[Measured], following: str | None) -> str:
    return MeasurementPage(items=[MeasurementView.of(row) for row in rows], next_cursor=following).model_dump_json()


def _next(request: Request, cursor: str) -> str:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*kept, ('cursor', cursor)])}"
