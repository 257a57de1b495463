"""A benchmark as tables and as charts: how fast each strategy was under which ceiling, and how far its runs lay apart.

All functions take the job's measured points; a benchmark's result does not hold them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import altair

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import (
    HEIGHT,
    WIDTH,
    Axis,
    Bar,
    ChartText,
    Level,
    Point,
    Series,
    bar_chart,
    chart_of,
    inline,
    line_chart,
)
from warpfold.app.reports.kinds.heat_maps import heat_maps
from warpfold.app.reports.report import Table
from warpfold.contract.measurement import Measurement
from warpfold.contract.wording import ABSENT, figure, milliseconds, percent, significant


def tables(points: Sequence[Measurement]) -> tuple[Table, ...]:
    """A table of all points that were measured, and one of the skipped and failed points, if any."""
    measured = tuple(_row(point) for point in points if point.kernel_ms)
    others = tuple(
        (p.strategy, p.op, p.dtype, p.size_in_words(p.n), p.cache or "", p.outcome, p.reason or "")
        for p in points
        if not p.kernel_ms
    )
    made = []
    if measured:
        columns = ("strategy", "op", "dtype", "n", "caches", "ms", "GB/s", "of ceiling", "error", "flags")
        note = "ms: median device time of a run; error: relative, against the exact value"
        made.append(Table(title="Measured", columns=columns, rows=measured, note=note))
    if others:
        reasons = ("strategy", "op", "dtype", "n", "caches", "outcome", "why")
        made.append(Table(title="Not measured", columns=reasons, rows=others))
    return tuple(made)


def _row(point: Measurement) -> tuple[str, ...]:
    return (
        point.strategy,
        point.op,
        point.dtype,
        point.size_in_words(point.n),
        point.cache or "",
        milliseconds(point.kernel_ms),
        figure(point.gb_per_s),
        percent(point.percent_of_ceiling),
        figure(point.relative_error),
        ", ".join(point.flags) or ABSENT,
    )


def charts(points: Sequence[Measurement]) -> list[Chart]:
    """Two charts for each op, dtype and state of the caches: `throughput` and `spread`. Points by shape have heat maps.

    Points without a time, and those faster than physics allows, are left out.
    """
    groups: dict[tuple[str, str, str], list[Measurement]] = {}
    shaped = []
    for point in points:
        if point.kind != "benchmark" or not point.kernel_ms or "suspect" in point.flags:
            continue
        if point.shape is None:
            groups.setdefault((point.op, point.dtype, point.cache or ""), []).append(point)
        else:
            shaped.append(point)
    whole = [chart for members in groups.values() for chart in (_throughput(members), _spread(members))]
    return whole + heat_maps(shaped)


def _throughput(points: Sequence[Measurement]) -> Chart:
    """GB/s against the number of elements, a series a strategy, under the measured ceiling and the peak of the device.

    `points` are of one op, dtype and state of the caches, on one device, each with a time.
    """
    first = points[0]
    name, words = _case_name(first)
    series = [
        Series(strategy, [Point(point.n, point.gb_per_s or 0.0) for point in members])
        for strategy, members in _by_strategy(points).items()
    ]
    ceiling = next((point.ceiling_gbps for point in points if point.ceiling_gbps), None)
    levels = [
        Level(value, f"{what} {value:,.0f} GB/s")
        for what, value in (("measured read ceiling", ceiling), ("peak (memory clock × bus width)", first.peak_gbps))
        if value
    ]
    best = max(points, key=lambda point: point.gb_per_s or 0.0)
    sizes = {point.n for point in points}
    if len(sizes) == 1:
        bars = [Bar(point.strategy, point.gb_per_s or 0.0) for point in points]
        text = ChartText(
            f"throughput-{name}",
            f"Throughput: {words}, {best.n:,} elements",
            first.device,
            f"GB/s: {', '.join(f'{bar.name} {significant(bar.value)}' for bar in bars)}.",
        )
        return bar_chart(text, "GB/s", bars, levels)
    fastest = best.gb_per_s or 0.0
    own = best.ceiling_gbps  # hot data from a cache have no ceiling
    of_ceiling = f", {100 * fastest / own:.0f} % of the ceiling of {own:,.0f} GB/s" if own else ""
    text = ChartText(
        f"throughput-{name}",
        f"Throughput: {words}",
        first.device,
        f"GB/s against the number of elements, {min(sizes):,} to {max(sizes):,}, one line each for "
        f"{', '.join(line.name for line in series)}. The highest is {best.strategy} with {significant(fastest)} GB/s "
        f"at {best.n:,} elements{of_ceiling}.",
    )
    return line_chart(text, Axis("elements"), Axis("GB/s", format="~g"), series, levels)


def _spread(points: Sequence[Measurement]) -> Chart:
    """How far the runs of a case lay apart, in multiples of their median: a thin line from the fastest to the 95th
    percentile, a thick one for the median's interval of confidence. `points` as in `_throughput`."""
    name, words = _case_name(points[0])
    runs = [_Runs.of(point) for point in points if point.min_ms and point.p95_ms]
    strategies = list(_by_strategy(points))
    base = altair.Chart(inline([asdict(case) for case in runs])).encode(
        x=altair.X("n:N", sort=None, title="elements", axis=altair.Axis(labelAngle=0)),
        xOffset=altair.XOffset("strategy:N", sort=strategies),
        color=altair.Color("strategy:N", sort=strategies, title=None),
    )
    ratio = altair.Y("fastest:Q", title="time ÷ median", scale=altair.Scale(zero=False))
    picture = altair.layer(
        base.mark_rule(strokeWidth=1.4).encode(y=ratio, y2="p95:Q"),
        base.mark_rule(strokeWidth=5).encode(y="low:Q", y2="high:Q"),
    ).properties(width=WIDTH, height=HEIGHT * 2 // 3)
    widest = max(runs, key=lambda case: case.p95 / case.fastest, default=None)
    range_of_widest = (
        f"The widest is {widest.strategy} at {widest.n} elements, from {widest.fastest:.2f} to {widest.p95:.2f} times "
        "its median."
        if widest
        else "No case has several runs."
    )
    text = ChartText(
        f"spread-{name}",
        f"Spread of the runs: {words}",
        "thin: fastest to 95th percentile; thick: 97.5 % interval of confidence of the median",
        f"For each strategy and size, the range of its runs in multiples of the median. {range_of_widest}",
    )
    return chart_of(text, picture)


@dataclass(frozen=True, slots=True)
class _Runs:
    """A case's times in multiples of their median."""

    strategy: str
    n: str
    fastest: float
    p95: float
    low: float
    high: float

    @classmethod
    def of(cls, point: Measurement) -> "_Runs":
        median = point.kernel_ms
        assert median, "a measured point has a time"
        assert point.min_ms, "and its range"
        assert point.p95_ms, "at both ends"
        low, high = point.low_ms or median, point.high_ms or median
        times = (point.min_ms, point.p95_ms, low, high)
        return cls(point.strategy, f"{point.n:,}", *(time / median for time in times))


def _case_name(point: Measurement) -> tuple[str, str]:
    """The op, the dtype and the caches of a chart, as a part of its file name and in words."""
    return f"{point.op}-{point.dtype}-{point.cache}", f"{point.op} of {point.dtype}, {point.cache} caches"


def _by_strategy(points: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    members: dict[str, list[Measurement]] = {}
    for point in sorted(points, key=lambda point: point.n):
        members.setdefault(point.strategy, []).append(point)
    return members
