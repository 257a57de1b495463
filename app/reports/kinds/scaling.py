"""Scaling studies as tables."""

from warpfold.app.reports.parts import Table
from warpfold.app.reports.words import ABSENT, figure, milliseconds, percent, times, yes
from warpfold.contract.kinds.scaling import ScalingPoint, ScalingResult


def tables(result: ScalingResult) -> tuple[Table, ...]:
    """Strong and weak scaling, bare all-reduces, and what was skipped or failed."""
    found = []
    for scaling in dict.fromkeys(point.scaling for point in result.points):
        points = [point for point in result.points if point.scaling == scaling and point.total_ms is not None]
        if points:
            columns = ("n", "ranks", "method", "driven by", "all-reduce", "local", "communication", "total", "host")
            more = ("speed-up", "95 %", "efficiency", "GB/s", "same bits", "suspect")
            note = "Times in milliseconds: medians of device time; host: wall clock. " + (result.note or "")
            title = f"{scaling.value.capitalize()} scaling"
            rows = tuple(_row(point) for point in points)
            found.append(Table(title=title, columns=columns + more, rows=rows, note=note.strip()))
    messages = [one for one in result.messages if one.time_us is not None]
    if messages:
        heads = ("bytes", "ranks", "driven by", "algorithm", "µs", "algbw GB/s", "busbw GB/s", "correct")
        rows = tuple(
            (
                f"{one.bytes:,}",
                str(one.ranks),
                one.mode.value.replace("_", " "),
                one.algorithm.value,
                figure(one.time_us),
                figure(one.algbw_gbps),
                figure(one.busbw_gbps),
                yes(one.correct),
            )
            for one in messages
        )
        note = "busbw = algbw · 2(ranks − 1)/ranks, as nccl-tests defines it"
        found.append(Table(title="All-reduces", columns=heads, rows=rows, note=note))
    whys: dict[str, list[int]] = {}
    for point in result.points:
        if point.reason:
            whys.setdefault(f"{point.outcome.value}: {point.reason}", []).append(point.ranks)
    for message in result.messages:
        if message.reason:
            whys.setdefault(f"{message.outcome.value}: {message.reason}", []).append(message.ranks)
    if whys:
        rows = tuple((why, f"{len(ranks)} points, of {_ranks(ranks)} ranks") for why, ranks in whys.items())
        found.append(Table(title="Not measured", columns=("why", "what"), rows=rows))
    return tuple(found)


def _row(point: ScalingPoint) -> tuple[str, ...]:
    interval = ABSENT
    if point.speedup_low is not None and point.speedup_high is not None:
        interval = f"{figure(point.speedup_low)} – {figure(point.speedup_high)}"
    return (
        f"{point.n:,}",
        str(point.ranks),
        point.method.value,
        point.mode.value.replace("_", " ") if point.mode else ABSENT,
        point.algorithm.value if point.algorithm else ABSENT,
        milliseconds(point.local_ms),
        milliseconds(point.communication_ms),
        milliseconds(point.total_ms),
        milliseconds(point.host_ms),
        times(point.speedup),
        interval,
        percent(None if point.efficiency is None else 100 * point.efficiency),
        figure(point.gb_per_s),
        yes(point.same_bits),
        point.suspect or ABSENT,
    )


def _ranks(ranks: list[int]) -> str:
    return ", ".join(map(str, sorted(set(ranks))))
