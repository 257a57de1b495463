"""A scaling study as tables and as charts: speed-up and efficiency against the number of ranks, bus bandwidth against
the size of a message. The charts leave out points that are suspect."""

from collections.abc import Callable, Sequence

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Axis, ChartText, Point, Series, line_chart
from warpfold.app.reports.report import Table
from warpfold.contract.kinds.scaling import MessagePoint, ScalingPoint, ScalingResult
from warpfold.contract.wording import ABSENT, figure, milliseconds, percent, significant, times, yes_or_no
from warpfold.kernels.scaling.axes import Carrier

_MOST_NAMED = 6
"""Series that the description of a chart names; it counts more of them, and the legend names these."""


def tables(result: ScalingResult) -> tuple[Table, ...]:
    """Strong and weak scaling, bare all-reduces, and what was skipped or failed."""
    return (*_speeds(result), *_messages(result), *_failures(result))


def charts(result: ScalingResult) -> list[Chart]:
    """Speed-up and efficiency of strong and of weak scaling, and the bandwidth of bare all-reduces."""
    where = result.note or f"{len(result.devices)} × {result.devices[0].name}"
    drawn = []
    for scaling in dict.fromkeys(point.scaling for point in result.points):
        points = [p for p in result.points if p.scaling == scaling and p.speedup and not p.suspect]
        if any(point.ranks > 1 for point in points):
            drawn += [_speedup(scaling.value, where, points), _efficiency(scaling.value, where, points)]
    messages = [message for message in result.messages if message.busbw_gbps]
    if messages:
        drawn.append(_bandwidth(where, messages))
    return drawn


def _speeds(result: ScalingResult) -> list[Table]:
    columns = ("n", "ranks", "method", "driven by", "all-reduce", "local", "communication", "total", "host")
    more = ("speed-up", "95 %", "efficiency", "GB/s", "same bits", "suspect")
    note = "Times in milliseconds: medians of device time; host: wall clock. " + (result.note or "")
    tables = []
    for scaling in dict.fromkeys(point.scaling for point in result.points):
        rows = tuple(_row(p) for p in result.points if p.scaling == scaling and p.total_ms is not None)
        if rows:
            title = f"{scaling.value.capitalize()} scaling"
            tables.append(Table(title=title, columns=columns + more, rows=rows, note=note.strip()))
    return tables


def _row(point: ScalingPoint) -> tuple[str, ...]:
    interval = ABSENT
    if point.speedup_low is not None and point.speedup_high is not None:
        interval = f"{figure(point.speedup_low)} – {figure(point.speedup_high)}"
    return (
        f"{point.n:,}",
        str(point.ranks),
        point.method.value,
        point.mode.value.replace("_", " ") if point.mode else ABSENT,
        _all_reduce(point),
        milliseconds(point.local_ms),
        milliseconds(point.communication_ms),
        milliseconds(point.total_ms),
        milliseconds(point.host_ms),
        times(point.speedup),
        interval,
        percent(None if point.efficiency is None else 100 * point.efficiency),
        figure(point.gb_per_s),
        yes_or_no(point.same_bits),
        point.suspect or ABSENT,
    )


def _all_reduce(point: ScalingPoint) -> str:
    """The algorithm of the all-reduce; stores into other GPUs' memory have none."""
    if point.carrier is Carrier.PEER_ACCESS:
        return "peer access"
    return point.algorithm.value if point.algorithm else ABSENT


def _messages(result: ScalingResult) -> list[Table]:
    columns = ("bytes", "ranks", "driven by", "algorithm", "µs", "algbw GB/s", "busbw GB/s", "correct")
    rows = tuple(
        (
            f"{message.bytes:,}",
            str(message.ranks),
            message.mode.value.replace("_", " "),
            message.algorithm.value,
            figure(message.time_us),
            figure(message.algbw_gbps),
            figure(message.busbw_gbps),
            yes_or_no(message.correct),
        )
        for message in result.messages
        if message.time_us is not None
    )
    note = "busbw = algbw · 2(ranks − 1)/ranks, as nccl-tests defines it"
    return [Table(title="All-reduces", columns=columns, rows=rows, note=note)] if rows else []


