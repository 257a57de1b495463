"""Runs benchmarks: it measures the cases in turn, and sends every point to the parent as soon as it is measured."""

from collections.abc import Sequence
from dataclasses import asdict

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.benchmark import BenchmarkResult, BenchmarkSpec
from warpfold.contract.measurement import Measurement
from warpfold.kernels.bench import engine
from warpfold.kernels.bench.axes import Cache, Case
from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.engine import Point
from warpfold.kernels.bench.flags import Flag
from warpfold.kernels.bench.record import Record, record_of
from warpfold.kernels.bench.target import open_target
from warpfold.kernels.studies.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt

_DIED = "the process that measured it died"


def run(attempt: Attempt, spec: BenchmarkSpec) -> Success:
    """Measure all cases of `spec` but those that are done already. Raises CudaError after the point that met it."""
    axes, rows = spec.axes(), list(attempt.lease.done)
    target = open_target(attempt.backend)

    def begin(case: Case) -> None:
        attempt.progress(len(rows), len(axes))
        lost = record_of(Point(case, Outcome.FAILED, _DIED))
        attempt.begun(_row(attempt, spec, lost))

    known = {_case(row) for row in rows}
    ceiling: Ceiling | None = None
    source_of = spec.data().source
    for point in engine.run(target, axes, spec.rule(), source_of, seed=spec.seed, done=known, begin=begin):
        ceiling = point.ceiling or ceiling
        rows.append(_row(attempt, spec, record_of(point)))
        attempt.measured(rows[-1])
    attempt.progress(len(rows), len(axes))
    return Success(_result(attempt, rows, ceiling).model_dump(mode="json"), tuple(rows))


def _row(attempt: Attempt, spec: BenchmarkSpec, record: Record) -> Measurement:
    source = spec.data().source(record.dtype, record.n)
    return attempt.point(distribution=source.distribution, **asdict(record))


def _case(row: Measurement) -> Case:
    assert row.cache is not None, "a benchmark's rows say which"
    return Case(row.strategy, row.op, row.dtype, row.n, Cache(row.cache), row.shape)


def _result(attempt: Attempt, rows: Sequence[Measurement], ceiling: Ceiling | None) -> BenchmarkResult:
    outcomes = [row.outcome for row in rows]
    # Rows of hot data have no ceiling.
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
