"""Jobs, datasets and merged states of the service. Fields that are not named here are attributes, too."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from warpfold.client import html
from warpfold.client.answer import Answer
from warpfold.client.job_results import ReduceResult, Result
from warpfold.contract.json_value import JsonValue


class Progress(Answer):
    """How far a running job is, in `unit`s; `total` is 0 until it is known."""

    done: int
    total: int
    unit: str


class Hold(Answer):
    """A quota of its owner that a queued job waits for; `until` is None for until another job of the owner ends."""

    quota: str
    limit: float
    until: datetime | None


class Waiting(Answer):
    """Why no slot takes a job: `reason` is no_slot, slots_drained or slots_starting, `detail` a sentence about it."""

    reason: str
    detail: str


class Child(Answer):
    """A part of a preset's job; `reason` and `error` say why it failed."""

    id: str
    name: str
    kind: str
    status: str
    reason: str | None = None
    error: str | None = None

    @property
    def skipped(self) -> bool:
        """Whether it was not run because nothing there can run it."""
        return self.status == "failed" and self.reason == "unavailable"


class JobCount(Answer):
    """How many jobs a filter leaves: `number` of them, or more if that is not `exact`."""

    number: int
    exact: bool


class Job(Answer):
    """A job as the service saw it when it was asked."""

    id: str
    kind: str
    status: str
    spec: dict[str, Any] = Field(default_factory=dict)
    owner: str
    priority: str = "normal"
    tags: dict[str, str] = Field(default_factory=dict)
    attempt: int
    worker: str | None = None
    reason: str | None
    error: str | None
    progress: Progress
    waits_as: str | None = None
    queue_position: int | None
    estimated_start_at: datetime | None = None
    hold: Hold | None = None
    waiting: Waiting | None = None
    parent: str | None = None
    name: str | None = None
    note: str | None = None
    children: tuple[Child, ...] | None = None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: Result | None

    @property
    def ended(self) -> bool:
        return self.status in ("succeeded", "failed", "cancelled")

    @property
    def succeeded(self) -> bool:
        return self.status == "succeeded"

    def _become(self, newer: "Job") -> Self:
        """Say what `newer` says: for jobs that are brought up to date in place."""
        self.__dict__.update(newer.__dict__)
        object.__setattr__(self, "__pydantic_extra__", newer.__pydantic_extra__)  # models of ours are frozen
        return self

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, even if they came from different clients."""
        return isinstance(other, Job) and all(getattr(self, name) == getattr(other, name) for name in Job.model_fields)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.kind}, {self.status}>"

    def _repr_html_(self) -> str:
        done = self.progress
        shown = f"{done.done:,} of {done.total:,} {done.unit}" if done.total and self.status == "running" else None
        value = repr(self.result.value) if isinstance(self.result, ReduceResult) else None
        why = f"{self.reason}: {self.error}" if self.reason else None
        return html.properties(
            f"{self.kind} job",
            [
                ("id", self.id),
                ("status", self.status),
                ("queue position", self.queue_position),
                ("waits for", None if self.waiting is None else self.waiting.detail),
                ("progress", shown),
                ("value", value),
                ("why", why),
                ("owner", self.owner),
                ("submitted", f"{self.created_at.astimezone():%Y-%m-%d %H:%M:%S}"),
            ],
        )


class Dataset(Answer):
    """An uploaded file; `id` is its SHA-256. Of another `format` than .npy, dtype and shape are empty."""

    id: str
    name: str
    owner: str
    format: str = ".npy"
    dtype: str
    shape: tuple[int, ...]
    count: int
    bytes: int
    created_at: datetime
    last_used_at: datetime


class Merged(Answer):
    """The sum of exact states, rounded once; `state` is the base64 of the merged state."""

    value: JsonValue
    hex: str | None
    dtype: str
    op: str
    count: int
    correctly_rounded: bool
    state: str
