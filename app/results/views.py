"""What the api says of measurements."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from warpfold.app.results.repository import Measured
from warpfold.kernels.bench.record import percent


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
