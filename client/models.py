"""What the service answers, as far as a client reads it; fields that a newer service adds are kept aside."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Progress(_Answer):
    """How far a running job is, in `unit`s; `total` is 0 until it is known."""

    done: int
    total: int
    unit: str


class Timings(_Answer):
    """Milliseconds: waiting in the queue, loading or making the data, the reduction itself, and the job in all."""

    queued_ms: float
    load_ms: float
    kernel_ms: float
    total_ms: float


class ReduceResult(_Answer):
    """The value of a reduction. `hex` is exact where `value` is a float; "nan", "inf" and "-inf" come as strings."""

    value: float | int | bool | str
    hex: str | None
    dtype: str
    count: int
    op: str
    strategy: str
    correctly_rounded: bool
    backend: str
    device: dict[str, Any]
    timings: Timings
    state: str | None


class Job(_Answer):
    """A job as the service sees it."""

    id: str
    kind: str
    status: str
    owner: str
    attempt: int
    reason: str | None
    error: str | None
    progress: Progress
    queue_position: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: ReduceResult | None

    @property
    def ended(self) -> bool:
        return self.status in ("succeeded", "failed", "cancelled")
