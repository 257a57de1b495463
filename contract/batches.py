"""Batches: many jobs by one request, either spec by spec or as a sweep of one spec over lists of values."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from warpfold.contract.fields import MAX_TAGS, MAX_TIMEOUT_S, Listed, Priority, TagName, TagValue
from warpfold.contract.frozen import Frozen
from warpfold.contract.jobs import JobSpec
from warpfold.contract.states import Status
from warpfold.contract.webhook import Webhook
from warpfold.kernels.errors import InvalidInput

MAX_JOBS = 10_000
"""The most jobs of one batch, the jobs of its presets among them."""

_MAX_FIELDS = 16

FieldPath = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$", max_length=128)]
"""A field of a spec, with dots: source.seed."""


class Sweep(Frozen):
    """One spec, and the fields that differ: the batch has a job for each combination of their values. The last field
    changes fastest."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "spec": {
                        "kind": "reduce",
                        "source": {"type": "generate", "distribution": "normal", "n": 1000000},
                    },
                    "over": {"source.seed": [1, 2, 3], "op": ["sum", "max"]},
                }
            ]
        }
    )

    spec: dict[str, Any] = Field(description="The spec of all jobs; the fields in `over` may be left out.")
    over: dict[FieldPath, Annotated[list[Any], Field(min_length=1, max_length=MAX_JOBS)]] = Field(
        min_length=1,
        max_length=_MAX_FIELDS,
        description="The values of each field that differs. A field of an object is named with dots: `source.seed`.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.count > MAX_JOBS:
            raise InvalidInput(f"makes {self.count} jobs; a batch has at most {MAX_JOBS}", "sweep.over")
        for path in self.over:
            inner = next((other for other in self.over if other.startswith(f"{path}.")), None)
            if inner is not None:
                raise InvalidInput(f"lies within {path}, which is swept as well", f"sweep.over.{inner}")
            self._reach(path)
        return self

    def _reach(self, path: str) -> None:
        value: object = self.spec
        parts = path.split(".")
        for depth, part in enumerate(parts):
            if not isinstance(value, dict):
                raise InvalidInput(f"{'.'.join(parts[:depth])} of the spec is not an object", f"sweep.over.{path}")
            value = value.get(part, {})

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return prod(len(values) for values in self.over.values())

    def points(self, first: int, last: int) -> Iterator[Mapping[str, int]]:
        """The combinations from number `first` up to and without `last`: of each field, the place of its value."""
        lengths = [len(values) for values in self.over.values()]
        for number in range(first, min(last, self.count)):
            places, rest = [], number
            for length in reversed(lengths):
                rest, place = divmod(rest, length)
                places.append(place)
            yield dict(zip(self.over, reversed(places), strict=True))

    def at(self, places: Mapping[str, int]) -> dict[str, Any]:
        """The spec of one combination."""
        spec = dict(self.spec)
        for path, place in places.items():
            *outer, name = path.split(".")
            inner = spec
            for part in outer:
                inner[part] = dict(inner.get(part, {}))
                inner = inner[part]
            inner[name] = self.over[path][place]
        return spec


class BatchOptions(Frozen):
    """The options that hold for all jobs of a batch."""

    name: str = Field(
        "", max_length=128, pattern=r"^[^\x00]*$", description="The name of the batch, for people; it may be empty."
    )
    timeout_s: float | None = Field(
        None,
        strict=True,
        gt=0,
        le=MAX_TIMEOUT_S,
        description="The `timeout_s` of every job whose spec does not give one.",
    )
    priority: Priority | None = Field(None, description="The `priority` of every job whose spec does not give one.")
    tags: dict[TagName, TagValue] = Field(
        default_factory=dict,
        max_length=MAX_TAGS,
        description="Tags of every job, beside the tags in its spec. Where both have a name, the spec's value holds.",
    )

    webhook: Webhook | None = Field(
        None,
        description="A receiver that gets one message, with the counts of the jobs, when the batch has ended. "
        "The `webhook` of a spec reports the end of that job only.",
    )

    def onto(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """`spec`, which is unchecked, with what holds for all jobs."""
        own = spec.get("tags", {})
        shared: dict[str, Any] = {"timeout_s": self.timeout_s, "priority": self.priority}
        defaults = {name: value for name, value in shared.items() if value is not None}
        if self.tags and isinstance(own, dict):
            return {**defaults, **spec, "tags": {**self.tags, **own}}
        return {**defaults, **spec} if defaults else dict(spec)


def status_of_ended(failed: int, cancelled: int, *, cancel_requested: bool) -> Status:
    """The status of a batch all of whose jobs have ended: succeeded if all of them did, cancelled if that was asked for
    or no job failed, and failed otherwise."""
    if not failed and not cancelled:
        return Status.SUCCEEDED
    return Status.FAILED if failed and not cancel_requested else Status.CANCELLED


def check_one(specs: object, sweep: object) -> None:
    """Raise InvalidInput unless one of both is there and the other is None."""
    if specs is None and sweep is None:
        raise InvalidInput("give `specs`, or a `sweep`", "specs")
    if specs is not None and sweep is not None:
        raise InvalidInput("give `specs` or a `sweep`, not both", "sweep")


class BatchSpec(BatchOptions):
    """Jobs that are accepted together, or not at all: `specs`, or a `sweep` of one spec."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "two ops",
                    "specs": [
                        {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e8, 1, -1e8]}},
                        {"kind": "reduce", "op": "max", "source": {"type": "values", "values": [1e8, 1, -1e8]}},
                    ],
                },
                {
                    "name": "seeds",
                    "tags": {"course": "p05"},
                    "sweep": {
                        "spec": {
                            "kind": "reduce",
                            "source": {"type": "generate", "distribution": "normal", "n": 1000000},
                        },
                        "over": {"source.seed": [1, 2, 3], "op": ["sum", "max"]},
                    },
                },
            ]
        }
    )

    specs: Listed[JobSpec] | None = Field(
        None, min_length=1, max_length=MAX_JOBS, description="The specs of the jobs, as `POST /v1/jobs` takes them."
    )
    sweep: Sweep | None = Field(None, description="One spec and lists of values, in place of `specs`.")

    @model_validator(mode="after")
    def _has_specs_or_sweep(self) -> Self:
        check_one(self.specs, self.sweep)
        return self


class BatchProgress(BaseModel):
    """How many jobs of a batch have which status."""

    total: int = Field(description="The jobs of the batch; the jobs of a preset count as the one job that they are.")
    done: int = Field(description="The jobs that have ended.")
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
