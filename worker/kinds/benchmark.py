"""Benchmarks: every case measured in turn, every point told to the parent as soon as it is there."""

from collections.abc import Sequence
from dataclasses import asdict

from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.measurement import Measurement
from warpfold.kernels.bench import Cache, Case, Flag, Point, Record, open_target, record_of, run
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Begun, Measured, Progress, Success, Tell

_UNIT = "points"
_DIED = "the process that measured it died"


def measure(attempt: Attempt, spec: BenchmarkSpec, done: tuple[Measurement, ...], tell: Tell) -> Success:
    """Measure all cases of `spec` but those already `done`. Raises CudaError after the point that met it."""
    axes, rows = spec.axes(), list(done)
    target = open_target(attempt.backend)

    def begin(case: Case) -> None:
        tell(Progress(len(rows), len(axes), _UNIT))
        lost = record_of(Point(case, Outcome.FAILED, _DIED))
        tell(Begun(_row(attempt, spec, lost)))

    known = {_case(row) for row in rows}
    ceiling: Ceiling | None = None
    for point in run(target, axes, spec.rule(), spec.data().source, done=known, begin=begin):
        ceiling = point.ceiling or ceiling
        rows.append(_row(attempt, spec, record_of(point)))
        tell(Measured(rows[-1]))
    tell(Progress(len(rows), len(axes), _UNIT))
    return Success(_result(attempt, rows, ceiling).model_dump(mode="json"), tuple(rows))


def _row(attempt: Attempt, spec: BenchmarkSpec, record: Record) -> Measurement:
    device = attempt.device
    return Measurement(
        kind="benchmark",
        backend=device.backend,
        device=device.name[:128],
        device_uuid=device.uuid,
        driver=device.versions.get("driver"),
        host=attempt.provenance.host[:64],
        distribution=spec.data().source(record.dtype, record.n).distribution,
        load_ms=None,
        correctly_rounded=None,
        **asdict(record),
    )


def _case(row: Measurement) -> Case:
    assert row.cache is not None, "a benchmark's rows say which"
    return Case(row.strategy, row.op, row.dtype, row.n, Cache(row.cache))


def _result(attempt: Attempt, rows: Sequence[Measurement], ceiling: Ceiling | None) -> BenchmarkResult:
    outcomes = [row.outcome for row in rows]
    # Rows of hot data have none.
    gbps = next((row.ceiling_gbps for row in rows if row.ceiling_gbps), None)
    if gbps is None and ceiling is not None and ceiling.trusted:
        gbps = ceiling.measured / 1e9
    return BenchmarkResult(
        cases=len(rows),
        measured=outcomes.count(Outcome.MEASURED),
        skipped=outcomes.count(Outcome.SKIPPED),
        failed=outcomes.count(Outcome.FAILED),
        suspect=sum(Flag.SUSPECT in row.flags for row in rows),
        ceiling_gbps=gbps,
        peak_gbps=next((row.peak_gbps for row in rows if row.peak_gbps), None),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=attempt.provenance,
    )
