"""SQL of measurements across jobs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy import Connection, Row, Select, and_, func, not_, select

from warpfold.app.auth.visibility import THE_SERVICE, Viewer, visible
from warpfold.app.tables.jobs import jobs
from warpfold.app.tables.measurements import measurements
from warpfold.contract.jobs import Kind
from warpfold.contract.measurement import FILTERS, Measurement
from warpfold.kernels.bench.axes import Cache
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.studies.outcome import Outcome
from warpfold.kernels.studies.shapes import SHAPE_FIELDS, KeyOrder

Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]


class Measured(Measurement):
    """A row of measurements with its origin."""

    id: int
    job_id: UUID
    created_at: datetime


class MeasurementFilter(BaseModel):
    """The measurements to list; None does not restrict. `n_min` and `n_max` are included; `flag` is a flag that is set.

    The parameters of a request that lists measurements are these fields.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind | None = None
    op: Name | None = None
    dtype: Name | None = None
    strategy: Name | None = None
    backend: Name | None = None
    device: Name | None = Field(None, description="List points of the device with this name.")
    driver: Name | None = Field(None, description="List points that were measured with this version of the GPU driver.")
    host: Name | None = None
    cache: Cache | None = None
    outcome: Outcome | None = None
    flag: Flag | None = Field(None, description="List points that have this flag.")
    rows: Count | None = Field(None, description="List points of matrices or tables with this number of rows.")
    columns: Count | None = Field(None, description="List points of matrices with this number of columns.")
    axis: int | None = Field(None, ge=0, le=1, description="List points of matrices reduced along this axis.")
    segments: Count | None = Field(None, description="List points of segments with this mean length.")
    groups: Count | None = Field(None, description="List points of tables with this number of groups.")
    key_order: KeyOrder | None = Field(None, description="List points of tables whose keys lay in this order.")
    job_id: UUID | None = None
    n_min: Count | None = Field(None, description="List points with at least this number of elements.")
    n_max: Count | None = Field(None, description="List points with at most this number of elements.")


_NAMES = tuple(Measured.model_fields)
_ROWS = select(*(measurements.c[name] for name in _NAMES))
_EQUAL = (*FILTERS, "job_id")
# What must be the same for two points to be points of one history.
_HISTORY = tuple(
    measurements.c[name]
    for name in (
        *("device_uuid", "device", "driver", "host"),
        *("strategy", "op", "dtype", "n", "cache", "distribution", *SHAPE_FIELDS),
    )
)


def page(
    connection: Connection,
    chosen: MeasurementFilter,
    limit: int,
    before_id: int | None,
    viewer: Viewer = THE_SERVICE,
) -> Sequence[Measured]:
    """Up to `limit` measurements of jobs that the viewer sees, newest first, older than `before_id`."""
    statement = _chosen(_ROWS, chosen, viewer).order_by(measurements.c.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(measurements.c.id < before_id)
    return [_measured(row) for row in connection.execute(statement)]


def ids(
    connection: Connection, chosen: MeasurementFilter, limit: int, before_id: int | None, viewer: Viewer
) -> Sequence[int]:
    """The ids of the measurements that `page` has."""
    statement = _chosen(select(measurements.c.id), chosen, viewer).order_by(measurements.c.id.desc()).limit(limit)
    if before_id is not None:
        statement = statement.where(measurements.c.id < before_id)
    return connection.execute(statement).scalars().all()


def points_of(
    connection: Connection, job_id: UUID, strategy: str | None, viewer: Viewer = THE_SERVICE
) -> Sequence[Measured]:
    """The benchmark points of a job that the viewer sees, of one strategy or all."""
    chosen = MeasurementFilter(kind="benchmark", job_id=job_id, strategy=strategy)
    statement = _chosen(_ROWS, chosen, viewer).order_by(measurements.c.id)
    return [_measured(row) for row in connection.execute(statement)]


def histories(
    connection: Connection, chosen: MeasurementFilter, length: int, most: int, viewer: Viewer = THE_SERVICE
) -> Sequence[Measured]:
    """Of jobs that the viewer sees, the latest `length` points that count of each case on each device with each driver,
    cases one after the other and each newest first; of at most `most` cases, those measured last."""
    counts = and_(
        measurements.c.kind == "benchmark",
        measurements.c.outcome == Outcome.MEASURED,
        measurements.c.kernel_ms.is_not(None),
        not_(measurements.c.flags.contains([Flag.SUSPECT])),
    )
    newest = measurements.c.id.desc()
    ranked = _chosen(
        select(
            *(measurements.c[name] for name in _NAMES),
            func.row_number().over(partition_by=_HISTORY, order_by=newest).label("age"),
            func.max(measurements.c.id).over(partition_by=_HISTORY).label("latest"),
        ).where(counts),
        chosen,
        viewer,
    ).subquery()
    cases = select(ranked.c.latest).distinct().order_by(ranked.c.latest.desc()).limit(most).scalar_subquery()
    statement = (
        select(*(ranked.c[name] for name in _NAMES))
        .where(ranked.c.age <= length, ranked.c.latest.in_(cases))
        .order_by(ranked.c.latest.desc(), ranked.c.age)
    )
    return [_measured(row) for row in connection.execute(statement)]


def _chosen(statement: Select[Any], chosen: MeasurementFilter, viewer: Viewer) -> Select[Any]:
    if not viewer.sees_all:
        seen = select(jobs.c.id).where(jobs.c.id == measurements.c.job_id, visible(jobs, viewer))
        statement = statement.where(seen.exists())
    for name in _EQUAL:
        value = getattr(chosen, name)
        if value is not None:
            statement = statement.where(measurements.c[name] == value)
    if chosen.n_min is not None:
        statement = statement.where(measurements.c.n >= chosen.n_min)
    if chosen.n_max is not None:
        statement = statement.where(measurements.c.n <= chosen.n_max)
    if chosen.flag is not None:
        statement = statement.where(measurements.c.flags.contains([chosen.flag]))
    return statement


def _measured(row: Row[Any]) -> Measured:
    return Measured.model_validate(dict(zip(_NAMES, row, strict=True)))
