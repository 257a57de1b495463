"""Where a reduction ends first: what it has to move, how fast slots are, and the time that both predict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen

Lies = Literal["made", "host", "request"]

UNKNOWN_BYTES = 1 << 30
"""The bytes for which a file counts whose length nobody knows before it is opened."""

MOST_PREDICTED = 16
"""A result names no more slots than these with their predicted times."""

_GIGA = 1e9


class RatesView(Frozen):
    """How fast a slot is, as it was measured when its worker first started on this device."""

    read_gb_per_s: float = Field(
        gt=0,
        description="The speed from a file in the page cache to its sum, in 1e9 bytes a second; on a GPU with the way "
        "to the device.",
    )
    copy_gb_per_s: float | None = Field(
        gt=0,
        description="The speed of the bus, from pinned memory to the device; null for a CPU, which copies nothing.",
    )
    reduce_gb_per_s: float = Field(
        gt=0, description="The speed of the exact sum of float64 in the memory of the device."
    )
    generate_gb_per_s: float = Field(
        gt=0, description="The speed of making normally distributed float64 and adding them up."
    )
    overhead_s: float = Field(ge=0, description="The time that a small reduction takes, in seconds.")

    @classmethod
    def stored(cls, rates: object) -> Self | None:
        """The rates of a worker's row; None where the row has no rates, or has those of another version."""
        try:
            return None if rates is None else cls.model_validate(rates)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many seconds a reduction takes a slot, without any wait; which rate bounds it, and what that is."""

    seconds: float
    bound: str
    gb_per_s: float


class Work(Frozen):
    """What a reduction has to move. `lies` tells where its elements are at first: made on the device, in files or
    beyond, or in the request. `bytes` are those of the elements or of their files, None where nobody knows before a
    file is opened."""

    lies: Lies
    bytes: int | None

    @classmethod
    def over(cls, sources: Iterable[tuple[Lies, int | None]]) -> Self:
        """The work of sources, each by where it lies and its bytes."""
        parts = tuple(sources)
        places = {lies for lies, _ in parts}
        known = [size for _, size in parts if size is not None]
        lies: Lies = "host" if "host" in places else "made" if "made" in places else "request"
        return cls(lies=lies, bytes=sum(known) if len(known) == len(parts) else None)

    @property
    def assumed_bytes(self) -> int:
        """The bytes that predictions go by."""
        return UNKNOWN_BYTES if self.bytes is None else self.bytes

    def predicted(self, rates: RatesView) -> Prediction:
        """How long the reduction takes a slot of these rates."""
        passed = {"reduce": rates.reduce_gb_per_s}
        if self.lies == "made":
            passed["generate"] = rates.generate_gb_per_s
        else:
            if self.lies == "host":
                passed["read"] = rates.read_gb_per_s
            if rates.copy_gb_per_s is not None:
                passed["copy"] = rates.copy_gb_per_s
        bound = min(passed, key=lambda stage: passed[stage])
        return Prediction(rates.overhead_s + self.assumed_bytes / passed[bound] / _GIGA, bound, passed[bound])


PLACEMENT_EXAMPLE: JsonDict = {
    "backend": "cpu",
    "slot": "gpu1:cpu",
    "reason": "The job is small, so it went to the slot with the most room.",
    "bytes": None,
    "predicted": {},
}
"""The placement in the examples of results."""


class Placement(Frozen):
    """Where the service sent a job whose request left the backend to it, and why."""

    backend: Literal["cpu", "cuda"]
    slot: str = Field(description="The worker that the job was sent to, as `host:slot`.")
    reason: str = Field(description="Why the job was sent there, in a sentence.")
    bytes: int | None = Field(
        None,
        description="The bytes that the predictions counted for the job: the bytes of elements that the request has or "
        "the slot generates, the size of a dataset or of a file, or 2**30 where no size was known when the job was "
        "accepted. It is null where no prediction was made.",
    )
    predicted: Mapping[str, float] = Field(
        default_factory=dict,
        description="The seconds in which each slot was predicted to end the job, with the job's wait there. If there "
        f"are more than {MOST_PREDICTED} slots, only the fastest are named. It is empty where no prediction was made.",
    )

    @classmethod
    def for_only(cls, backend: Literal["cpu", "cuda"], slot: str) -> Self:
        """The placement of a job that slots of one backend alone can run."""
        called = {"cpu": "CPU", "cuda": "GPU"}[backend]
        return cls(backend=backend, slot=slot, reason=f"Only {called} slots compute this reduction.")

    @classmethod
    def for_room(cls, backend: Literal["cpu", "cuda"], slot: str, *, small: bool) -> Self:
        """The placement of a job that is `small`, or for which no prediction was made."""
        why = "The job is small" if small else "The rates of the slots were not measured yet"
        return cls(backend=backend, slot=slot, reason=f"{why}, so it went to the slot with the most room.")


PlacementField = Annotated[
    Placement | None,
    Field(description="Why the job was sent to this slot; null where its request named the backend."),
]
