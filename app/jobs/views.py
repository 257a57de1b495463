"""What the api says of jobs.

The models document the answers and tests hold the answers against them; the answers themselves are assembled around
the stored JSON of spec and result, which is not read on the way: that is fast, and −0.0 or an integer of any size
arrives as it was stored.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.jobs.presets import Child
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import Obstacle, Waiting
from warpfold.app.quotas.quota import Hold, QuotaName
from warpfold.contract.fields import Priority
from warpfold.contract.jobs import JobResult, JobSpec
from warpfold.contract.kinds.preset import BriefPresetSpec
from warpfold.contract.kinds.reduce import BriefReduceSpec
from warpfold.contract.states import PRIORITIES, EventType, Reason, Status

_PRIORITY_NAMES: Mapping[int, str] = MappingProxyType({rank: name for name, rank in PRIORITIES.items()})


class ProgressView(BaseModel):
    """How far a running job is."""

    done: int
    total: int = Field(description="0 until it is known")
    unit: str = Field(description='"elements", "points", "jobs", or empty until something is known')


class HoldView(BaseModel):
    """A quota of its owner that a job waits for."""

    quota: QuotaName
    limit: float
    until: datetime | None = Field(description="null: until another job of the owner ends")


class WaitingView(BaseModel):
    """What is the matter with the slots that could run a job, or a job of it."""

    reason: Obstacle
    detail: str = Field(description="the same for people")


class ChildView(BaseModel):
    """A job of a preset, in brief. One that failed as `unavailable` was skipped: the preset does without."""

    id: UUID
    name: str = Field(description="what the preset calls it")
    kind: str
    status: Status
    reason: Reason | None = Field(description="why it failed")
    error: str | None = Field(description="the same for people")


class JobView(BaseModel):
    """A job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "bad2cde1-a387-4c34-b05b-cb4651e4f880",
                    "kind": "reduce",
                    "parent": None,
                    "name": None,
                    "children": None,
                    "status": "running",
                    "spec": {
                        "kind": "reduce",
                        "op": "sum",
                        "strategy": "auto",
                        "backend": "auto",
                        "nan_policy": "propagate",
                        "source": {
                            "type": "generate",
                            "distribution": "normal",
                            "n": 10000000,
                            "seed": 42,
                            "dtype": "float32",
                            "parameters": {},
                        },
                        "other": None,
                        "ddof": 0,
                        "timeout_s": 300.0,
                        "priority": "normal",
                        "tags": {"course": "p05"},
                    },
                    "owner": "ann",
                    "priority": "normal",
                    "tags": {"course": "p05"},
                    "attempt": 1,
                    "worker": "gpu1:cpu",
                    "cancel_requested": False,
                    "reason": None,
                    "error": None,
                    "progress": {"done": 2097152, "total": 10000000, "unit": "elements"},
                    "waits_as": None,
                    "queue_position": None,
                    "hold": None,
                    "waiting": None,
                    "estimated_start_at": None,
                    "created_at": "2026-11-21T03:59:25.977248+00:00",
                    "started_at": "2026-11-21T03:59:26.005583+00:00",
                    "finished_at": None,
                    "result": None,
                }
            ]
        }
    )

    id: UUID
    kind: str
    parent: UUID | None = Field(description="the preset that it is part of")
    name: str | None = Field(description="what that preset calls it")
    children: list[ChildView] | None = Field(description="of a preset, in their order; null in lists")
    status: Status
    spec: JobSpec | BriefReduceSpec | BriefPresetSpec = Field(
        description="as accepted, with all defaults; lists show long `values` in brief"
    )
    owner: str
    priority: Priority
    tags: dict[str, str]
    attempt: int = Field(description="counts from 1; each time a worker was lost or stopped adds one")
    worker: str | None = Field(description="that runs or ran the latest attempt")
    cancel_requested: bool
    reason: Reason | None = Field(description="why it failed")
    error: str | None = Field(description="the same for people")
    progress: ProgressView
    waits_as: Priority | None = Field(
        description="less than `priority` for a high job beyond its owner's quota of the hour, more after a long "
        "wait; null unless queued"
    )
    queue_position: int | None = Field(description="1 is next by what it waits as, and age; null unless queued")
    hold: HoldView | None = Field(description="why it waits though its turn may have come; null in lists")
    waiting: WaitingView | None = Field(
        description="why no slot takes it: there is none that could run it, or all of these are drained or starting; "
        "null in the answer to a submission"
    )
    estimated_start_at: datetime | None = Field(
        description="at the pace of the latest jobs of each kind; null where unknown, unless queued, in lists and in "
        "the answer to a submission"
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: JobResult | None = Field(
        description="by kind; null until it succeeded, and in lists of studies: benchmarks, accuracy, scaling, profiles"
    )


class JobPage(BaseModel):
    """Jobs, newest first."""

    items: list[JobView]
    next_cursor: str | None = Field(description="for the next page; null on the last")


class EventView(BaseModel):
    """The data of a server-sent event; its `id` is the event's number and its `event` the type."""

    type: EventType
    at: datetime
    data: dict[str, Any] = Field(description="worker and attempt, reason, … by type")


def job_json(job: Job) -> str:
    """A `JobView` as JSON."""
    head = json.dumps(
        {
            "id": str(job.id),
            "kind": job.kind,
            "parent": None if job.parent_id is None else str(job.parent_id),
            "name": job.name,
            "children": None if job.children is None else [_child(child) for child in job.children],
            "status": job.status.value,
            "owner": job.owner,
            "priority": _PRIORITY_NAMES[job.priority],
            "tags": job.tags,
            "attempt": job.attempt,
            "worker": job.worker,
            "cancel_requested": job.cancel_requested_at is not None,
            "reason": job.reason,
            "error": job.error,
            "progress": {"done": job.progress_done, "total": job.progress_total, "unit": job.progress_unit},
            "waits_as": _PRIORITY_NAMES[job.rank] if job.status is Status.QUEUED else None,
            "queue_position": job.queue_position,
            "hold": None if job.hold is None else _hold(job.hold),
            "waiting": None if job.waiting is None else _waiting(job.waiting),
            "estimated_start_at": None if job.estimated_start_at is None else job.estimated_start_at.isoformat(),
            "created_at": job.created_at.isoformat(),
            "started_at": None if job.started_at is None else job.started_at.isoformat(),
            "finished_at": None if job.finished_at is None else job.finished_at.isoformat(),
        },
        ensure_ascii=False,
    )
    return f'{head[:-1]}, "spec": {job.spec}, "result": {job.result or "null"}}}'


def _child(child: Child) -> Mapping[str, object]:
    child_in_brief = {"id": str(child.id), "name": child.name, "kind": child.kind, "status": child.status.value}
    return {**child_in_brief, "reason": child.reason, "error": child.error}


def _hold(hold: Hold) -> Mapping[str, object]:
    until = None if hold.until is None else hold.until.isoformat()
    return {"quota": hold.quota.value, "limit": hold.limit, "until": until}


def _waiting(waiting: Waiting) -> Mapping[str, object]:
    return {"reason": waiting.reason.value, "detail": waiting.detail}


def page_json(jobs: Iterable[Job], next_cursor: str | None) -> str:
    """A `JobPage` as JSON."""
    items = ", ".join(job_json(job) for job in jobs)
    return f'{{"items": [{items}], "next_cursor": {json.dumps(next_cursor)}}}'
