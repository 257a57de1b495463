"""Scaling studies: the points to measure over several GPUs, and how many were."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import (
    MAX_ELEMENTS,
    BackendName,
    DistributionName,
    DTypeName,
    Listed,
    Parameter,
)
from warpfold.contract.frozen import Frozen
from warpfold.contract.json_value import JsonValue
from warpfold.contract.kinds.spec import Task, moved_from, up_to
from warpfold.contract.needs import GANG, GANG_FIRST
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import short, span
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.bench.data import Data
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.scaling.axes import Algorithm, Carrier, Method, Mode, Scaling
from warpfold.kernels.scaling.study import MAX_MESSAGE, MAX_RANKS, WORD, Study
from warpfold.kernels.studies.outcome import Outcome

MAX_VALUES = 100
"""The most values of one list."""

Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]
Ranks = Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)]
Message = Annotated[int, Field(ge=WORD, le=MAX_MESSAGE, multiple_of=WORD, strict=True)]


class ScalingSpec(Task):
    """Measure how a sum scales over the GPUs of one machine, each with its part.

    Each GPU generates and reduces its own part of one array. Then an all-reduce adds the results of the parts: by
    stores into the other GPUs' memory, or by NCCL where a GPU has no access to that. NCCL carries bare messages.
    Without GPUs the same study runs over processes and threads of the CPU, and the result says so. A case that the
    machine cannot run (it has fewer ranks, or the data do not fit) is skipped with the reason.
    """

    timed: ClassVar[bool] = True
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "scaling",
                    "sizes": [1000000, 100000000],
                    "sizes_per_rank": [16777216],
                    "messages": [8, 4096, 1048576],
                    "ranks": [1, 2],
                    "algorithms": ["ring", "tree"],
                }
            ]
        }
    )

    kind: Literal["scaling"]
    sizes: Listed[Size] = Field(
        (), max_length=MAX_VALUES, description="The numbers of elements of whole arrays, for strong scaling."
    )
    sizes_per_rank: Listed[Size] = Field(
        (), max_length=MAX_VALUES, description="The numbers of elements of each rank's part, for weak scaling."
    )
    messages: Listed[Message] = Field((), max_length=MAX_VALUES, description="The bytes of bare all-reduces.")
    ranks: Listed[Ranks] = Field(
        (1, 2, 4, 8),
        max_length=MAX_VALUES,
        description="How many GPUs take part; where there are no GPUs, how many processes or threads.",
    )
    methods: Listed[Method] = Field(
        (Method.EXACT, Method.FLOAT),
        max_length=MAX_VALUES,
        description="`exact` all-reduces each rank's exact state as integers; `float` all-reduces each rank's sum"
        " as one float64.",
    )
    modes: Listed[Mode] = Field(
        (Mode.ONE_PROCESS, Mode.PROCESS_PER_RANK),
        max_length=MAX_VALUES,
        description="Which processes drive the ranks: one process for all, or one for each.",
    )
    algorithms: Listed[Algorithm] = Field(
        (Algorithm.RING, Algorithm.TREE),
        max_length=MAX_VALUES,
        description="The algorithms of NCCL's all-reduces, or of a CPU's; `auto` lets NCCL choose. Stores into the "
        "other GPUs' memory have none.",
    )
    dtype: DTypeName = Field("float32", description="The dtype of the elements, which is a float.")
    distribution: DistributionName = Field("normal", description="The distribution of the elements.")
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, max_length=16, description="The parameters of the distribution."
    )
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True, description="Seed of the data.")
    samples: int = Field(30, ge=3, le=10_000, strict=True, description="How often each point is run.")
    time_limit_s: float = Field(
        5.0, gt=0, le=3600, strict=True, description="How long one point may be sampled; at least 3 runs are made."
    )
    backend: BackendName = Field(
        "auto", description="`auto` takes all GPUs of a machine, or else one GPU, or else the CPU."
    )

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        self.study()
        widest = max(self.sizes_per_rank, default=0) * max(self.ranks)
        if widest > MAX_ELEMENTS:
            raise InvalidInput(f"{widest} elements in all exceed {MAX_ELEMENTS}", "sizes_per_rank")
        return self

    def study(self) -> Study:
        """The study as `kernels.scaling` takes it. Raises InvalidInput naming the field."""
        return Study(
            sizes=self.sizes,
            sizes_per_rank=self.sizes_per_rank,
            messages=self.messages,
            ranks=self.ranks,
            methods=self.methods,
            modes=self.modes,
            algorithms=self.algorithms,
            dtype=self.dtype,
            data=Data(self.distribution, self.parameters, self.seed),
            samples=self.samples,
            time_limit_s=self.time_limit_s,
        )

    def needs(self) -> str:
        return {"auto": GANG_FIRST, "cuda": GANG}.get(self.backend, self.backend)

    def data_seed(self) -> int:
        return self.seed

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        return {
            "sizes": up_to(self.sizes, max_n),
            "sizes_per_rank": up_to(self.sizes_per_rank, max_n),
            "messages": up_to(self.messages, max_n * WORD),
        }

    def hurried(self, time_limit_s: float) -> Mapping[str, Any]:
        return {"time_limit_s": min(self.time_limit_s, time_limit_s)}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        units = (("sizes", "elements"), ("sizes_per_rank", "elements a rank"), ("messages", "bytes"))
        spans = (f"{span(stored[name])} {unit}" for name, unit in units if stored.get(name))
        return *spans, f"ranks {short(stored.get('ranks'))}"


class RankTimes(Frozen):
    """The median times of one rank, in milliseconds, by the rank's own clock (events of its GPU)."""

    rank: int
    local_ms: float = Field(description="The time in which the rank reduced its part.")
    communication_ms: float = Field(description="The time in the all-reduce, which includes the wait for slower ranks.")
    total_ms: float


