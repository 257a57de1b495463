"""Answers about jobs. The models document the answers, and tests check the answers against them. The answers themselves
are assembled around the stored JSON of spec and result, which is not parsed on the way: that is fast, and −0.0 or an
integer of any size arrives as it was stored.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.jobs.listing import Tally
from warpfold.app.jobs.presets import Child
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import Obstacle, Waiting
from warpfold.app.quotas.quota import Hold, QuotaName
from warpfold.contract.brief_reduction import BriefReduceSpec
from warpfold.contract.fields import Priority
from warpfold.contract.jobs import JobResult, JobSpec
from warpfold.contract.kinds.groupby import BriefGroupbySpec
from warpfold.contract.kinds.preset import BriefPresetSpec
from warpfold.contract.states import PRIORITIES, EventType, Reason, Status

_PRIORITY_NAMES: Mapping[int, str] = MappingProxyType({rank: name for name, rank in PRIORITIES.items()})


class ProgressView(BaseModel):
    """The progress of a running job."""

    done: int
    total: int = Field(description="The value that `done` has at the end; 0 until it is known.")
    unit: str = Field(description='The unit of the counts: "bytes", "points" or "jobs"; empty until it is known.')


class HoldView(BaseModel):
    """The quota of its owner that a job waits for."""

    quota: QuotaName
    limit: float
    until: datetime | None = Field(description="When the hold ends; null where it ends with another job of the owner.")


class WaitingView(BaseModel):
    """Why no slot takes a job, or one of its children."""

    reason: Obstacle
    detail: str = Field(description="The reason in a sentence for people.")


class ChildView(BaseModel):
    """A job of a preset, in brief. A job that failed as `unavailable` was skipped: the preset does without it."""

    id: UUID
    name: str = Field(description="The name of the job within its preset.")
    kind: str
    status: Status
    reason: Reason | None = Field(description="Why the job failed; null if it did not.")
    error: str | None = Field(description="The reason in a sentence for people.")


class JobView(BaseModel):
    """A job."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "bad2cde1-a387-4c34-b05b-cb4651e4f880",
                    "kind": "reduce",
                    "parent": None,
                    "name": "ten million",
                    "note": None,
                    "batch": None,
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
                    "progress": {"done": 16777216, "total": 80000000, "unit": "bytes"},
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
    parent: UUID | None = Field(description="The preset that the job is part of; null for a job by itself.")
    name: str | None = Field(
        description="What the job is called: by its preset, if it is part of one, or else by its owner."
    )
    note: str | None = Field(description="A note of its owner.")
    batch: UUID | None = Field(description="The batch that brought the job; null for a job that came by itself.")
    children: list[ChildView] | None = Field(
        description="The jobs of a preset, in their order; null for other jobs and in lists."
    )
    status: Status
    spec: JobSpec | BriefReduceSpec | BriefGroupbySpec | BriefPresetSpec = Field(
        description="The spec as it was accepted, with all defaults; lists show long `values` in brief."
    )
    owner: str
    priority: Priority
    tags: dict[str, str]
    attempt: int = Field(
        description="The number of the latest attempt, counted from 1. Each time a worker is lost or stopped, another "
        "attempt begins."
    )
    worker: str | None = Field(description="The worker that runs or ran the latest attempt.")
    cancel_requested: bool
    reason: Reason | None = Field(description="Why the job failed; null if it did not.")
    error: str | None = Field(description="The reason in a sentence for people.")
    progress: ProgressView
    waits_as: Priority | None = Field(
        description="The priority at which the job waits. It is lower than `priority` for a high job beyond its "
        "owner's quota of the hour, and higher after a long wait. It is null unless the job is queued."
    )
    queue_position: int | None = Field(
        description="The place of the job in the queue, by `waits_as`, the turns of users and age: how many jobs slots "
        "of its kind are predicted to begin before it, plus one. It is null unless the job is queued. Where more than "
        "1000 jobs wait, it is an estimate, a few seconds old; otherwise it is at most half a second old."
    )
    hold: HoldView | None = Field(
        description="The quota that keeps the job waiting though its turn may have come; null in lists."
    )
    waiting: WaitingView | None = Field(
        description="Why no slot takes the job: no slot could run it, or all slots that could run it are drained or "
        "starting. It is null in the answer to a submission."
    )
    estimated_start_at: datetime | None = Field(
        description="When the job is predicted to start: after the rest of the jobs that run and the jobs before it, "
        "in turns of users, at the slots that take such jobs. It is null if nobody knows how long those take, if no "
        "slot takes the job, if the job is not queued, in lists, and in the answer to a submission."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: JobResult | None = Field(
        description="The result, whose fields depend on the kind; null until the job succeeded, and in lists also for "
        "benchmarks, accuracy, scaling and profiles."
    )


class CountView(BaseModel):
    """How many jobs a list has."""

    number: int = Field(
        description="The number of jobs, counted up to 1000; the count ends earlier where counting takes long.",
        examples=[37],
    )
    exact: bool = Field(description="Whether `number` is exact; if not, there are at least that many jobs.")


class JobPage(BaseModel):
    """A page of jobs, newest first."""

    items: list[JobView]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")
    count: CountView | None = Field(
        None, description="The number of jobs on all pages; absent unless the request asks for it."
    )


class EventView(BaseModel):
    """The data of a server-sent event, whose `id` is the event's number and whose `event` is the type."""

    type: EventType
    at: datetime
    data: dict[str, Any] = Field(
        description="The data of this type of event: the worker and the attempt, the reason, and so on."
    )


def job_json(job: Job) -> str:
    """A `JobView` as JSON."""
    head = json.dumps(
        {
            "id": str(job.id),
            "kind": job.kind,
            "parent": None if job.parent_id is None else str(job.parent_id),
            "name": job.name,
            "note": job.note,
            "batch": None if job.batch_id is None else str(job.batch_id),
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


def page_json(jobs: Iterable[Job], next_cursor: str | None, count: Tally | None = None) -> str:
    """A `JobPage` as JSON."""
    items = ", ".join(job_json(job) for job in jobs)
    counted = "" if count is None else f', "count": {json.dumps({"number": count.number, "exact": count.exact})}'
    return f'{{"items": [{items}], "next_cursor": {json.dumps(next_cursor)}{counted}}}'
