"""Accuracy studies and three numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite

from warpfold.contract.kinds.accuracy import AccuracyPoint, AccuracyResult, AccuracySpec
from warpfold.contract.kinds.three_numbers import OrderView, ThreeNumbersResult, ThreeNumbersSpec
from warpfold.contract.measurement import Measurement
from warpfold.kernels.accuracy import AccuracyCase, BoundVerdict, StudiedCase
from warpfold.kernels.accuracy.study import Repeats, run
from warpfold.kernels.accuracy.three_numbers import add_three
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.outcome import Outcome
from warpfold.worker.kinds.attempt import Attempt
from warpfold.worker.messages import Begun, Measured, Progress, Success, Tell

_UNIT = "points"
_DIED = "the process that computed it died"
_UNMEASURED = dict.fromkeys(AccuracyPoint.model_fields)


def compare(attempt: Attempt, spec: AccuracySpec, done: tuple[Measurement, ...], tell: Tell) -> Success:
    """Compute all points of `spec`. What failed according to `done`, the rows of a child that did not live to the end,
    is not tried again; the rest of it is computed again, for a row does not hold a whole point. Raises CudaError after
    the point that met it."""
    axes = spec.axes(attempt.backend.device.backend)
    told = {_case(row): row for row in done}
    known = {
        case: StudiedCase(case, Outcome.FAILED, row.reason)
        for case, row in told.items()
        if row.outcome == Outcome.FAILED
    }
    points: list[AccuracyPoint] = []
    rows: list[Measurement] = []

    def begin(case: AccuracyCase) -> None:
        tell(Progress(len(points), len(axes), _UNIT))
        if case not in told:
            tell(Begun(_row(attempt, StudiedCase(case, Outcome.FAILED, _DIED))))

    repeats = Repeats(spec.permutations, spec.runs)
    for point in run(attempt.backend, axes, spec.source, repeats, known=known, begin=begin):
        points.append(_view(point))
        rows.append(told.get(point.case) or _row(attempt, point))
        if point.case not in told:
            tell(Measured(rows[-1]))
    tell(Progress(len(points), len(axes), _UNIT))
    return Success(_result(attempt, points).model_dump(mode="json"), tuple(rows))


def add_three_numbers(attempt: Attempt, spec: ThreeNumbersSpec) -> Success:
    """Add the numbers of `spec` in every order, on the host: IEEE 754 leaves a GPU no other sums."""
    a, b, c = spec.numbers()
    added = add_three(a, b, c, dtype_named(spec.dtype))
    result = ThreeNumbersResult(
        dtype=spec.dtype,
        a=float(a),
        b=float(b),
        c=float(c),
        exact=added.rounded,
        exact_hex=added.rounded.hex(),
        orders=tuple(
            OrderView(
                expression=order.expression,
                inner=order.inner,
                inner_hex=order.inner.hex(),
                value=order.value,
                hex=order.value.hex(),
                absolute_error=order.absolute_error,
                relative_error=order.relative_error,
            )
            for order in added.orders
        ),
        distinct_values=len({order.value for order in added.orders}),
        backend=attempt.device.backend,
        device=attempt.device,
        timings=attempt.timings(),
        provenance=attempt.provenance,
    )
    return Success(result.model_dump(mode="json"))


def _view(point: StudiedCase) -> AccuracyPoint:
    figures = _UNMEASURED if point.measured is None else asdict(point.measured)
    of = {**figures, **asdict(point.case), "outcome": point.outcome, "reason": point.reason}
    if point.measured is not None:
        of |= {"hex": point.measured.value.hex(), "exact_hex": point.measured.exact.hex()}
    return AccuracyPoint.model_validate(of)


def _row(attempt: Attempt, point: StudiedCase) -> Measurement:
    """The point among the measurements of all jobs, so far as these have columns for it."""
    case, figures, device = point.case, point.measured, attempt.device
    arrays = 2 if case.op == "dot" else 1
    return Measurement(
        kind="accuracy",
        op=case.op,
        dtype=case.dtype,
        strategy=case.method,
        backend=device.backend,
        device=device.name[:128],
        device_uuid=device.uuid,
        driver=device.versions.get("driver"),
        host=attempt.provenance.host[:64],
        n=case.n,
        bytes=arrays * case.n * dtype_named(case.dtype).itemsize,
        samples=0 if figures is None else figures.runs,
        load_ms=None,
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
