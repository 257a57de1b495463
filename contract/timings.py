"""Where the time of a job went."""

from pydantic import Field

from warpfold.contract.frozen import Frozen


class Timings(Frozen):
    """How long the parts of a job took, in milliseconds."""

    queued_ms: float = Field(description="The time from acceptance to the start.")
    prepare_ms: float = Field(
        0.0,
        description="The time of compiling and loading kernels that the slot had not run before, which neither "
        "load_ms nor kernel_ms includes; 0 if the slot had run all.",
    )
    load_ms: float = Field(description="The time of reading or generating the data and moving it to the device.")
    kernel_ms: float = Field(description="The time of the reduction itself; on a GPU it is device time, by events.")
    total_ms: float = Field(description="The time from the start to the result, in the worker.")


class StudyTimings(Frozen):
    """How long the parts of a job with many points took, in milliseconds."""

    queued_ms: float = Field(description="The time from acceptance to the start.")
    total_ms: float = Field(description="The time from the start to the result, in the worker.")
