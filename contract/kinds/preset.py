"""Presets: which is to be run with what changes, and which jobs it consisted of. Each job has its own result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from warpfold.contract.fields import MAX_ELEMENTS, MAX_TAGS, MAX_TIMEOUT_S, BackendName, JobOptions, Listed
from warpfold.contract.frozen import Frozen
from warpfold.contract.kinds.spec import Changes, LeftOut, Spec
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.preset import MAX_CHILDREN, PresetChild
from warpfold.contract.sources.source import SourceSpec
from warpfold.contract.summaries import short, spaced
from warpfold.contract.tasks import TaskSpec
from warpfold.kernels.errors import InvalidInput


def _known(name: str) -> str:
    catalogue.members(name)
    return name


def _offer(schema: JsonDict) -> None:
    schema["enum"] = [*catalogue.names(), *catalogue.groups()]


PresetName = Annotated[str, AfterValidator(_known), Field(json_schema_extra=_offer)]


@dataclass(frozen=True, slots=True)
class Absent:
    """A job of the preset that is not run, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """The jobs that a preset consists of."""

    children: tuple[PresetChild, ...]
    absent: tuple[Absent, ...]


class PresetSpec(Spec):
    """Run all jobs of a preset, or of a group of presets (`p05-task3`), as children of one job.

    `/v1/presets/{name}` shows the jobs. `backend`, `max_n` and `time_limit_s` change all of them; `children` replaces
    them. Each job gets the tags and the priority of the preset, too.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "preset", "preset": "p05-task1-correctness"},
                {"kind": "preset", "preset": "p05-task3", "backend": "cpu", "max_n": 100000},
                {
                    "kind": "preset",
                    "preset": "p05-three-numbers",
                    "children": [{"name": "half", "spec": {"kind": "three_numbers", "a": 2048, "c": -2048}}],
                },
            ]
        }
    )

    kind: Literal["preset"]
    preset: PresetName = Field(description="The name of a preset or of a group of presets.")
    children: Listed[PresetChild] | None = Field(
        None,
        min_length=1,
        max_length=MAX_CHILDREN,
        description="Jobs to be run in place of the preset's own jobs.",
    )
    backend: BackendName | None = Field(None, description="Where every job runs; each job says so itself if left out.")
    max_n: int | None = Field(
        None,
        ge=1,
        le=MAX_ELEMENTS,
        strict=True,
        description="Longer arrays are left out, or cut to this length if no array is shorter.",
    )
    time_limit_s: float | None = Field(
        None,
        gt=0,
        le=3600,
        strict=True,
        description="The limit of sampling one point, for jobs that have a longer limit.",
    )
    timeout_s: float = Field(
        3600.0,
        strict=True,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="The time-out of every job that has a longer time-out itself.",
    )

    @model_validator(mode="after")
    def _runnable(self) -> Self:
        for index, child in enumerate(self.children or ()):
            place = f"children.{index}.spec"
            if child.spec.webhook is not None:
                raise InvalidInput(
                    "a job of a preset sends no message of its own; give `webhook` to the preset", f"{place}.webhook"
                )
            if child.spec.parts():
                raise InvalidInput("a job of a preset runs on one device: name its `backend`", f"{place}.devices")
        expansion = self.expand()
        if not expansion.children:
            raise InvalidInput(f"no job of {self.preset} can run on {self.backend}", "backend")
        names = [child.name for child in expansion.children]
        if len(set(names)) < len(names):
            raise InvalidInput("the names of the jobs must differ", "children")
        for child in expansion.children:
            # They are its tags, too.
            if len(child.spec.tags | self.tags) > MAX_TAGS:
                raise InvalidInput(f"with its own, the job {child.name!r} would have more than {MAX_TAGS} tags", "tags")
        return self

    def expand(self) -> Expansion:
        """The jobs that are to be run. Those of a group are called `preset:job`."""
        changes = Changes(self.backend, self.max_n, self.time_limit_s, self.timeout_s)
        children, absent = [], []
        for child in self._children():
            try:
                children.append(PresetChild(name=child.name, spec=child.spec.changed(changes)))
            except LeftOut as left:
                absent.append(Absent(child.name, str(left)))
        return Expansion(tuple(children), tuple(absent))

    def _children(self) -> tuple[PresetChild, ...]:
        if self.children is not None:
            return self.children
        presets = catalogue.members(self.preset)
        if len(presets) == 1:
            return presets[0].children
        return tuple(
            PresetChild(name=f"{preset.name}:{child.name}", spec=child.spec)
            for preset in presets
            for child in preset.children
        )

    def parts(self) -> Sequence[tuple[str, TaskSpec]]:
        return tuple((child.name, child.spec) for child in self.expand().children)

    def sources(self) -> Iterator[tuple[str, SourceSpec]]:
        for index, child in enumerate(self.children or ()):
            for field, source in child.spec.sources():
                yield f"children.{index}.spec.{field}", source

    def brief(self) -> "BriefPresetSpec | None":
        if self.children is None:
            return None
        children = tuple(BriefChild(name=child.name, kind=child.spec.kind) for child in self.children)
        return BriefPresetSpec(**self.model_dump(exclude={"children", "webhook"}), children=children)

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        limits = (f"{spaced(name)} {short(stored[name])}" for name in ("backend", "max_n") if stored.get(name))
        return str(stored.get("preset")), *limits

    def description(self) -> str:
        return f"preset {self.preset}"


class BriefChild(BaseModel):
    """A job of a `preset` spec that has jobs of its own, in brief."""

    name: str
    kind: str


class BriefPresetSpec(JobOptions):
    """A `preset` spec that has jobs of its own, in brief."""

    kind: Literal["preset"]
    preset: str
    children: tuple[BriefChild, ...]
    backend: BackendName | None
    max_n: int | None
    time_limit_s: float | None


class ChildOutcome(Frozen):
    """A job of the preset that succeeded."""

    job_id: UUID
    name: str = Field(description="The name that the preset gives to the job.")
    kind: str


class SkippedChild(Frozen):
    """A job of the preset that no slot of the service can run."""

    job_id: UUID
    name: str
    kind: str
    why: str = Field(description="The requirement of the job that no slot of the service meets.")


class PresetResult(Frozen):
    """The jobs of a preset. All jobs that the service can run succeeded. `/v1/reports/{id}` puts their figures beside
    the published figures."""

    jobs: tuple[ChildOutcome, ...]
    skipped: tuple[SkippedChild, ...] = ()
    queued_ms: float = Field(description="The time from acceptance to the start of the first job.")
    total_ms: float = Field(description="The time from the start of the first job to the end of the last.")
