"""Charts of a benchmark: how fast each strategy was under which roof, and how far its runs lay apart."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import altair

from warpfold.app.charts.bars import Bar, bar_chart
from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import (
    HEIGHT,
    WIDTH,
    Axis,
    Level,
    Line,
    Point,
    Words,
    chart_of,
    inline,
    line_chart,
    significant,
)
from warpfold.contract.measurement import Measurement

Group = tuple[str, str, str]
"""Op, dtype and state of the caches: what one chart is about."""


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


def charts(points: Iterable[Measurement]) -> list[Chart]:
    """Two charts for each op, dtype and state of the caches: `throughput` and `spread`.

    Points without a time, and those faster than physics allows, are left out.
    """
    groups: dict[Group, list[Measurement]] = {}
    for point in points:
        if point.kind == "benchmark" and point.kernel_ms and "suspect" not in point.flags:
            groups.setdefault((point.op, point.dtype, point.cache or ""), []).append(point)
    return [chart for group, members in groups.items() for chart in (throughput(members), spread(members))]


def throughput(points: Sequence[Measurement]) -> Chart:
    """GB/s against the number of elements, a line a strategy, under the measured ceiling and the peak of the device.

    `points` are of one op, dtype and state of the caches, on one device, each with a time.
    """
    name, subject = _subject(points)
    lines = [
        Line(strategy, [Point(one.n, _gbps(one, one.kernel_ms)) for one in members])
        for strategy, members in _by_strategy(points).items()
    ]
    ceiling = next((one.ceiling_gbps for one in points if one.ceiling_gbps), None)
    peak = points[0].peak_gbps
    levels = [
        Level(value, f"{what} {value:,.0f} GB/s")
        for what, value in (("measured read ceiling", ceiling), ("peak (memory clock × bus width)", peak))
        if value
    ]
    best = max(points, key=lambda one: _gbps(one, one.kernel_ms))
    fastest = _gbps(best, best.kernel_ms)
    if len({point.n for point in points}) == 1:
        bars = [Bar(one.strategy, _gbps(one, one.kernel_ms)) for one in points]
        words = Words(
            f"throughput-{name}",
            f"Throughput: {subject}, {best.n:,} elements",
            points[0].device,
            f"GB/s: {', '.join(f'{bar.name} {significant(bar.value)}' for bar in bars)}.",
        )
        return bar_chart(words, "GB/s", bars, levels)
    own = best.ceiling_gbps  # hot data from a cache have none
    share = f", {100 * fastest / own:.0f} % of the ceiling of {own:,.0f} GB/s" if own else ""
    return line_chart(
        Words(
            f"throughput-{name}",
            f"Throughput: {subject}",
            points[0].device,
            f"GB/s against the number of elements, {min(one.n for one in points):,} to "
            f"{max(one.n for one in points):,}, one line each for {', '.join(line.name for line in lines)}. "
            f"The highest is {best.strategy} with {significant(fastest)} GB/s at {best.n:,} elements{share}.",
        ),
        Axis("elements"),
        Axis("GB/s", format="~g"),
        lines,
        levels,
    )


def spread(points: Sequence[Measurement]) -> Chart:
    """How far the runs of a case lay apart: fastest to 95th percentile thin, the median's interval of confidence thick,
    in multiples of the median. `points` as in `throughput`."""
    name, subject = _subject(points)
    runs = [_Runs.of(one) for one in points if one.min_ms and one.p95_ms]
    strategies = list(_by_strategy(points))
    base = altair.Chart(inline([asdict(one) for one in runs])).encode(
        x=altair.X("n:N", sort=None, title="elements", axis=altair.Axis(labelAngle=0)),
        xOffset=altair.XOffset("strategy:N", sort=strategies),
        color=altair.Color("strategy:N", sort=strategies, title=None),
    )
    ratio = altair.Y("fastest:Q", title="time ÷ median", scale=altair.Scale(zero=False))
    picture = altair.layer(
        base.mark_rule(strokeWidth=1.4).encode(y=ratio, y2="p95:Q"),
        base.mark_rule(strokeWidth=5).encode(y="low:Q", y2="high:Q"),
    ).properties(width=WIDTH, height=HEIGHT * 2 // 3)
    widest = max(runs, key=lambda one: one.p95 / one.fastest, default=None)
    told = (
        f"The widest is {widest.strategy} at {widest.n} elements, from {widest.fastest:.2f} to {widest.p95:.2f} times "
        "its median."
        if widest
        else "No case has several runs."
    )
    words = Words(
        f"spread-{name}",
        f"Spread of the runs: {subject}",
        "thin: fastest to 95th percentile; thick: 97.5 % interval of confidence of the median",
        f"For each strategy and size, the range of its runs in multiples of the median. {told}",
    )
    return chart_of(words, picture)


def _subject(points: Sequence[Measurement]) -> tuple[str, str]:
    one = points[0]
    return f"{one.op}-{one.dtype}-{one.cache}", f"{one.op} of {one.dtype}, {one.cache} caches"


def _by_strategy(points: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for point in sorted(points, key=lambda one: one.n):
        found.setdefault(point.strategy, []).append(point)
    return found


def _gbps(point: Measurement, ms: float | None) -> float:
    assert ms, "a measured point has a time"
    return point.bytes / ms / 1e6
