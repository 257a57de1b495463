"""Specs as lists show them: without thousands of values."""

from typing import Literal

from pydantic import BaseModel, Field

from app.jobs.fields import BackendName, DTypeName, JobOptions, Number, OpName, StrategyName
from app.jobs.spec import JobSpec, ReduceSpec, ValuesSource
from kernels.ops import NanPolicy

MOST_VALUES = 16


class BriefValues(BaseModel):
    """A `values` source of many elements."""

    type: Literal["values"]
    dtype: DTypeName
    count: int
    first: tuple[Number, ...] = Field(description=f"the first {MOST_VALUES} of the elements")


class BriefReduceSpec(JobOptions):
    """A `reduce` spec whose values are many."""

    kind: Literal["reduce"]
    op: OpName
    strategy: StrategyName
    backend: BackendName
    nan_policy: NanPolicy
    source: BriefValues


def brief_of(spec: JobSpec) -> str | None:
    """JSON text of what lists show in place of `spec`; None if it is short enough as it is."""
    source = spec.source if isinstance(spec, ReduceSpec) else None
    if not isinstance(source, ValuesSource) or len(source.values) <= MOST_VALUES:
        return None
    shown = BriefValues(
        type=source.type, dtype=source.dtype, count=len(source.values), first=source.values[:MOST_VALUES]
    )
    return BriefReduceSpec(**spec.model_dump(exclude={"source"}), source=shown).model_dump_json()
