"""The report of one job: expected against measured, timings, provenance."""

import math
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from app.jobs.reduce_spec import ReduceSpec
from app.jobs.repository import Job
from app.jobs.sources import DatasetSource, PathSource, Source, ValuesSource
from app.jobs.spec import job_spec
from app.jobs.states import Status
from app.reports.expected import Expected, expected_of
from app.results.reduce import JsonValue, ReduceResult, hex_of
from app.results.result import JobResult
from kernels.ops import Value, op_named


class Comparison(BaseModel):
    """Expected against measured."""

    expected: JsonValue | None = Field(description="null where it is not known here")
    expected_hex: str | None
    basis: str = Field(description="how the expected value was found, or why it is not known")
    measured: JsonValue
    measured_hex: str | None
    agrees: bool | None = Field(description="the same value, bit for bit; null where nothing is expected")
    relative_error: float | None = Field(description="|measured − expected| ÷ |expected|, where that is a number")


class Report(BaseModel):
    """A finished job, for people and for archives."""

    job_id: UUID
    kind: str
    status: Status
    owner: str
    tags: dict[str, str]
    asked: str = Field(description="what the job was to do, in words")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None
    error: str | None
    comparison: Comparison | None = Field(description="null for a job without a value to compare")
    result: JobResult | None


_RESULT: TypeAdapter[JobResult] = TypeAdapter(JobResult)


def report_of(job: Job) -> Report:
    """The report of a job that has ended; takes up to about a second."""
    try:
        spec = job_spec.validate_json(job.spec)
    except ValidationError:
        spec = None  # accepted by an older version
    comparison = None
    if job.kind == "reduce" and job.result is not None:
        reduce = spec if isinstance(spec, ReduceSpec) else None
        comparison = _comparison(reduce, ReduceResult.model_validate_json(job.result))
    return Report(
        job_id=job.id,
        kind=job.kind,
        status=job.status,
        owner=job.owner,
        tags=dict(job.tags),
        asked=_asked(spec) if isinstance(spec, ReduceSpec) else f"a {job.kind} job",
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        reason=job.reason,
        error=job.error,
        comparison=comparison,
        result=None if job.result is None else _RESULT.validate_json(job.result),
    )


def _asked(spec: ReduceSpec) -> str:
    of = _elements(spec.source) + (f" with {_elements(spec.other)}" if spec.other is not None else "")
    freedom = f", ddof {spec.ddof}" if op_named(spec.op).ddof else ""
    nan = "" if spec.nan_policy == "propagate" else f", NaN: {spec.nan_policy.value}"
    return f"{spec.op} of {of}{freedom}; strategy {spec.strategy}, backend {spec.backend}{nan}"


def _elements(source: Source) -> str:
    if isinstance(source, ValuesSource):
        return f"{len(source.values):,} given values as {source.dtype}"
    if isinstance(source, PathSource):
        return f"the file {source.path}"
    if isinstance(source, DatasetSource):
        return f"the dataset {source.id}"
    shape = ", ".join(f"{name}={value!r}" for name, value in sorted(source.parameters.items()))
    return f"{source.n:,} {source.distribution}({shape}) elements as {source.dtype}, seed {source.seed}"


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
