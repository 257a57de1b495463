"""Jobs and measured points as rows of the dashboard's tables."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from warpfold.app.auth.access_tokens import Principal
from warpfold.app.auth.scopes import Scope
from warpfold.app.batches.repository import Batch
from warpfold.app.batches.views import progress_of
from warpfold.app.dashboard.values import answer_in_words, in_brief
from warpfold.app.jobs.store import Job
from warpfold.app.jobs.workers import Waiting
from warpfold.app.results.repository import Measured
from warpfold.app.results.views import MeasurementView
from warpfold.contract.jobs import summary_of
from warpfold.contract.states import Status

_MOST_LETTERS = 200
_LONGEST_ANSWER = 400


def _shortened(line: str) -> str:
    """A line without its middle if it is long. A long line has long paths, which end with the name of a file."""
    half = _MOST_LETTERS // 2
    return line if len(line) <= _MOST_LETTERS else f"{line[:half].rstrip()} … {line[-half:].lstrip()}"


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. A running job has a `percent` if its total is known, and a job that ran and ended has a `took_ms`. A job
    whose result can be said in a line has an `answer`, and the answer `in_brief`."""

    id: UUID
    kind: str
    status: str
    summary: str
    answer: str | None
    in_brief: str | None
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
    batch_id: UUID | None
    cancelling: bool
    may_cancel: bool
    may_change: bool
    name: str | None
    note: str | None

    @classmethod
    def of(cls, job: Job, visitor: Principal) -> "JobRow":
        running = job.status is Status.RUNNING
        ended = job.started_at is not None and job.finished_at is not None
        answer = None if job.result is None else answer_in_words(job.result)
        return cls(
            id=job.id,
            kind=job.kind,
            status=job.status.value,
            summary=_shortened(summary_of(job.kind, json.loads(job.spec))),
            answer=None if answer is None else answer[:_LONGEST_ANSWER],
            in_brief=None if answer is None else in_brief(answer),
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
            batch_id=job.batch_id,
            cancelling=running and job.cancel_requested_at is not None,
            may_cancel=may_cancel(job, visitor),
            may_change=may_change(job, visitor),
            name=job.name,
            note=job.note,
        )


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch: how many jobs it has, how many of them have ended, and how many are in each state. A batch that has
    ended has a `took_ms` if a job of it has run."""

    id: UUID
    kind: Literal["batch"]
    status: str
    name: str
    owner: str
    tags: Mapping[str, str]
    count: int
    done: int
    percent: int | None
    counts: Mapping[str, int]
    created_at: datetime
    started_at: datetime | None
    took_ms: float | None
    cancelling: bool
    may_cancel: bool

    @classmethod
    def of(cls, batch: Batch, visitor: Principal) -> "BatchRow":
        ended = batch.status.terminal
        took_ms = None
        if ended and batch.started_at is not None and batch.finished_at is not None:
            took_ms = (batch.finished_at - batch.started_at).total_seconds() * 1e3
        return cls(
            id=batch.id,
            kind="batch",
            status=batch.status.value,
            name=batch.name,
            owner=batch.owner,
            tags=batch.tags,
            count=batch.count,
            done=batch.done,
            percent=None if ended else 100 * batch.done // batch.count,
            counts=progress_of(batch).model_dump(include={status.value for status in Status}),
            created_at=batch.created_at,
            started_at=None if ended else batch.started_at,
            took_ms=took_ms,
            cancelling=batch.cancel_requested and not ended,
            may_cancel=may_cancel(batch, visitor),
        )


def row_of(listed: Job | Batch, visitor: Principal) -> JobRow | BatchRow:
    """The row of a list in which a batch is one row."""
    return BatchRow.of(listed, visitor) if isinstance(listed, Batch) else JobRow.of(listed, visitor)


def stamp_of(listed: Job | Batch) -> object:
    """Everything in a row that can change, for entity tags."""
    return listed if isinstance(listed, Batch) else (listed.id, listed.version, listed.queue_position)


def may_cancel(job: Job | Batch, visitor: Principal) -> bool:
    """Whether `job` has not ended, and the visitor may cancel it."""
    return not job.status.terminal and may_change(job, visitor)


def may_change(job: Job | Batch, visitor: Principal) -> bool:
    """Whether the visitor may do something with `job` that only its owner and admins may."""
    return (job.owner_id == visitor.id or visitor.is_admin) and visitor.may(Scope.MANAGE)


@dataclass(frozen=True, slots=True)
class PointRow:
    """A measured point. `interval` is half the width of the median's interval of confidence, in percent
    of the median."""

    id: int
    job_id: UUID
    op: str
    dtype: str
    strategy: str
    device: str
    size: str
    cache: str | None
    outcome: str
    reason: str | None
    kernel_ms: float | None
    interval: float | None
    gb_per_s: float | None
    percent_of_ceiling: float | None
    relative_error: float | None
    samples: int
    flags: list[str]


def rows_of(points: Iterable[Measured]) -> list[PointRow]:
    """A row for each point, in the same order."""
    return [_row(MeasurementView.of(point)) for point in points]


def _row(point: MeasurementView) -> PointRow:
    interval = None
    if point.low_ms is not None and point.high_ms is not None and point.kernel_ms:
        interval = 50 * (point.high_ms - point.low_ms) / point.kernel_ms
    return PointRow(
        id=point.id,
        job_id=point.job_id,
        op=point.op,
        dtype=point.dtype,
        strategy=point.strategy,
        device=point.device,
        size=point.size_in_words(point.n),
        cache=point.cache,
        outcome=point.outcome,
        reason=point.reason,
        kernel_ms=point.kernel_ms,
        interval=interval,
        gb_per_s=point.gb_per_s,
        percent_of_ceiling=point.percent_of_ceiling,
        relative_error=point.relative_error,
        samples=point.samples,
        flags=point.flags,
    )
