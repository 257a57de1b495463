"""HTTP of measurements: lists of them, a candidate against a baseline, and the latest against earlier ones."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from json import dumps
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from warpfold.app.auth.visibility import Viewer
from warpfold.app.http.bearer import User
from warpfold.app.http.context import Context, Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Invalid, NotFound, TooMany
from warpfold.app.http.openapi import answers
from warpfold.app.results import comparison, repository
from warpfold.app.results.comparison import WORST
from warpfold.app.results.comparison_views import ComparisonView, Regressions, RegressionView
from warpfold.app.results.repository import Measured, MeasurementFilter, Name
from warpfold.app.results.views import (
    CSV,
    PARQUET,
    MeasurementPage,
    MeasurementView,
    check_parquet,
    csv_of,
    json_of,
    parquet_of,
)

_LISTING = "results"
_JSON = "application/json"
_AT_A_TIME = 500
"""How many points are read and written at a time."""
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
        **answers(Invalid, TooMany),
    },
)
async def list_measurements(
    *,
    request: Request,
    user: User,
    context: Using,
    query: Annotated[PageQuery, Query()],
) -> Response:
    """List the measured points of jobs that you see, newest first. Each point is a row, whatever job it came from."""
    limit, before, viewer = query.limit, key_of(_LISTING, query.cursor), context.viewer(user)
    ids = await context.database.search(repository.ids, query, limit + 1, before, viewer)
    following = cursor_of(_LISTING, ids[limit - 1]) if len(ids) > limit else None
    headers = {} if following is None else {"Link": f'<{_next(request, following)}>; rel="next"'}
    rows = _read(context, query, ids[:limit], viewer)
    if query.format is Format.JSON and len(ids) <= _AT_A_TIME:
        page = MeasurementPage(
            items=[MeasurementView.of(row) async for some in rows for row in some], next_cursor=following
        )
        return Response(page.model_dump_json(), 200, headers, _JSON)
    made = _Made(context, user.id, rows)
    match query.format:
        case Format.CSV:
            return await context.heavy_answers.answer(user.id, made.csv(), CSV, headers)
        case Format.PARQUET:
            check_parquet()
            return await context.heavy_answers.answer(user.id, made.parquet(), PARQUET, headers)
        case Format.JSON:
            return await context.heavy_answers.answer(user.id, made.json(following), _JSON, headers)


async def _read(
    context: Context, query: PageQuery, ids: Sequence[int], viewer: Viewer
) -> AsyncIterator[Sequence[Measured]]:
    """The points with these ids, which the query has in this order, some hundreds at a time."""
    for start in range(0, len(ids), _AT_A_TIME):
        some = ids[start : start + _AT_A_TIME]
        yield await context.database.search(repository.page, query, len(some), some[0] + 1, viewer)


@dataclass(frozen=True, slots=True)
class _Made:
    """Points in pieces of a format, each of which is made in the process apart."""

    context: Context
    user_id: int
    rows: AsyncIterator[Sequence[Measured]]

    async def csv(self) -> AsyncIterator[bytes]:
        begun = False
        async for some in self.rows:
            yield await self.context.heavy_answers.made(self.user_id, csv_of, some, begun)
            begun = True
        if not begun:
            yield csv_of(())

    async def json(self, following: str | None) -> AsyncIterator[bytes]:
        before = b'{"items":['
        async for some in self.rows:
            yield before + await self.context.heavy_answers.made(self.user_id, json_of, some)
            before = b","
        yield b'],"next_cursor":%s}' % dumps(following).encode()

    async def parquet(self) -> AsyncIterator[bytes]:
        every = [row async for some in self.rows for row in some]
        yield await self.context.heavy_answers.made(self.user_id, parquet_of, every)


@router.get("/compare", summary="Compare two benchmarks", responses=answers(NotFound, Invalid))
async def compare_benchmarks(
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
async def list_regressions(
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


def _next(request: Request, cursor: str) -> str:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*kept, ('cursor', cursor)])}"