class ScalingPoint(Frozen):
    """The measurement of one array on a number of ranks. Times are medians of `samples` runs, in milliseconds. They are
    null if the point was not measured."""

    scaling: Scaling
    method: Method
    mode: Mode | None = Field(
        description="Which processes drive the ranks; null for one rank, which is the baseline and communicates with "
        "nobody."
    )
    algorithm: Algorithm | None = Field(
        description="The algorithm of the all-reduce, if NCCL or the CPU carries it; null for one rank."
    )
    carrier: Carrier | None = Field(
        None,
        description="What carried the sums: `peer_access`, which is one-sided stores into the other GPUs' memory, or "
        "`nccl` where a GPU has no access to that; `shared_memory` of a CPU. Null for one rank, and in older results.",
    )
    ranks: int = Field(description="How many GPUs took part, or on a CPU how many processes or threads.")
    n: int = Field(description="The number of elements of all ranks together.")
    outcome: Outcome
    reason: str | None = Field(description="Why the point was skipped or failed.")
    samples: int = Field(description="Number of runs that were timed.")
    local_ms: float | None = Field(description="The time until the slowest rank had reduced its part.")
    communication_ms: float | None = Field(
        description="The time of the all-reduce on the rank that came last, which waits least."
    )
    total_ms: float | None = Field(description="The time from the common start until the slowest rank has the sum.")
    host_ms: float | None = Field(
        description="The wall-clock time from the call until the rounded value is on the host."
    )
    baseline_ms: float | None = Field(
        description="The total_ms of one rank on the same array (strong), or on one part (weak)."
    )
    speedup: float | None = Field(
        description="`baseline_ms` ÷ `total_ms`. In weak scaling it is `ranks` × `baseline_ms` ÷ `total_ms`."
    )
    efficiency: float | None = Field(description="`speedup` ÷ `ranks`.")
    speedup_low: float | None = Field(description="The lower end of the 95 % confidence interval of `speedup`.")
    speedup_high: float | None = Field(description="Upper end of the 95 % confidence interval of `speedup`.")
    gb_per_s: float | None = Field(description="Bytes of the array ÷ `total_ms`, in 10⁹ bytes per second.")
    value: JsonValue | None = Field(description="Sum of the array.")
    hex: str | None = Field(description="The value as Python's float.hex prints it.")
    same_bits: bool | None = Field(
        description="Whether the bits are those that one rank gives by adding the array piece by piece."
    )
    suspect: str | None = Field(description="Why the figures cannot be believed; null if they can.")
    times: tuple[RankTimes, ...] = Field(description="The times of every rank.")


class MessagePoint(Frozen):
    """The measurement of all-reduces of one size, which run back to back, as in nccl-tests."""

    mode: Mode
    algorithm: Algorithm
    ranks: int
    bytes: int = Field(description="The size of a rank's message, which consists of int64 numbers.")
    outcome: Outcome
    reason: str | None = Field(description="Why the point was skipped or failed; null if it was measured.")
    samples: int = Field(description="How many all-reduces were timed.")
    time_us: float | None = Field(description="The time of one all-reduce, in microseconds.")
    algbw_gbps: float | None = Field(description="Algorithm bandwidth: `bytes` ÷ `time_us`, in 10⁹ bytes per second.")
    busbw_gbps: float | None = Field(
        description="Bus bandwidth: `algbw_gbps` · 2(ranks − 1)/ranks, which is what each link carries, in 10⁹ bytes "
        "per second."
    )
    correct: bool | None = Field(description="Whether every element of every rank was the sum.")


class ScalingResult(Frozen):
    """How a sum scales over the GPUs of one machine, or over processes if there are no GPUs."""

    dtype: str
    distribution: str
    note: str | None = Field(description="What stands in for GPUs where there are no GPUs; null on GPUs.")
    devices: tuple[DeviceView, ...] = Field(description="The GPUs in the order of ranks, or the CPU.")
    available: int = Field(description="How many ranks this machine can run.")
    points: tuple[ScalingPoint, ...]
    messages: tuple[MessagePoint, ...]
    measured: int
    skipped: int
    failed: int
    suspect: int = Field(description="How many of the measured points are suspect.")
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
