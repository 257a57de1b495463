"""One measured point, as a worker reports it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """A row of the table of measurements, less what the database adds.

    `n` counts elements, `bytes` what was read of them, `samples` how many runs the times stand for; times are in
    milliseconds. `prepare_ms` is of a reduction: compiling and loading kernels, in no other time; the run that it was
    not 0 for has the flag `first_run`. The fields from `cache` on are those of a benchmark's `kernels.bench.Record`,
    where they are described; a reduction has its value and leaves the others at their defaults. `value` is written by
    repr. `outcome` is measured, skipped or failed, `reason` why; only a measured point has times.
    """

    kind: str
    op: str
    dtype: str
    strategy: str
    backend: str
    device: str
    n: int
    bytes: int
    samples: int
    load_ms: float | None
    kernel_ms: float | None
    correctly_rounded: bool | None
    device_uuid: str | None = None
    driver: str | None = None
    host: str | None = None
    prepare_ms: float | None = None
    distribution: str | None = None
    cache: str | None = None
    outcome: str = "measured"
    reason: str | None = None
    min_ms: float | None = None
    p95_ms: float | None = None
    rse: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    host_ms: float | None = None
    issue_ms: float | None = None
    replay_ms: float | None = None
    launches: int | None = None
    clock: str | None = None
    ceiling_gbps: float | None = None
    peak_gbps: float | None = None
    clock_before_mhz: float | None = None
    clock_after_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()
    others: float | None = None
    flags: tuple[str, ...] = ()
    value: str | None = None
    relative_error: float | None = None
    distinct_values: int | None = None

    def facts(self) -> dict[str, Any]:
        """All fields by name. `dataclasses.asdict` copies each value deeply, and takes ten times as long."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
