"""Charts of a scaling study: speed-up and efficiency against the number of ranks, bus bandwidth against the size of a
message. Points that are suspect are left out."""

from collections.abc import Callable, Sequence

from warpfold.app.charts.chart import Chart
from warpfold.app.charts.vega_lite import Axis, Line, Point, Words, line_chart, significant
from warpfold.contract.kinds.scaling import MessagePoint, ScalingPoint, ScalingResult

_FEW = 6


def charts(result: ScalingResult) -> list[Chart]:
    """Speed-up and efficiency of strong and of weak scaling, and the bandwidth of bare all-reduces."""
    where = result.note or f"{len(result.devices)} × {result.devices[0].name}"
    found = []
    for scaling in dict.fromkeys(point.scaling for point in result.points):
        points = [one for one in result.points if one.scaling == scaling and one.speedup and not one.suspect]
        if any(point.ranks > 1 for point in points):
            found += [speedup(scaling.value, where, points), efficiency(scaling.value, where, points)]
    messages = [one for one in result.messages if one.busbw_gbps]
    if messages:
        found.append(bandwidth(where, messages))
    return found


def speedup(scaling: str, where: str, points: Sequence[ScalingPoint]) -> Chart:
    """How many times faster than one rank, a line a size and method; ideal is the number of ranks."""
    lines = _lines(points, lambda one: Point(one.ranks, one.speedup or 0.0, one.speedup_low, one.speedup_high))
    ranks = sorted({point.ranks for point in points})
    ideal = Line("ideal", [Point(count, count) for count in ranks], published=True)
    best = max((one for one in points if one.ranks > 1), key=lambda one: one.speedup or 0.0)
    words = Words(
        f"speedup-{scaling}",
        f"Speed-up, {scaling} scaling",
        where,
        f"Speed-up over one rank against the number of ranks, one line each for {_names(lines)}, and the ideal. The "
        f"highest is {significant(best.speedup or 0.0)} on {best.ranks} ranks with {best.n:,} elements.",
    )
    return line_chart(words, Axis("ranks", log=False, counted=True), Axis("speed-up", log=False), [*lines, ideal])


def efficiency(scaling: str, where: str, points: Sequence[ScalingPoint]) -> Chart:
    """Speed-up per rank."""
    lines = _lines(points, lambda one: Point(one.ranks, one.efficiency or 0.0))
    shared = [point for point in points if point.ranks > 1]
    best = max(shared, key=lambda one: one.efficiency or 0.0)
    words = Words(
        f"efficiency-{scaling}",
        f"Efficiency, {scaling} scaling",
        where,
        f"Speed-up divided by ranks against the number of ranks, one line each for {_names(lines)}. The highest on "
        f"several ranks is {significant(best.efficiency or 0.0)} on {best.ranks} ranks with {best.n:,} elements.",
    )
    return line_chart(words, Axis("ranks", log=False, counted=True), Axis("efficiency", log=False), lines)


def bandwidth(where: str, messages: Sequence[MessagePoint]) -> Chart:
    """Bus bandwidth against the size of a message, a line a way."""
    groups: dict[str, list[Point]] = {}
    for one in sorted(messages, key=lambda one: one.bytes):
        name = f"{one.ranks} ranks, {one.algorithm}, {one.mode.value.replace('_', ' ')}"
        groups.setdefault(name, []).append(Point(one.bytes, one.busbw_gbps or 0.0))
    lines = [Line(name, points) for name, points in groups.items()]
    best = max(messages, key=lambda one: one.busbw_gbps or 0.0)
    words = Words(
        "busbw",
        "Bus bandwidth of all-reduces",
        f"{where}; busbw = algbw · 2(ranks − 1)/ranks",
        f"Bus bandwidth in GB/s against the bytes of a message, both logarithmic, one line each for {_names(lines)}. "
        f"The highest is {significant(best.busbw_gbps or 0.0)} GB/s for {best.bytes:,} bytes on {best.ranks} ranks.",
    )
    return line_chart(words, Axis("bytes a rank"), Axis("GB/s", format="~g"), lines)


def _lines(points: Sequence[ScalingPoint], place: Callable[[ScalingPoint], Point]) -> list[Line]:
    """A line for each size (a rank's, of weak scaling), method and way to communicate; all begin at one rank."""
    groups: dict[str, list[Point]] = {}
    alone = [point for point in points if point.ranks == 1]
    for one in sorted(points, key=lambda one: one.ranks):
        if one.ranks > 1 and one.mode is not None and one.algorithm is not None:
            size = one.n // one.ranks if one.scaling == "weak" else one.n
            way = f"{one.mode.value.replace('_', ' ')}, {one.algorithm}"
            name = f"{size:,}{' a rank' if one.scaling == 'weak' else ''}, {one.method}, {way}"
            if name not in groups:
                groups[name] = [place(base) for base in alone if (base.n, base.method) == (size, one.method)]
            groups[name].append(place(one))
    return [Line(name, found) for name, found in groups.items()]


def _names(lines: Sequence[Line]) -> str:
    """More than a few are left to the legend."""
    return "; ".join(line.name for line in lines) if len(lines) <= _FEW else f"{len(lines)} combinations"
