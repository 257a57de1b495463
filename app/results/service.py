"""What the api does with measurements: each function is one request's work."""

from collections.abc import Sequence
from uuid import UUID

from warpfold.app.http.context import Context
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.results import comparison, repository
from warpfold.app.results.comparison import Comparison, places
from warpfold.app.results.repository import Measured


async def compare(context: Context, baseline: str, candidate: str, *, across: bool) -> Comparison:
    """The points of one side against those of the other, each a job's id, or "id:strategy".

    Raises NotFound for a side without points, and Invalid for points of different devices or drivers unless `across`.
    """
    theirs, ours = await _points(context, "baseline", baseline), await _points(context, "candidate", candidate)
    found = sorted(places([*theirs, *ours]), key=str)
    if len(found) > 1 and not across:
        said = " and ".join(f"{device} (driver {driver or 'none'}, {where})" for device, where, driver in found)
        raise Invalid.of("across", f"the points come from {said}; to compare them all the same, say across=true")
    both_named = ":" in baseline and ":" in candidate
    return comparison.compare(theirs, ours, across_strategies=both_named)


async def _points(context: Context, field: str, side: str) -> Sequence[Measured]:
    job_id, _, strategy = side.partition(":")
    points = await context.database.read(repository.points_of, UUID(job_id), strategy or None)
    if not points:
        raise NotFound(f"{field}: there are no points of a benchmark {side}.")
    return points