def _failures(result: ScalingResult) -> list[Table]:
    ranks: dict[str, list[int]] = {}
    points: Sequence[ScalingPoint | MessagePoint] = (*result.points, *result.messages)
    for point in points:
        if point.reason:
            ranks.setdefault(f"{point.outcome.value}: {point.reason}", []).append(point.ranks)
    rows = tuple(
        (why, f"{len(counts)} points, of {', '.join(map(str, sorted(set(counts))))} ranks")
        for why, counts in ranks.items()
    )
    return [Table(title="Not measured", columns=("why", "what"), rows=rows)] if rows else []


def _speedup(scaling: str, where: str, points: Sequence[ScalingPoint]) -> Chart:
    """How many times faster than one rank; the number of ranks is the ideal."""
    series = _series(points, lambda p: Point(p.ranks, p.speedup or 0.0, p.speedup_low, p.speedup_high))
    ranks = sorted({point.ranks for point in points})
    ideal = Series("ideal", [Point(count, count) for count in ranks], published=True)
    best = max((point for point in points if point.ranks > 1), key=lambda point: point.speedup or 0.0)
    text = ChartText(
        f"speedup-{scaling}",
        f"Speed-up, {scaling} scaling",
        where,
        f"Speed-up over one rank against the number of ranks, one line each for {_names(series)}, and the ideal. The "
        f"highest is {significant(best.speedup or 0.0)} on {best.ranks} ranks with {best.n:,} elements.",
    )
    return line_chart(text, Axis("ranks", log=False, counted=True), Axis("speed-up", log=False), [*series, ideal])


def _efficiency(scaling: str, where: str, points: Sequence[ScalingPoint]) -> Chart:
    """Speed-up per rank."""
    series = _series(points, lambda point: Point(point.ranks, point.efficiency or 0.0))
    shared = [point for point in points if point.ranks > 1]
    best = max(shared, key=lambda point: point.efficiency or 0.0)
    text = ChartText(
        f"efficiency-{scaling}",
        f"Efficiency, {scaling} scaling",
        where,
        f"Speed-up divided by ranks against the number of ranks, one line each for {_names(series)}. The highest on "
        f"several ranks is {significant(best.efficiency or 0.0)} on {best.ranks} ranks with {best.n:,} elements.",
    )
    return line_chart(text, Axis("ranks", log=False, counted=True), Axis("efficiency", log=False), series)


def _bandwidth(where: str, messages: Sequence[MessagePoint]) -> Chart:
    """Bus bandwidth against the size of a message, a series for each number of ranks, algorithm and mode."""
    groups: dict[str, list[Point]] = {}
    for message in sorted(messages, key=lambda message: message.bytes):
        name = f"{message.ranks} ranks, {message.algorithm}, {message.mode.value.replace('_', ' ')}"
        groups.setdefault(name, []).append(Point(message.bytes, message.busbw_gbps or 0.0))
    series = [Series(name, points) for name, points in groups.items()]
    best = max(messages, key=lambda message: message.busbw_gbps or 0.0)
    text = ChartText(
        "busbw",
        "Bus bandwidth of all-reduces",
        f"{where}; busbw = algbw · 2(ranks − 1)/ranks",
        f"Bus bandwidth in GB/s against the bytes of a message, both logarithmic, one line each for {_names(series)}. "
        f"The highest is {significant(best.busbw_gbps or 0.0)} GB/s for {best.bytes:,} bytes on {best.ranks} ranks.",
    )
    return line_chart(text, Axis("bytes a rank"), Axis("GB/s", format="~g"), series)


def _series(points: Sequence[ScalingPoint], place: Callable[[ScalingPoint], Point]) -> list[Series]:
    """A series for each size (a rank's, in weak scaling), method, mode and algorithm; all begin at one rank."""
    groups: dict[str, list[Point]] = {}
    alone = [point for point in points if point.ranks == 1]
    for point in sorted(points, key=lambda point: point.ranks):
        if point.ranks > 1 and point.mode is not None and point.algorithm is not None:
            weak = point.scaling == "weak"
            size = point.n // point.ranks if weak else point.n
            driven = f"{point.mode.value.replace('_', ' ')}, {point.algorithm}"
            name = f"{size:,}{' a rank' if weak else ''}, {point.method}, {driven}"
            if name not in groups:
                groups[name] = [place(base) for base in alone if (base.n, base.method) == (size, point.method)]
            groups[name].append(place(point))
    return [Series(name, places) for name, places in groups.items()]


def _names(series: Sequence[Series]) -> str:
    return "; ".join(line.name for line in series) if len(series) <= _MOST_NAMED else f"{len(series)} combinations"
