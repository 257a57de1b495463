"""Scaling studies: what is to be measured over several GPUs, and what was."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

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
from warpfold.kernels.outcome import Outcome
from warpfold.kernels.scaling.axes import Algorithm, Method, Mode, Scaling
from warpfold.kernels.scaling.study import MAX_MESSAGE, MAX_RANKS, WORD, Study

MAX_VALUES = 100
"""Of one list."""

Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]
Ranks = Annotated[int, Field(ge=1, le=MAX_RANKS, strict=True)]
Message = Annotated[int, Field(ge=WORD, le=MAX_MESSAGE, multiple_of=WORD, strict=True)]


class ScalingSpec(Task):
    """Measure how a sum scales over the GPUs of one machine, with NCCL between them.

    Each GPU makes and reduces its own part of one array, then an all-reduce adds up what the parts came to. Without
    GPUs the same study runs over processes and threads of the CPU, and the result says so. What a machine cannot run
    (more ranks than it has, more data than fits) is skipped with the reason.
    """

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
    sizes: Listed[Size] = Field((), max_length=MAX_VALUES, description="strong scaling: elements of whole arrays")
    sizes_per_rank: Listed[Size] = Field(
        (), max_length=MAX_VALUES, description="weak scaling: elements of each rank's part"
    )
    messages: Listed[Message] = Field((), max_length=MAX_VALUES, description="bytes of bare all-reduces")
    ranks: Listed[Ranks] = Field(
        (1, 2, 4, 8), max_length=MAX_VALUES, description="GPUs; where there are none, processes or threads"
    )
    methods: Listed[Method] = Field(
        (Method.EXACT, Method.FLOAT),
        max_length=MAX_VALUES,
        description="exact: each rank's exact state, all-reduced as integers; float: each rank's sum as one float64",
    )
    modes: Listed[Mode] = Field(
        (Mode.ONE_PROCESS, Mode.PROCESS_PER_RANK), max_length=MAX_VALUES, description="who drives the ranks"
    )
    algorithms: Listed[Algorithm] = Field(
        (Algorithm.RING, Algorithm.TREE), max_length=MAX_VALUES, description="of the all-reduce; auto lets NCCL choose"
    )
    dtype: DTypeName = Field("float32", description="of the elements: a float")
    distribution: DistributionName = Field("normal", description="of the elements")
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=16, description="of the distribution")
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True)
    samples: int = Field(30, ge=3, le=10_000, strict=True, description="runs of each point")
    time_limit_s: float = Field(
        5.0, gt=0, le=3600, strict=True, description="of sampling one point; at least 3 runs are made"
    )
    backend: BackendName = Field("auto", description="auto: all GPUs of a machine, else one, else the CPU")

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
