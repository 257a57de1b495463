"""Measured points as rows of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from warpfold.app.results.repository import Measured
from warpfold.app.results.views import MeasurementView


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point. `interval` is half the width of the median's interval of confidence, in percent of the median."""

    id: int
    job_id: UUID
    op: str
    dtype: str
    strategy: str
    device: str
    n: int
    cache: str | None
    outcome: str
    reason: str | None
    kernel_ms: float | None
    interval: float | None
    gb_per_s: float | None
    percent_of_ceiling: float | None
    relative_error: float | None
    samples: int
    flags: list[str]


def rows_of(points: Iterable[Measured]) -> list[PointRow]:
    """A row a point, in the order given."""
    return [_row(MeasurementView.of(point)) for point in points]


def _row(point: MeasurementView) -> PointRow:
    interval = None
    if point.low_ms is not None and point.high_ms is not None and point.kernel_ms:
        interval = 50 * (point.high_ms - point.low_ms) / point.kernel_ms
    return PointRow(
        id=point.id,
        job_id=point.job_id,
        op=point.op,
        dtype=point.dtype,
        strategy=point.strategy,
        device=point.device,
        n=point.n,
        cache=point.cache,
        outcome=point.outcome,
        reason=point.reason,
        kernel_ms=point.kernel_ms,
        interval=interval,
        gb_per_s=point.gb_per_s,
        percent_of_ceiling=point.percent_of_ceiling,
        relative_error=point.relative_error,
        samples=point.samples,
        flags=point.flags,
    )
