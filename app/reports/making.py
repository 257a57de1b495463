"""From a finished job to its report. Importing this module loads Altair, half a second that only reports cost."""

import math

from warpfold.app.reports.expected import Expected, expected_of
from warpfold.app.reports.finished import Finished
from warpfold.app.reports.kinds.registry import charts_of, tables_of
from warpfold.app.reports.preset_sections import sections_of
from warpfold.app.reports.report import ChartView, Comparison, Report
from warpfold.contract.json_value import hex_of
from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.kernels.ops import Value


def report_of(found: Finished) -> Report:
    """The report of a job that has ended; takes up to about a second."""
    job, result = found.job, found.result
    comparison = None
    if isinstance(result, ReduceResult):
        comparison = _comparison(found.spec if isinstance(found.spec, ReduceSpec) else None, result)
    plain = isinstance(result, ReduceResult | None)
    return Report(
        job_id=job.id,
        kind=job.kind,
        status=job.status,
        owner=job.owner,
        tags=dict(job.tags),
        asked=f"a {job.kind} job" if found.spec is None else found.spec.description(),
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        reason=job.reason,
        error=job.error,
        comparison=comparison,
        result=result,
        tables=() if plain or result is None else tables_of(result, found.points),
        charts=() if result is None else tuple(ChartView.of(chart) for chart in charts_of(result, found.points)),
        parts=sections_of(found.spec, found.children) if isinstance(found.spec, PresetSpec) else (),
    )


def _comparison(spec: ReduceSpec | None, result: ReduceResult) -> Comparison:
    expected = Expected(None, "not known: a spec of an older version") if spec is None else expected_of(spec)
    known = expected.value is not None
    return Comparison(
        expected=expected.value,
        expected_hex=None if expected.value is None else hex_of(expected.value),
        basis=expected.basis,
        measured=result.value,
        measured_hex=result.hex,
        agrees=_same(expected.value, result.value) if known else None,
        relative_error=None if expected.value is None else _relative_error(expected.value, result.value),
    )


def _same(expected: Value | None, measured: Value) -> bool:
    # repr tells −0.0 from 0.0, is equal for two NaN, and two floats have it in common only if they are one.
    return type(expected) is type(measured) and repr(expected) == repr(measured)


def _relative_error(expected: Value, measured: Value) -> float | None:
    if not (math.isfinite(expected) and math.isfinite(measured)):
        return None
    if expected == 0:
        return 0.0 if measured == 0 else None
    return float(abs(measured - expected) / abs(expected))
