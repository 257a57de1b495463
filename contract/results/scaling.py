"""The result of a scaling study, as stored and as served."""

from typing import Literal

from pydantic import Field

from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.outcome import Outcome
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling


class RankTimes(Frozen):
    """One rank's median times, in milliseconds, by its own clock (events of its GPU)."""

    rank: int
    local_ms: float = Field(description="reducing its part")
    communication_ms: float = Field(description="in the all-reduce, the wait for slower ranks included")
    total_ms: float


class ScalingPoint(Frozen):
    """One array on so many ranks. Times are medians of `samples` runs, in milliseconds; null where not measured."""

    scaling: Scaling
    method: Method
    mode: Mode | None = Field(description="null for one rank, which is the baseline and communicates with nobody")
    algorithm: Algorithm | None = Field(description="null for one rank")
    ranks: int = Field(description="GPUs, or on a CPU processes or threads")
    n: int = Field(description="elements in all")
    outcome: Outcome
    reason: str | None = Field(description="why it was skipped or failed")
    samples: int
    local_ms: float | None = Field(description="until the slowest rank had reduced its part")
    communication_ms: float | None = Field(description="of the all-reduce: the rank that came last, which waits least")
    total_ms: float | None = Field(description="from the common start until the slowest rank has the sum")
    host_ms: float | None = Field(description="wall clock, from the call until the rounded value is on the host")
    baseline_ms: float | None = Field(description="total_ms of one rank: on the same array (strong), or on one part")
    speedup: float | None = Field(description="baseline ÷ total; weak: ranks × baseline ÷ total")
    efficiency: float | None = Field(description="speedup ÷ ranks")
    speedup_low: float | None = Field(description="lower end of the 95 % interval that the samples give")
    speedup_high: float | None
    gb_per_s: float | None = Field(description="bytes of the array ÷ total_ms, in 10⁹ bytes a second")
    value: JsonValue | None
    hex: str | None = Field(description="what Python's float.hex of the value prints")
    same_bits: bool | None = Field(description="as one rank gives by adding the array piece by piece")
    suspect: str | None = Field(description="why the figures are not to be believed; null if they may be")
    times: tuple[RankTimes, ...] = Field(description="of every rank")


class MessagePoint(Frozen):
    """All-reduces of one size, back to back, as nccl-tests measures them."""

    mode: Mode
    algorithm: Algorithm
    ranks: int
    bytes: int = Field(description="a rank's message: int64 numbers")
    outcome: Outcome
    reason: str | None
    samples: int = Field(description="all-reduces that were timed")
    time_us: float | None = Field(description="of one, in microseconds")
    algbw_gbps: float | None = Field(description="bytes ÷ time, in 10⁹ bytes a second")
    busbw_gbps: float | None = Field(description="algbw · 2(ranks − 1)/ranks: what each link carries")
    correct: bool | None = Field(description="every element of every rank was the sum")


class ScalingResult(Frozen):
    """How a sum scales over the GPUs of one machine, or over processes where there are none."""

    dtype: str
    distribution: str
    note: str | None = Field(description="what stands in for GPUs where there are none; null on GPUs")
    devices: tuple[DeviceView, ...] = Field(description="the GPUs, in the order of ranks; or the CPU")
    available: int = Field(description="ranks that this machine can run")
    points: tuple[ScalingPoint, ...]
    messages: tuple[MessagePoint, ...]
    measured: int
    skipped: int
    failed: int
    suspect: int = Field(description="of those measured")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
