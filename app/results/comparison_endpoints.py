"""HTTP of points against points: a candidate against a baseline, and the latest against what came before."""

from typing import Annotated

from fastapi import APIRouter, Query

from warpfold.app.http.bearer import User
from warpfold.app.http.context import Using
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.http.openapi import answers
from warpfold.app.results import comparison, repository, service
from warpfold.app.results.comparison import WORST
from warpfold.app.results.comparison_views import ComparisonView, Regressions, RegressionView
from warpfold.app.results.endpoints import Name
from warpfold.app.results.repository import MeasurementFilter

_EARLIER = 10
_MOST_CASES = 1000
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

Side = Annotated[
    str, Query(max_length=128, pattern=rf"^{_UUID}(:[a-z0-9_]+)?$", description="a benchmark job, or job:strategy")
]

router = APIRouter(prefix="/v1/results", tags=["results"])


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
    return ComparisonView.of(await service.compare(context, baseline, candidate, across=across))


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
    return Regressions(items=[RegressionView.of(one) for one in comparison.regressions(points, worst)])
