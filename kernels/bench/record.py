"""A point as one flat record, which tables store, files keep and printers show."""

from dataclasses import dataclass

from warpfold.kernels.bench.axes import Cache, Case
from warpfold.kernels.bench.engine import Point
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.studies.outcome import Outcome
from warpfold.kernels.studies.shapes import SHAPE_FIELDS, CaseShape


@dataclass(frozen=True, slots=True)
class Record:
    """Times in milliseconds, ceilings in GB/s (10⁹ bytes a second), clocks in MHz, temperature in °C, power in W.

    `kernel_ms` is the median of device time, `low_ms` … `high_ms` its confidence interval (`kernels.bench.summary`).
    Bytes are declared by what is reduced; throughput is derived from them. `ceiling_gbps` is None where no share of it
    means anything: others disturbed its measurement, or hot data came from a cache. `value` is written by repr.
    """

    strategy: str
    op: str
    dtype: str
    n: int
    cache: str
    outcome: str
    reason: str | None = None
    bytes: int = 0
    samples: int = 0
    kernel_ms: float | None = None
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
    rows: int | None = None
    columns: int | None = None
    axis: int | None = None
    segments: int | None = None
    groups: int | None = None
    key_order: str | None = None

    @property
    def gbps(self) -> float | None:
        """Bytes read over the median time."""
        return self.bytes / self.kernel_ms / 1e6 if self.kernel_ms else None

    @property
    def percent_of_ceiling(self) -> float | None:
        return percent(self.gbps, self.ceiling_gbps)

    @property
    def percent_of_peak(self) -> float | None:
        return percent(self.gbps, self.peak_gbps)

    @property
    def counts(self) -> bool:
        """Whether the record may enter a summary."""
        return self.outcome == Outcome.MEASURED and Flag.SUSPECT not in self.flags


def percent(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


def record_of(point: Point) -> Record:
    """The row of a point."""
    case, ceiling = point.case, point.ceiling
    shape = {} if case.shape is None else case.shape.in_columns()
    if point.measured is None:
        names = (case.strategy, case.op, case.dtype, case.n, case.cache.value)
        return Record(*names, point.outcome.value, point.reason, **shape)
    measured = point.measured
    before, after = measured.looks
    summary = measured.device
    interval = summary.interval
    return Record(
        strategy=case.strategy,
        op=case.op,
        dtype=case.dtype,
        n=case.n,
        cache=case.cache.value,
        outcome=point.outcome.value,
        bytes=measured.read_bytes,
        samples=summary.samples,
        kernel_ms=summary.median * 1e3,
        min_ms=summary.min * 1e3,
        p95_ms=summary.p95 * 1e3,
        rse=summary.rse if summary.samples > 1 else None,
        low_ms=interval.low * 1e3 if interval else None,
        high_ms=interval.high * 1e3 if interval else None,
        host_ms=measured.host.median * 1e3,
        issue_ms=measured.issue_s * 1e3,
        replay_ms=measured.replay.seconds * 1e3 if measured.replay else None,
        launches=measured.replay.launches if measured.replay else None,
        clock=measured.method,
        ceiling_gbps=_ceiling(point, measured.read_bytes),
        peak_gbps=ceiling.peak / 1e9 if ceiling and ceiling.peak else None,
        clock_before_mhz=before.clock_mhz,
        clock_after_mhz=after.clock_mhz,
        memory_clock_mhz=after.memory_clock_mhz,
        temperature_c=after.temperature_c,
        power_w=after.power_w,
        throttle=tuple(sorted({*before.throttle, *after.throttle})),
        others=_most(before.others, after.others),
        flags=tuple(sorted(flag.value for flag in point.flags)),
        value=None if point.value is None else repr(point.value),
        relative_error=point.relative_error,
        distinct_values=point.distinct_values,
        **shape,
    )


def case_of(record: Record) -> Case:
    """The case that a row is of."""
    shape = CaseShape.of(record.n, {name: getattr(record, name) for name in SHAPE_FIELDS})
    return Case(record.strategy, record.op, record.dtype, record.n, Cache(record.cache), shape)


def _ceiling(point: Point, read_bytes: int) -> float | None:
    ceiling = point.ceiling
    if ceiling is None or not ceiling.trusted or not ceiling.bounds(read_bytes, cold=point.case.cache is Cache.COLD):
        return None
    return ceiling.measured / 1e9


def _most(*counts: float | None) -> float | None:
    return max((count for count in counts if count is not None), default=None)
