"""Where the time of a job went."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen

StageName = Literal["read", "decode", "copy", "reduce"]


class StageTime(Frozen):
    """How long a stage kept its threads busy, and how fast it was."""

    seconds: float = Field(
        description="The time of all threads of the stage, divided by their number. Stages overlap: their sum "
        "is not the time of the job."
    )
    bytes: int = Field(description="The bytes of the elements that passed the stage, as they are in memory.")
    gb_per_s: float | None = Field(description="Bytes a second, in 1e9; null for a stage that took no time.")

    @classmethod
    def of(cls, seconds: float, nbytes: int) -> Self:
        return cls(seconds=seconds, bytes=nbytes, gb_per_s=nbytes / seconds / 1e9 if seconds > 0 else None)


TIMINGS_EXAMPLE: JsonDict = {
    "queued_ms": 5.865,
    "prepare_ms": 0.0,
    "load_ms": 0.034,
    "kernel_ms": 0.137,
    "total_ms": 0.989,
    "stages": {"reduce": {"seconds": 0.000137, "bytes": 12, "gb_per_s": 0.0000876}},
    "bound": "reduce",
}
"""The times in the examples of results."""


class Timings(Frozen):
    """How long the parts of a job took, in milliseconds, and its stages."""

    queued_ms: float = Field(
        description="The time from acceptance until the slot begins the job, also where the slot still warms up, "
        "measures its rates or runs an earlier job."
    )
    prepare_ms: float = Field(
        0.0,
        description="The time of compiling and loading kernels, and functions that read files or make elements, which "
        "the slot had not run before. No other part includes it: load_ms, kernel_ms and the stages stand still "
        "meanwhile. It is 0 if the slot had run all.",
    )
    load_ms: float = Field(description="The time of reading or generating the data and moving it to the device.")
    kernel_ms: float = Field(description="The time of the reduction itself; on a GPU it is device time, by events.")
    total_ms: float = Field(description="The time from the start to the result, in the worker.")
    stages: Mapping[StageName, StageTime] = Field(
        default_factory=dict,
        description="The stages that the job had, as far as they can be told apart. `read`: reading elements that lie "
        "in a file as they are in memory, or making generated ones. `decode`: reading and decoding by the library of a "
        "file's format; of a source of the type `upload`, reading and the wait for its sender. `copy`: the way to the "
        "GPU, in device time, or copying elements of the host's memory into pinned memory, if that took longer. "
        "`reduce`: the reduction itself, on a GPU in device time.",
    )
    bound: StageName | None = Field(
        None,
        description="The stage that took longest, and so bounds the whole; null where that cannot be told. A wait for "
        "the sender of an upload counts as `decode`.",
    )


class StudyTimings(Frozen):
    """How long the parts of a job with many points took, in milliseconds."""

    queued_ms: float = Field(description="The time from acceptance until the slot begins the job.")
    total_ms: float = Field(description="The time from the start to the result, in the worker.")


_LEAST_BYTES = 1 << 20


def bound_in_words(timings: Mapping[str, Any]) -> str:
    """The stage that bounds a job, by the JSON of its `timings`: "bound by decode, 1.23 GB/s". Empty where that is not
    known, and of less than a MiB, whose speed says nothing."""
    stages, bound = timings.get("stages"), timings.get("bound")
    stage = stages.get(bound) if isinstance(stages, Mapping) else None
    if not isinstance(stage, Mapping) or stage.get("bytes", 0) < _LEAST_BYTES or not stage.get("gb_per_s"):
        return ""
    return f"bound by {bound}, {stage['gb_per_s']:.3g} GB/s"
