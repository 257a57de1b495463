"""Points against points: what is the same case, how much faster one is, and how sure that is."""

import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from warpfold.app.results.repository import Measured
from warpfold.kernels.bench import Flag
from warpfold.kernels.bench.compare import Ratio, Timed, ratio
from warpfold.kernels.bench.summary import Interval
from warpfold.kernels.outcome import Outcome

WORST = 1.05
"""How many times the earlier time the latest must take to be called a regression, unless asked otherwise."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two points of one case. `ratio` is baseline time ÷ candidate time: above 1 the candidate is faster."""

    baseline: Measured
    candidate: Measured
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that could not be compared, and why."""

    point: Measured
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Case by case, with what was left out."""

    compared: Sequence[Compared]
    left_out: Sequence[LeftOut]

    @property
    def speedup(self) -> float | None:
        """The geometric mean of the ratios; None for none."""
        return statistics.geometric_mean([one.ratio.value for one in self.compared]) if self.compared else None

    @property
    def differs(self) -> bool:
        """Whether the mean tells a difference: a case has one, and none has one that points the other way. Whoever
        shows a mean or a ratio of a case stresses it only where it `differs`."""
        mean = self.speedup
        shown = [one.ratio.value for one in self.compared if one.ratio.differs]
        return mean is not None and bool(shown) and all((value > 1) == (mean > 1) for value in shown)


@dataclass(frozen=True, slots=True)
class Regression:
    """The latest point of a case against the earlier ones on the same device with the same driver.

    `baseline` is the earlier point with the median time, of `earlier` of them; `slowdown` the latest time ÷ its time.
    """

    latest: Measured
    baseline: Measured
    earlier: int
    slowdown: Ratio


def places(points: Iterable[Measured]) -> set[tuple[str, str | None, str | None]]:
    """The (device, uuid, driver) that points come from. A CPU has no uuid: its host stands for it."""
    return {(point.device, point.device_uuid or point.host, point.driver) for point in points}


def compare(baseline: Sequence[Measured], candidate: Sequence[Measured], *, across_strategies: bool) -> Comparison:
    """Match points by op, dtype, size, caches and distribution, and by strategy unless `across_strategies`."""
    ours = {_case(point, across_strategies=across_strategies): point for point in candidate}
    compared, left_out = [], []
    for theirs in baseline:
        mine = ours.pop(_case(theirs, across_strategies=across_strategies), None)
        why = "the candidate has no such case" if mine is None else _unfit(theirs) or _unfit(mine)
        if mine is None or why:
            left_out.append(LeftOut(theirs, why or ""))
        else:
            compared.append(Compared(theirs, mine, ratio(_timed(theirs), _timed(mine))))
    left_out += [LeftOut(point, "the baseline has no such case") for point in ours.values()]
    return Comparison(compared, left_out)


def regressions(points: Iterable[Measured], worst: float) -> list[Regression]:
    """Of histories (each case's points together, newest first): the cases whose latest time is more than `worst` times
    the earlier one, beyond what either's interval of confidence explains. The worst first."""
    histories: dict[Hashable, list[Measured]] = {}
    for point in points:
        key = (_case(point, across_strategies=False), point.device, point.device_uuid, point.driver, point.host)
        histories.setdefault(key, []).append(point)
    found = []
    for latest, *earlier in histories.values():
        if not earlier:
            continue
        middle = statistics.median_low([_ms(point) for point in earlier])
        baseline = next(point for point in earlier if point.kernel_ms == middle)
        slowdown = ratio(_timed(latest), _timed(baseline))
        if slowdown.value > worst and slowdown.interval is not None and slowdown.interval.low > 1:
            found.append(Regression(latest, baseline, len(earlier), slowdown))
    return sorted(found, key=lambda one: one.slowdown.value, reverse=True)


def _case(point: Measured, *, across_strategies: bool) -> Hashable:
    case = (point.op, point.dtype, point.n, point.cache, point.distribution)
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
