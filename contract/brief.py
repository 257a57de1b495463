"""Specs as lists show them: without thousands of values."""

from typing import Literal

from pydantic import BaseModel, Field

from warpfold.contract.fields import BackendName, DTypeName, JobOptions, Number, OpName, StrategyName
from warpfold.contract.jobs import JobSpec
from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.kinds.reduce import ReduceSpec
from warpfold.contract.sources import TAGGED_FIELDS, Source, ValuesSource
from warpfold.kernels.ops import NanPolicy

MOST_VALUES = 16


class BriefValues(BaseModel):
    """A `values` source of many elements."""

    type: Literal["values"]
    dtype: DTypeName
    count: int
    first: tuple[Number, ...] = Field(description=f"the first {MOST_VALUES} of the elements")


class BriefReduceSpec(JobOptions):
    """A `reduce` spec with many values."""

    kind: Literal["reduce"]
    op: OpName
    strategy: StrategyName
    backend: BackendName
    nan_policy: NanPolicy
    source: Source | BriefValues
    other: Source | BriefValues | None
    ddof: int


class BriefChild(BaseModel):
    """A job that was given to a preset, by name."""

    name: str
    kind: str


class BriefPresetSpec(JobOptions):
    """A `preset` spec with jobs of its own."""

    kind: Literal["preset"]
    preset: str
    children: tuple[BriefChild, ...]
    backend: BackendName | None
    max_n: int | None
    time_limit_s: float | None


def brief_of(spec: JobSpec) -> str | None:
    """JSON text of what lists show in place of `spec`; None if it is short enough as it is."""
    match spec:
        case ReduceSpec():
            return _brief_reduction(spec)
        case PresetSpec(children=tuple(children)):
            names = tuple(BriefChild(name=child.name, kind=child.spec.kind) for child in children)
            rest = spec.model_dump(exclude={"children", "webhook"})
            return BriefPresetSpec(**rest, children=names).model_dump_json(exclude={"webhook"})
    return None


def _brief_reduction(spec: ReduceSpec) -> str | None:
    source, other = _brief(spec.source), _brief(spec.other) if spec.other is not None else None
    if source is spec.source and other is spec.other:
        return None
    rest = spec.model_dump(exclude={*TAGGED_FIELDS, "webhook"})
    return BriefReduceSpec(**rest, source=source, other=other).model_dump_json(exclude={"webhook"})


def _brief(source: Source) -> Source | BriefValues:
    """`source` itself unless it has many values."""
    if not isinstance(source, ValuesSource) or len(source.values) <= MOST_VALUES:
        return source
    return BriefValues(
        type=source.type, dtype=source.dtype, count=len(source.values), first=source.values[:MOST_VALUES]
    )
