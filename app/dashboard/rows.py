"""A job as the dashboard's lists show it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import Waiting
from warpfold.contract.jobs import summary_of
from warpfold.contract.states import Status


@dataclass(frozen=True, slots=True)
class JobRow:
    """One row. `percent` is that of a running job whose end is known; `took_ms` that of one that ran and ended."""

    id: UUID
    kind: str
    status: str
    summary: str
    owner: str
    tags: Mapping[str, str]
    reason: str | None
    error: str | None
    percent: int | None
    queue_position: int | None
    waiting: Waiting | None
    created_at: datetime
    started_at: datetime | None
    took_ms: float | None
    worker: str | None
    cancelling: bool
    may_cancel: bool

    @classmethod
    def of(cls, job: Job, visitor: Principal) -> "JobRow":
        running = job.status is Status.RUNNING
        ended = job.started_at is not None and job.finished_at is not None
        return cls(
            id=job.id,
            kind=job.kind,
            status=job.status.value,
            summary=summary_of(job.kind, json.loads(job.spec)),
            owner=job.owner,
            tags=job.tags,
            reason=job.reason,
            error=job.error,
            percent=min(100, 100 * job.progress_done // job.progress_total) if running and job.progress_total else None,
            queue_position=job.queue_position,
            waiting=job.waiting,
            created_at=job.created_at,
            started_at=job.started_at if running else None,
            took_ms=(job.finished_at - job.started_at).total_seconds() * 1e3
            if ended and job.finished_at is not None and job.started_at is not None
            else None,
            worker=job.worker,
            cancelling=running and job.cancel_requested_at is not None,
            may_cancel=may_cancel(job, visitor),
        )


def may_cancel(job: Job, visitor: Principal) -> bool:
    """Whether the visitor may ask for the end of `job`, and it has not ended."""
    own = job.owner_id == visitor.id and not visitor.only_reads
    return not job.status.terminal and (own or visitor.is_admin)
