"""Kernel profiles: which kernels are to be profiled, and what each takes of a GPU."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from warpfold.contract.fields import MAX_ELEMENTS, BackendName, DTypeName, Listed, OpName, StrategyName
from warpfold.contract.frozen import Frozen
from warpfold.contract.kinds.spec import Task, moved_from, up_to
from warpfold.contract.needs import GPU_FIRST
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import lists, span
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.bench.axes import Axes, Cache
from warpfold.kernels.catalog import strategies
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.strategy import AUTO
from warpfold.kernels.studies.outcome import Outcome

MAX_VALUES = 100
"""The most values of one list."""

Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]


class ProfileSpec(Task):
    """Find out what the kernels of strategies need of a GPU (registers, shared memory, occupancy, waves) for each op,
    dtype and size. If Nsight Compute is installed, also find out how well the kernels use the GPU.

    Without a GPU the kernels are compiled for `arch`, and the result has only what the compiler knows.
    """

    timed: ClassVar[bool] = True
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "profile",
                    "strategies": ["exact", "single_pass", "two_pass"],
                    "ops": ["sum"],
                    "dtypes": ["float32"],
                    "sizes": [1000000, 100000000],
                }
            ]
        }
    )

    kind: Literal["profile"]
    strategies: Listed[StrategyName] = Field(
        max_length=MAX_VALUES,
        description="Strategies whose kernels are Warpfold's own; the kernels of peers are not profiled.",
    )
    ops: Listed[OpName] = Field(("sum",), max_length=MAX_VALUES, description="Ops to profile.")
    dtypes: Listed[DTypeName] = Field(("float32",), max_length=MAX_VALUES, description="Element types of the arrays.")
    sizes: Listed[Size] = Field(max_length=MAX_VALUES, description="The numbers of elements.")
    arch: Literal["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"] = Field(
        "sm_90", description="The architecture to compile for where there is no GPU; a GPU has its own."
    )
    counters: bool = Field(
        True, strict=True, description="Whether each kernel is run under ncu, where ncu is installed."
    )
    backend: BackendName = Field("auto", description="`auto` takes a GPU if there is one, or else the compiler alone.")

    @model_validator(mode="after")
    def _profilable(self) -> Self:
        if AUTO in self.strategies:
            raise InvalidInput("name the strategies to profile; 'auto' is not a strategy", "strategies")
        on_gpus = {row.name for row in strategies() if row.backend == "cuda"}
        for name in self.strategies:
            if name not in on_gpus:
                raise InvalidInput(f"strategy {name!r} has no kernels: it does not run on a GPU", "strategies")
        self.axes()
        return self

    def axes(self) -> Axes:
        """The lists, checked to be bounded and without repetitions. Raises InvalidInput naming the list."""
        return Axes(self.strategies, self.ops, self.dtypes, self.sizes, (Cache.COLD,))

    def needs(self) -> str:
        return GPU_FIRST if self.backend == "auto" else self.backend

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        return {"sizes": up_to(self.sizes, max_n)}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        return *lists(stored, "ops", "dtypes"), span(stored.get("sizes")), *lists(stored, "strategies")


class KernelCounters(Frozen):
    """The counters of Nsight Compute (`ncu`) in one run of a kernel."""

    duration_us: float | None = Field(description="Duration of the kernel, in microseconds.")
    dram_percent: float | None = Field(description="The memory throughput, as a share of its peak.")
    warp_efficiency_percent: float | None = Field(description="Active threads of a warp instruction, as a share of 32.")
    achieved_occupancy_percent: float | None = Field(
        description="Active warps, as a share of the most that a multiprocessor can hold."
    )


class KernelProfile(Frozen):
    """A kernel as it is launched. Fields that cannot be known without the GPU are null."""

    name: str
    registers: int = Field(description="How many registers a thread uses.")
    static_shared: int = Field(description="The static shared memory of a block, in bytes.")
    dynamic_shared: int | None = Field(description="The dynamic shared memory of a block, in bytes.")
    stack: int = Field(description="The stack of a thread, in bytes.")
    spill_stores: int = Field(description="The bytes of the registers that a thread spills by stores.")
    spill_loads: int = Field(description="The bytes of the spilled registers that a thread loads.")
    threads: int | None = Field(description="The threads of a block.")
    blocks: int | None = Field(description="The blocks of the launch.")
    blocks_per_multiprocessor: int | None = Field(
        description="How many blocks are resident at a time, by the occupancy API."
    )
    occupancy_percent: float | None = Field(
        description="Resident warps, as a share of the most that a multiprocessor can hold."
    )
    waves: float | None = Field(
        description="Number of waves: `blocks` ÷ (`blocks_per_multiprocessor` × multiprocessors). Null without a GPU."
    )
    counters: KernelCounters | None


class ProfilePoint(Frozen):
    """The kernels that a strategy launches for one op, dtype and size, in the order of the launches."""

    strategy: str
    op: str
    dtype: str
    n: int | None = Field(description="The number of elements; null where there is no GPU to launch for.")
    outcome: Outcome
    reason: str | None = Field(description="Why the point was skipped or failed.")
    kernels: tuple[KernelProfile, ...]
    counters_unavailable: str | None = Field(
        description="Why there are no counters; null if there are counters, or nobody asked for them."
    )


class ProfileResult(Frozen):
    """What the kernels of strategies need of a GPU, and how well they use the GPU."""

    arch: str = Field(description='The architecture of the machine code, such as "sm_90".')
    note: str | None = Field(description="The figures that are unknown without a GPU; null on a GPU.")
    points: tuple[ProfilePoint, ...]
    measured: int
    skipped: int
    failed: int
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
