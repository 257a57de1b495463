"""Benchmarks as tables."""

from collections.abc import Sequence

from warpfold.app.reports.parts import Table
from warpfold.app.reports.words import ABSENT, figure, milliseconds, percent
from warpfold.contract.measurement import Measurement


def tables(points: Sequence[Measurement]) -> tuple[Table, ...]:
    """One table of all points, and one of what was skipped or failed, if any."""
    measured = [point for point in points if point.kernel_ms]
    others = [point for point in points if not point.kernel_ms]
    found = []
    if measured:
        columns = ("strategy", "op", "dtype", "n", "caches", "ms", "GB/s", "of ceiling", "error", "flags")
        note = "ms: median device time of a run; error: relative, against the exact value"
        found.append(Table(title="Measured", columns=columns, rows=tuple(map(_row, measured)), note=note))
    if others:
        rows = tuple((p.strategy, p.op, p.dtype, f"{p.n:,}", p.cache or "", p.outcome, p.reason or "") for p in others)
        whys = ("strategy", "op", "dtype", "n", "caches", "outcome", "why")
        found.append(Table(title="Not measured", columns=whys, rows=rows))
    return tuple(found)


def gbps(point: Measurement) -> float | None:
    """Bytes over the median time, in 10⁹ bytes a second."""
    return point.bytes / point.kernel_ms / 1e6 if point.kernel_ms else None


def share(point: Measurement, of: float | None) -> float | None:
    """The point's speed in percent of `of`."""
    speed = gbps(point)
    return None if speed is None or not of else 100 * speed / of


def _row(point: Measurement) -> tuple[str, ...]:
    return (
        point.strategy,
        point.op,
        point.dtype,
        f"{point.n:,}",
        point.cache or "",
        milliseconds(point.kernel_ms),
        figure(gbps(point)),
        percent(share(point, point.ceiling_gbps)),
        figure(point.relative_error),
        ", ".join(point.flags) or ABSENT,
    )
