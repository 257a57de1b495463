"""Where the time of a job went."""

from pydantic import Field

from warpfold.contract.frozen import Frozen


class Timings(Frozen):
    """Where the time of a job went, in milliseconds."""

    queued_ms: float = Field(description="from acceptance to start")
    prepare_ms: float = Field(
        0.0,
        description="compiling and loading kernels that the slot had not run before, in neither load_ms nor kernel_ms; "
        "0 where it had run all",
    )
    load_ms: float = Field(description="reading or generating the data and moving it to the device")
    kernel_ms: float = Field(description="the reduction itself; device time by events on a GPU")
    total_ms: float = Field(description="from start to result, in the worker")


class StudyTimings(Frozen):
    """Where the time of a job of many points went, in milliseconds."""

    queued_ms: float = Field(description="from acceptance to start")
    total_ms: float = Field(description="from start to result, in the worker")
