"""Measurements as the api answers with them: as JSON, and with the same columns and order as CSV and Parquet."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, Field

from warpfold.app.http.errors import Unavailable
from warpfold.app.results.repository import Measured
from warpfold.kernels.bench.record import percent

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


class MeasurementView(BaseModel):
    """One measured point: of a reduction, or of a benchmark, whose fields are null for others."""

    id: int
    job_id: UUID
    created_at: datetime
    kind: str
    op: str
    dtype: str
    strategy: str
    backend: str
    device: str
    device_uuid: str | None
    driver: str | None
    host: str | None
    n: int = Field(description="elements")
    bytes: int = Field(description="read of them by one run, declared by what is reduced")
    distribution: str | None = Field(description="of the data")
    cache: str | None = Field(description="cold: flushed before every run; hot: as the run before left it")
    outcome: str = Field(description="measured, skipped or failed")
    reason: str | None = Field(description="why it was skipped or failed")
    samples: int = Field(description="runs that the times stand for")
    load_ms: float | None
    kernel_ms: float | None = Field(description="median time on the device")
    gb_per_s: float | None = Field(description="bytes ÷ kernel time, in 10⁹ bytes a second; null for no time")
    percent_of_ceiling: float | None = Field(description="of ceiling_gbps, the read speed measured on the device")
    percent_of_peak: float | None = Field(description="of memory clock × bus width")
    min_ms: float | None
    p95_ms: float | None
    rse: float | None = Field(description="relative standard error of the mean")
    low_ms: float | None = Field(description="lower end of the 97.5 % confidence interval of the median")
    high_ms: float | None = Field(description="upper end")
    host_ms: float | None = Field(description="median time from the call until the host knows the device is done")
    issue_ms: float | None = Field(description="time a run when runs are called back to back")
    replay_ms: float | None = Field(description="time a run when the device replays a graph of runs by itself")
    launches: int | None = Field(description="kernels a run, counted in the graph")
    clock: str | None = Field(description="how device time was taken")
    ceiling_gbps: float | None = Field(
        description="null if other processes disturbed its measurement, or hot data came from a cache"
    )
    peak_gbps: float | None
    clock_before_mhz: float | None
    clock_after_mhz: float | None
    memory_clock_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    throttle: list[str] = Field(description="what held clocks down")
    others: float | None = Field(description="other processes on the GPU; on a CPU, logical cores kept busy by others")
    flags: list[str] = Field(description="throttled, contended, unconverged, suspect, no_ceiling, first_run")
    value: str | None = Field(description="that the strategy gave, exactly, as Python writes it: 1e+16, nan, inf, True")
    relative_error: float | None = Field(description="against the exact value")
    distinct_values: int | None = Field(description="results of 8 runs: 1 where it is deterministic")
    correctly_rounded: bool | None
    prepare_ms: float | None = Field(
        description="compiling and loading kernels for a reduction, in no other time; 0 if all were loaded"
    )

    @classmethod
    def of(cls, row: Measured) -> "MeasurementView":
        speed = row.bytes / row.kernel_ms / 1e6 if row.kernel_ms else None
        return cls(
            **{**row.facts(), "throttle": list(row.throttle), "flags": list(row.flags)},
            gb_per_s=speed,
            percent_of_ceiling=percent(speed, row.ceiling_gbps),
            percent_of_peak=percent(speed, row.peak_gbps),
        )


class MeasurementPage(BaseModel):
    """Measurements, newest first."""

    items: list[MeasurementView]
    next_cursor: str | None = Field(description="for the next page; null on the last")


def csv_of(rows: Sequence[Measured]) -> bytes:
    """CSV (RFC 4180) with a line of names. An unknown value is an empty cell; spaces separate several flags or reasons;
    floats have the fewest digits that read back as the same number."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(MeasurementView.model_fields)
    for row in rows:
        writer.writerow(_cell(value) for value in MeasurementView.of(row).model_dump(mode="json").values())
    return text.getvalue().encode()


def _cell(value: object) -> object:
    return " ".join(value) if isinstance(value, list) else value


def parquet_of(rows: Sequence[Measured]) -> bytes:
    """Parquet with typed columns, even without rows. Raises Unavailable if pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unavailable("This server cannot write Parquet: pyarrow is not installed.") from error
    text = pyarrow.string()
    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", tz="UTC"),
        list: pyarrow.list_(text),
    }
    kinds = {name: _kind(field.annotation) for name, field in MeasurementView.model_fields.items()}
    schema = pyarrow.schema([(name, types.get(kind, text)) for name, kind in kinds.items()])
    dumped = [MeasurementView.of(row).model_dump() for row in rows]
    columns = [[_stored(row[name]) for row in dumped] for name in schema.names]
    table = pyarrow.table([pyarrow.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _kind(annotation: Any) -> Any:
    """An annotation without items and None: int for `int`, float for `float | None`, list for `list[str]`."""
    if get_origin(annotation) is list:
        return list
    return next(kind for kind in (*get_args(annotation), annotation) if kind is not NoneType)


def _stored(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value
