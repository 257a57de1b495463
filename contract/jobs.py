"""The specs and the results of jobs. One definition serves as request body, stored column, worker argument, answer
and OpenAPI."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from warpfold.contract.kinds.preset import PresetResult, PresetSpec
from warpfold.contract.kinds.spec import Spec
from warpfold.contract.summaries import short, spaced
from warpfold.contract.tasks import FirstResult, LaterResult, TaskKind, TaskSpec

JobSpec = Annotated[TaskSpec | PresetSpec, Field(discriminator="kind")]
"""The specs of all kinds."""

JobResult = FirstResult | PresetResult | LaterResult
"""The union of the results of all kinds. Their fields tell them apart, because no result allows the fields of
another."""

Kind = Literal[TaskKind, "preset"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The values of `kind`, which is the first part of the location of an error in a spec."""

SPECS: Mapping[str, type[Spec]] = MappingProxyType(
    {get_args(spec.model_fields["kind"].annotation)[0]: spec for spec in (*get_args(get_args(TaskSpec)[0]), PresetSpec)}
)
"""The spec of each kind."""

job_spec: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)

_RESULT: TypeAdapter[JobResult] = TypeAdapter(JobResult)
_OPTIONS = frozenset({"kind", "timeout_s", "priority", "tags", "backend", "seed"})
_MOST_FIELDS = 4


def result_of(text: str) -> JobResult:
    """A result as it is stored."""
    return _RESULT.validate_json(text)


def summary_of(kind: str, stored: Mapping[str, Any]) -> str:
    """One line about the JSON object of a stored spec or of its brief form, of any kind and version."""
    known = SPECS.get(kind)
    if known is not None:
        parts = known.summary(stored)
    else:
        fields = [(name, value) for name, value in stored.items() if name not in _OPTIONS and value]
        parts = [f"{spaced(name)} {short(value)}" for name, value in fields[:_MOST_FIELDS]]
    return " · ".join(part for part in parts if part) or kind


def brief_of(spec: Spec) -> str | None:
    """JSON text that lists show in place of `spec`; None if `spec` is short enough itself."""
    brief = spec.brief()
    return None if brief is None else brief.model_dump_json(exclude={"webhook"})
