"""The page Results: it filters, charts and exports the measured points of all jobs."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from warpfold.app.dashboard.figures import figures_of_points
from warpfold.app.dashboard.forms.reading import integer
from warpfold.app.dashboard.rendering import page, part
from warpfold.app.dashboard.routes import router as pages
from warpfold.app.dashboard.rows import rows_of
from warpfold.app.dashboard.visitors import Visitor
from warpfold.app.http.context import Using
from warpfold.app.http.cursors import cursor_of, key_of
from warpfold.app.http.errors import Invalid
from warpfold.app.results import repository
from warpfold.app.results.repository import Measured, MeasurementFilter
from warpfold.kernels.catalog import strategy_names
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS

_LISTING = "results"
_PAGE = 100
_MOST_CHARTED = 1000
_MOST_EXPORTED = 10_000
_LARGEST = (1 << 63) - 1

Text = Annotated[str, Query(max_length=128, pattern=r"^[^\x00]*$")]

router = pages()


async def _asked(
    *,
    op: Text = "",
    dtype: Text = "",
    strategy: Text = "",
    device: Text = "",
    cache: Literal["cold", "hot", ""] = "",
    outcome: Literal["measured", "skipped", "failed", ""] = "",
    n_min: Text = "",
    n_max: Text = "",
    job_id: UUID | Literal[""] = "",
) -> dict[str, str]:
    """The filters in the address, without those that restrict nothing."""
    filters = {"op": op, "dtype": dtype, "strategy": strategy, "device": device.strip(), "cache": cache}
    filters |= {"outcome": outcome, "n_min": _count("n_min", n_min), "n_max": _count("n_max", n_max)}
    return {name: value for name, value in (filters | {"job_id": str(job_id)}).items() if value}


Asking = Annotated[dict[str, str], Depends(_asked)]


@router.get("/results")
async def show(request: Request, visitor: Visitor, context: Using, asked: Asking, cursor: Text = "") -> Response:
    """Show the page."""
    before = key_of(_LISTING, cursor or None)
    viewer = context.viewer(visitor)
    points = await context.database.search(repository.page, _filter(asked), _PAGE + 1, before, viewer)
    query = urlencode(asked)
    return page(
        request,
        "results",
        user=visitor,
        asked=asked,
        ops=tuple(OPS),
        dtypes=tuple(DTYPES),
        strategies=strategy_names(),
        rows=rows_of(points[:_PAGE]),
        older=urlencode(asked | {"cursor": cursor_of(_LISTING, points[_PAGE - 1].id)}) if len(points) > _PAGE else None,
        newest=query if cursor else None,
        query=query,
        exports=[(how, urlencode(asked | {"format": how, "limit": _MOST_EXPORTED})) for how in ("csv", "parquet")],
    )


@router.get("/results/charts")
async def charts(request: Request, visitor: Visitor, context: Using, asked: Asking) -> Response:
    """Show charts of the points that pass the filters: the newest of each case, on the device measured last."""
    chosen = _filter({"kind": "benchmark", "outcome": "measured"} | asked)
    viewer = context.viewer(visitor)
    points = await context.database.search(repository.page, chosen, _MOST_CHARTED, None, viewer)
    figures = await run_in_threadpool(figures_of_points, _newest(points))
    return part("charts", figures=figures).response(request)


def _newest(points: Sequence[Measured]) -> list[Measured]:
    device = points[0].device if points else None
    cases: dict[tuple[Any, ...], Measured] = {}
    for point in points:
        if point.device == device:
            cases.setdefault((point.op, point.dtype, point.strategy, point.n, point.shape, point.cache), point)
    return sorted(cases.values(), key=lambda point: (point.strategy, point.n))


def _filter(asked: dict[str, str]) -> MeasurementFilter:
    return MeasurementFilter.model_validate(asked)


def _count(name: str, text: str) -> str:
    """The digits of a size that people may write as 1e6 or 2^20."""
    if not text.strip():
        return ""
    value = integer(text)
    if not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise Invalid.of(name, "should be a number of elements, such as 1000000, 1e6 or 2^20")
    return str(value)
