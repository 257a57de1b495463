"""The base of the service's answers, the times of a job, and the files that it read."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from warpfold.contract.dialect_view import DialectView


class Answer(BaseModel):
    """The base of every model of an answer."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def __str__(self) -> str:
        return repr(self)


class StageTime(Answer):
    """How long a stage kept its threads busy, and its speed in GB/s, None for a stage that took no time."""

    seconds: float
    bytes: int
    gb_per_s: float | None


class Timings(Answer):
    """Milliseconds: waiting in the queue, compiling and loading kernels (0 where the slot had run them before), loading
    or making the data, the reduction itself, and the job in all. `stages` (read, decode, copy, reduce) overlap; `bound`
    is the longest of them, None where that cannot be told."""

    queued_ms: float
    prepare_ms: float = 0.0
    load_ms: float
    kernel_ms: float
    total_ms: float
    stages: dict[str, StageTime] = {}
    bound: str | None = None

    @property
    def words(self) -> str:
        """How long the reduction took, and what was compiled before it."""
        first = f" after {self.prepare_ms:.0f} ms for a first run's kernels" if self.prepare_ms >= 1 else ""
        return f"{self.kernel_ms:.3f} ms{first}"


class Input(Answer):
    """The files and objects that a reduction read. They have a SHA-256 if the request asked for it."""

    count: int
    bytes_read: int
    objects: list[dict[str, Any]] = Field(default_factory=list)
    files: list[dict[str, Any]] = Field(default_factory=list)
    fingerprint: str | None = None
    null_words: tuple[str, ...] | None = None
    dialects: tuple[DialectView, ...] = ()
