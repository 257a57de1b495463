"""Makes the report of a finished job. The report has the value that a reduction should have, where the api can compute
that by definition, in exact fractions. Importing this module loads Altair, which takes half a second."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpfold.app.reports.finished import Finished
from warpfold.app.reports.kinds.registry import charts_of, tables_of
from warpfold.app.reports.preset_sections import sections_of
from warpfold.app.reports.report import ChartView, Comparison, Report
from warpfold.contract.folders import Folders
from warpfold.contract.json_value import hex_of
from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.kinds.reduce import ReduceResult, ReduceSpec
from warpfold.contract.sources import Source
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import NanPolicy, Value, reference
from warpfold.kernels.sources.sequential import gathered

_MOST_ELEMENTS = 10_000
"""More would take the api seconds in exact fractions."""

_NO_FOLDERS = Folders((), Path())  # only a worker reads files


@dataclass(frozen=True, slots=True)
class Expected:
    """The value by definition; None where it is not known here. `basis` says how it was found, or why it was not."""

    value: Value | None
    basis: str


def report_of(finished: Finished) -> Report:
    """The report of a job that has ended; takes up to about a second."""
    job, result = finished.job, finished.result
    comparison = None
    if isinstance(result, ReduceResult):
        comparison = _comparison(finished.spec if isinstance(finished.spec, ReduceSpec) else None, result)
    plain = isinstance(result, ReduceResult | None)
    return Report(
        job_id=job.id,
        kind=job.kind,
        status=job.status,
        owner=job.owner,
        tags=dict(job.tags),
        asked=f"a {job.kind} job" if finished.spec is None else finished.spec.description(),
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        reason=job.reason,
        error=job.error,
        comparison=comparison,
        result=result,
        tables=() if plain or result is None else tables_of(result, finished.points),
        charts=() if result is None else tuple(ChartView.of(chart) for chart in charts_of(result, finished.points)),
        parts=sections_of(finished.spec, finished.children) if isinstance(finished.spec, PresetSpec) else (),
    )


def _comparison(spec: ReduceSpec | None, result: ReduceResult) -> Comparison:
    expected = Expected(None, "not known: a spec of an older version") if spec is None else _expected_of(spec)
    known = result.value is not None
    return Comparison(
        expected=expected.value,
        expected_hex=None if expected.value is None else hex_of(expected.value),
        basis=expected.basis,
        measured=result.value,
        measured_hex=result.hex,
        agrees=_same(expected.value, result.number) if known and expected.value is not None else None,
        relative_error=_relative_error(expected.value, result.number) if known and expected.value is not None else None,
    )


def _expected_of(spec: ReduceSpec) -> Expected:
    """The value that `spec` should have; takes up to about a second."""
    counts = [source.known_count for _, source in spec.sources()]
    if None in counts:
        return Expected(None, "not known: only a worker reads the file")
    if sum(filter(None, counts)) > _MOST_ELEMENTS:
        return Expected(None, f"not known: more than {_MOST_ELEMENTS} elements are not added up in fractions")
    op, policy = spec.row(), NanPolicy(spec.nan_policy)
    dtype, bits = _patterns(spec.source)
    if spec.other is None:
        answer = reference.reduce(op, dtype, bits, policy, ddof=spec.ddof)
    else:
        answer = reference.of_pairs(op, (dtype, bits), _patterns(spec.other), policy, ddof=spec.ddof)
    if isinstance(answer, reference.Undefined):
        return Expected(None, f"not defined: {answer.reason}")
    return Expected(answer.value, "computed in exact fractions and rounded once")


def _patterns(source: Source) -> tuple[DType, list[int]]:
    """The elements as bits, with their dtype; not of a file."""
    assert source.known_dtype is not None, source
    assert source.known_count is not None, source
    array = gathered(source.open(_NO_FOLDERS)).read(0, source.known_count)
    dtype = source.known_dtype
    words = np.ascontiguousarray(array).view(f"uint{8 * dtype.itemsize}")
    return dtype, [int(word) for word in words]


def _same(expected: Value | None, measured: Value) -> bool:
    # repr distinguishes −0.0 from 0.0, is equal for two NaN, and differs for any two different floats.
    return type(expected) is type(measured) and repr(expected) == repr(measured)


def _relative_error(expected: Value, measured: Value) -> float | None:
    if not (math.isfinite(expected) and math.isfinite(measured)):
        return None
    if expected == 0:
        return 0.0 if measured == 0 else None
    return float(abs(measured - expected) / abs(expected))
