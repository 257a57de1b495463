"""Measured points compared: which are of the same case, how much faster one is, and how sure that is."""

import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.http.context import Context
from warpfold.app.http.errors import Invalid, NotFound
from warpfold.app.results import repository
from warpfold.app.results.repository import Measured
from warpfold.kernels.bench.compare import Ratio, Timed, ratio
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.bench.summary import Interval
from warpfold.kernels.studies.outcome import Outcome

WORST = 1.05
"""A regression takes more than this many times the earlier time, unless the request says otherwise."""


@dataclass(frozen=True, slots=True)
class ComparedPoints:
    """Two points of one case. `ratio` is baseline time ÷ candidate time: above 1 the candidate is faster."""

    baseline: Measured
    candidate: Measured
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that could not be compared, and the reason."""

    point: Measured
    why: str


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """The cases that were compared, and the points that were left out."""

    compared: Sequence[ComparedPoints]
    left_out: Sequence[LeftOut]

    @property
    def speedup(self) -> float | None:
        """The geometric mean of the ratios; None if nothing was compared."""
        return statistics.geometric_mean([case.ratio.value for case in self.compared]) if self.compared else None

    @property
    def differs(self) -> bool:
        """Whether the mean shows a difference: the interval of some case excludes 1, and no case differs in the other
        direction. A page or a table stresses a mean, or the ratio of a case, only where it `differs`."""
        mean = self.speedup
        ratios = [case.ratio.value for case in self.compared if case.ratio.differs]
        return mean is not None and bool(ratios) and all((value > 1) == (mean > 1) for value in ratios)


@dataclass(frozen=True, slots=True)
class Regression:
    """The latest point of a case against the earlier ones on the same device with the same driver.

    `baseline` is the point of median time among the `earlier` earlier ones; `slowdown` is the latest time ÷ its time.
    """

    latest: Measured
    baseline: Measured
    earlier: int
    slowdown: Ratio


async def compare(
    context: Context, user: Principal, baseline: str, candidate: str, *, across: bool
) -> BenchmarkComparison:
    """Compare the points of two sides, each of which is a job's id, or "id:strategy".

    Raises NotFound for a side without points, and Invalid for points of different devices or drivers unless `across`.
    """
    theirs = await _points(context, user, "baseline", baseline)
    ours = await _points(context, user, "candidate", candidate)
    places = sorted(_places([*theirs, *ours]), key=str)
    if len(places) > 1 and not across:
        named = " and ".join(f"{device} (driver {driver or 'none'}, {uuid})" for device, uuid, driver in places)
        raise Invalid.of("across", f"the points come from {named}; to compare them in spite of that, send across=true")
    both_named = ":" in baseline and ":" in candidate
    return _matched(theirs, ours, across_strategies=both_named)


async def _points(context: Context, user: Principal, field: str, side: str) -> Sequence[Measured]:
    job_id, _, strategy = side.partition(":")
    viewer = context.viewer(user)
    points = await context.database.read(repository.points_of, UUID(job_id), strategy or None, viewer)
    if not points:
        raise NotFound(
            f"{field}: {side} has no points of a benchmark, and a comparison takes two benchmarks or two of their "
            "strategies. The value, the bits and the times of another job are in its result."
        )
    return points


def _places(points: Iterable[Measured]) -> set[tuple[str, str | None, str | None]]:
    """The (device, uuid, driver) of the points. A CPU has no uuid: the name of its host stands for it."""
    return {(point.device, point.device_uuid or point.host, point.driver) for point in points}


def _matched(
    baseline: Sequence[Measured], candidate: Sequence[Measured], *, across_strategies: bool
) -> BenchmarkComparison:
    """Match points by op, dtype, size, shape, caches and distribution, and by strategy unless `across_strategies`."""
    ours = {_case(point, across_strategies=across_strategies): point for point in candidate}
    compared, left_out = [], []
    for theirs in baseline:
        mine = ours.pop(_case(theirs, across_strategies=across_strategies), None)
        why = "the candidate has no such case" if mine is None else _unfit(theirs) or _unfit(mine)
        if mine is None or why:
            left_out.append(LeftOut(theirs, why or ""))
        else:
            compared.append(ComparedPoints(theirs, mine, ratio(_timed(theirs), _timed(mine))))
    left_out += [LeftOut(point, "the baseline has no such case") for point in ours.values()]
    return BenchmarkComparison(compared, left_out)


def regressions(points: Iterable[Measured], worst: float) -> list[Regression]:
    """The cases that got slower, the worst first: their latest time is more than `worst` times the earlier one, and the
    intervals of confidence do not explain the difference. `points` has those of each case newest first."""
    histories: dict[Hashable, list[Measured]] = {}
    for point in points:
        key = (_case(point, across_strategies=False), point.device, point.device_uuid, point.driver, point.host)
        histories.setdefault(key, []).append(point)
    slower = []
    for latest, *earlier in histories.values():
        if not earlier:
            continue
        middle = statistics.median_low([_ms(point) for point in earlier])
        baseline = next(point for point in earlier if point.kernel_ms == middle)
        slowdown = ratio(_timed(latest), _timed(baseline))
        if slowdown.value > worst and slowdown.interval is not None and slowdown.interval.low > 1:
            slower.append(Regression(latest, baseline, len(earlier), slowdown))
    return sorted(slower, key=lambda case: case.slowdown.value, reverse=True)


def _case(point: Measured, *, across_strategies: bool) -> Hashable:
    case = (point.op, point.dtype, point.n, point.shape, point.cache, point.distribution)
    return case if across_strategies else (*case, point.strategy)


def _unfit(point: Measured) -> str | None:
    if point.outcome != Outcome.MEASURED:
        return f"{point.strategy} was {point.outcome}: {point.reason}"
    if Flag.SUSPECT in point.flags:
        return f"the time of {point.strategy} is suspect: faster than physics allows"
    return None


def _timed(point: Measured) -> Timed:
    interval = None
    if point.low_ms is not None and point.high_ms is not None:
        interval = Interval(point.low_ms, point.high_ms)
    return Timed(_ms(point), interval)


def _ms(point: Measured) -> float:
    assert point.kernel_ms is not None, "a measured point has a time"
    return point.kernel_ms
