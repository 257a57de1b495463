"""The result of a kernel profile, as stored and as served."""

from typing import Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.outcome import Outcome


class KernelCounters(Frozen):
    """What Nsight Compute (`ncu`) counted in one run of a kernel."""

    duration_us: float | None
    dram_percent: float | None = Field(description="of the memory's peak throughput")
    warp_efficiency_percent: float | None = Field(description="threads active a warp instruction, of 32")
    achieved_occupancy_percent: float | None = Field(description="warps active a multiprocessor, of the most there can")


class KernelProfile(Frozen):
    """One kernel as it is launched. Null is what cannot be known without the GPU."""

    name: str
    registers: int = Field(description="a thread")
    static_shared: int = Field(description="bytes a block")
    dynamic_shared: int | None = Field(description="bytes a block")
    stack: int = Field(description="bytes a thread")
    spill_stores: int = Field(description="bytes a thread")
    spill_loads: int = Field(description="bytes a thread")
    threads: int | None = Field(description="a block")
    blocks: int | None = Field(description="of the launch")
    blocks_per_multiprocessor: int | None = Field(description="resident at a time, by the occupancy API")
    occupancy_percent: float | None = Field(description="resident warps of the most a multiprocessor holds")
    waves: float | None = Field(description="blocks ÷ (blocks_per_multiprocessor × multiprocessors)")
    counters: KernelCounters | None


class ProfilePoint(Frozen):
    """The kernels that a strategy launches for one op, dtype and size, in their order."""

    strategy: str
    op: str
    dtype: str
    n: int | None = Field(description="elements; null where no GPU is there to launch for")
    outcome: Outcome
    reason: str | None = Field(description="why it was skipped or failed")
    kernels: tuple[KernelProfile, ...]
    counters_unavailable: str | None = Field(description="why there are no counters; null if there are, or none asked")


class ProfileResult(Frozen):
    """What the kernels of strategies take of a GPU, and how well they use it."""

    arch: str = Field(description='whose machine code it is: "sm_90"')
    note: str | None = Field(description="what is unknown without a GPU; null on one")
    points: tuple[ProfilePoint, ...]
    measured: int
    skipped: int
    failed: int
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
