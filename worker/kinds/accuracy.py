"""Runs accuracy studies."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite

from warpfold.app.jobs.attempt import Success
from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult, AccuracySpec
from warpfold.contract.measurement import Measurement
from warpfold.kernels.accuracy import AccuracyCase, BoundVerdict, StudiedCase, study
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.studies.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt

_DIED = "the process that computed it died"
_UNMEASURED = dict.fromkeys(AccuracyPoint.model_fields)


def run(attempt: Attempt, spec: AccuracySpec) -> Success:
    """Compute all points of `spec`. A point that failed in a child which died is not tried again. The points that this
    child had computed are computed again, because a row does not hold a whole point. Raises CudaError after the point
    that met it."""
    axes = spec.axes(attempt.backend.device.backend)
    earlier = {_case(row): row for row in attempt.lease.done}
    known = {
        case: StudiedCase(case, Outcome.FAILED, row.reason)
        for case, row in earlier.items()
        if row.outcome == Outcome.FAILED
    }
    points: list[AccuracyPoint] = []
    rows: list[Measurement] = []

    def begin(case: AccuracyCase) -> None:
        attempt.progress(len(points), len(axes))
        if case not in earlier:
            attempt.begun(_row(attempt, StudiedCase(case, Outcome.FAILED, _DIED)))

    repeats = study.Repeats(spec.permutations, spec.runs)
    for point in study.run(attempt.backend, axes, spec.source, repeats, known=known, begin=begin):
        points.append(_view(point))
        rows.append(earlier.get(point.case) or _row(attempt, point))
        if point.case not in earlier:
            attempt.measured(rows[-1])
    attempt.progress(len(points), len(axes))
    return Success(_result(attempt, points).model_dump(mode="json"), tuple(rows))


def _view(point: StudiedCase) -> AccuracyPoint:
    figures = _UNMEASURED if point.measured is None else asdict(point.measured)
    of = {**figures, **asdict(point.case), "outcome": point.outcome, "reason": point.reason}
    if point.measured is not None:
        of |= {"hex": point.measured.value.hex(), "exact_hex": point.measured.exact.hex()}
    return AccuracyPoint.model_validate(of)


def _row(attempt: Attempt, point: StudiedCase) -> Measurement:
    """The point as a row of measurements, with those fields for which the table has columns."""
    case, figures = point.case, point.measured
    arrays = 2 if case.op == "dot" else 1
    return attempt.point(
        op=case.op,
        dtype=case.dtype,
        strategy=case.method,
        n=case.n,
        bytes=arrays * case.n * dtype_named(case.dtype).itemsize,
        samples=0 if figures is None else figures.runs,
        kernel_ms=None if figures is None else figures.elapsed_ms,
        correctly_rounded=None if figures is None else figures.correctly_rounded,
        distribution=case.distribution,
        outcome=point.outcome.value,
        reason=point.reason,
        value=None if figures is None else repr(figures.value),
        relative_error=None if figures is None or not isfinite(figures.relative_error) else figures.relative_error,
        distinct_values=None if figures is None else figures.distinct_results,
    )


def _case(row: Measurement) -> AccuracyCase:
    assert row.distribution is not None, "a study's rows say which"
    return AccuracyCase(row.strategy, row.op, row.distribution, row.dtype, row.n)


def _result(attempt: Attempt, points: Sequence[AccuracyPoint]) -> AccuracyResult:
    outcomes = Counter(point.outcome for point in points)
    return AccuracyResult(
        points=tuple(points),
        measured=outcomes[Outcome.MEASURED],
        skipped=outcomes[Outcome.SKIPPED],
        failed=outcomes[Outcome.FAILED],
        exceeded=sum(point.bound_verdict == BoundVerdict.EXCEEDED for point in points),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=attempt.provenance,
    )
