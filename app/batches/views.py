"""Answers about batches."""

import hashlib
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from warpfold.app.batches.repository import Batch
from warpfold.contract.batches import BatchProgress
from warpfold.contract.states import Status

_EXAMPLE: dict[str, Any] = {
    "id": "0b9f3f0e-52a5-4ae4-9dc6-52b7f3f3fd0c",
    "name": "seeds",
    "owner": "ann",
    "tags": {"course": "p05"},
    "status": "running",
    "count": 6,
    "progress": {"total": 6, "done": 3, "queued": 1, "running": 2, "succeeded": 3, "failed": 0, "cancelled": 0},
    "cancel_requested": False,
    "created_at": "2026-11-22T12:00:00.120000+00:00",
    "started_at": "2026-11-22T12:00:00.125000+00:00",
    "finished_at": None,
}


class BatchView(BaseModel):
    """A batch."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: UUID
    name: str = Field(description="A name for people; empty if none was given.")
    owner: str
    tags: dict[str, str] = Field(description="The tags that the request gave to all jobs.")
    status: Status = Field(
        description="The status, which follows from the jobs. It is `queued` until the first job has started or "
        "ended, then `running` until the last has ended. Then it is `succeeded` if all jobs succeeded; otherwise "
        "`failed` if a job failed and nobody asked to cancel the batch, and `cancelled` if somebody asked or no job "
        "failed."
    )
    count: int = Field(description="The jobs of the batch. `GET /v1/jobs?batch=ID` lists them.")
    progress: BatchProgress
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None = Field(description="When the first job started; null before.")
    finished_at: datetime | None = Field(description="When the last job ended; null before.")


class AcceptedBatchView(BatchView):
    """A batch that a request brought, with the ids of its jobs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{**_EXAMPLE, "count": 1, "jobs": ["bad2cde1-a387-4c34-b05b-cb4651e4f880"]}],
        }
    )

    jobs: list[UUID] = Field(description="The ids of the jobs, in the order of the specs.")


class BatchPage(BaseModel):
    """A page of batches, newest first."""

    items: list[BatchView]
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")


class BatchEnd(BaseModel):
    """The data of the last event of a batch."""

    status: Status
    at: datetime
    progress: BatchProgress


def progress_of(batch: Batch) -> BatchProgress:
    """The counts of a batch."""
    counts = {status.value: getattr(batch, status.value) for status in Status}
    return BatchProgress(total=batch.count, done=batch.done, **counts)


def view_of(batch: Batch) -> BatchView:
    """A batch as the api answers with it."""
    return BatchView(
        id=batch.id,
        name=batch.name,
        owner=batch.owner,
        tags=dict(batch.tags),
        status=batch.status,
        count=batch.count,
        progress=progress_of(batch),
        cancel_requested=batch.cancel_requested,
        created_at=batch.created_at,
        started_at=batch.started_at,
        finished_at=batch.finished_at,
    )


def etag_of(batch: Batch) -> str:
    """The strong entity tag of a batch's answer in this state: it changes with everything that the answer shows."""
    shown = view_of(batch).model_dump_json()
    return f'"{batch.id.hex[-12:]}.{hashlib.sha256(shown.encode()).hexdigest()[:16]}"'


def accepted_json(batch: Batch, ids: str) -> str:
    """An `AcceptedBatchView` as JSON. `ids` is the JSON of the ids with commas between: ten thousand of them are not
    read on the way."""
    return f'{view_of(batch).model_dump_json()[:-1]},"jobs":[{ids}]}}'
