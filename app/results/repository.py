"""SQL of measurements across jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select

from app.results.models import measurements


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of measurements (`app.results.measurement.Measurement` with its origin)."""

    id: int
    job_id: UUID
    kind: str
    op: str
    dtype: str
    strategy: str
    backend: str
    device: str
    n: int
    bytes: int
    samples: int
    load_ms: float
    kernel_ms: float
    correctly_rounded: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class MeasurementFilter:
    """Which measurements a page lists; None does not restrict. `n_min` and `n_max` are included."""

    kind: str | None = None
    op: str | None = None
    dtype: str | None = None
    strategy: str | None = None
    backend: str | None = None
    device: str | None = None
    job_id: UUID | None = None
    n_min: int | None = None
    n_max: int | None = None


_PAGE = select(*(measurements.c[field.name] for field in fields(Measured))).order_by(measurements.c.id.desc())
_EQUAL = ("kind", "op", "dtype", "strategy", "backend", "device", "job_id")


def page(connection: Connection, chosen: MeasurementFilter, limit: int, before_id: int | None) -> Sequence[Measured]:
    """Up to `limit` measurements, newest first, older than `before_id`."""
    where: list[ColumnElement[bool]] = [
        measurements.c[name] == getattr(chosen, name) for name in _EQUAL if getattr(chosen, name) is not None
    ]
    if chosen.n_min is not None:
        where.append(measurements.c.n >= chosen.n_min)
    if chosen.n_max is not None:
        where.append(measurements.c.n <= chosen.n_max)
    if before_id is not None:
        where.append(measurements.c.id < before_id)
    return [Measured(*row) for row in connection.execute(_PAGE.where(*where).limit(limit))]
