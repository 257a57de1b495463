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


class BenchmarkResult(_Answer):
    """How many cases a benchmark measured; its points are at `/v1/results?job_id=…`. Ceilings in 10⁹ bytes a second."""

    cases: int
    measured: int
    skipped: int
    failed: int
    suspect: int
    ceiling_gbps: float | None
    peak_gbps: float | None


class ClusterResult(_Answer):
    """The answer of a puzzle: float32 numbers, as text and as hex floats too. `model`: no cluster computed it."""

    puzzle: str
    values: tuple[float | str, ...]
    texts: tuple[str, ...]
    hex: tuple[str, ...]
    model: bool
    why_model: str | None
    same_bits_as_model: bool


Result = ReduceResult | BenchmarkResult | ClusterResult
"""By the job's kind; the fields that each has tell them apart."""


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
    result: Result | None

    @property
    def ended(self) -> bool:
        return self.status in ("succeeded", "failed", "cancelled")
