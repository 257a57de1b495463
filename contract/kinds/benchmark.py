"""Benchmarks: what is to be measured, and how much of it was. The points themselves are rows of measurements."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from warpfold.contract.fields import (
    MAX_ELEMENTS,
    BackendName,
    DistributionName,
    DTypeName,
    Listed,
    OpName,
    Parameter,
    StrategyName,
)
from warpfold.contract.frozen import Frozen
from warpfold.contract.kinds.spec import LeftOut, Task, moved_from, up_to
from warpfold.contract.needs import ANY
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import lists, span
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.bench import Axes, Cache, Rule
from warpfold.kernels.bench.axes import check_axis
from warpfold.kernels.bench.data import Data
from warpfold.kernels.catalog import strategies, strategy_names
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, op_named
from warpfold.kernels.strategy import AUTO

MAX_VALUES = 1000
"""Of one axis; their product is bounded by `kernels.bench.MAX_CASES`."""


def _measured(strategy: str) -> str:
    if strategy == AUTO:
        raise InvalidInput("name the strategies to measure; 'auto' is not a strategy")
    return strategy


def _of_one_array(op: str) -> str:
    if op_named(op).sources > 1:
        raise InvalidInput(f"{op} takes two arrays, and a benchmark has one")
    return op


def _offer_measured(schema: JsonDict) -> None:
    schema["enum"] = [name for name in strategy_names() if name != AUTO]


MeasuredStrategy = Annotated[StrategyName, AfterValidator(_measured), Field(json_schema_extra=_offer_measured)]
OpOfOneArray = Annotated[
    OpName,
    AfterValidator(_of_one_array),
    Field(json_schema_extra={"enum": [op.name for op in OPS.values() if op.sources == 1]}),
]
Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]


class BenchmarkSpec(Task):
    """Measure every strategy on every op, dtype, size and state of the caches: the product of these lists. If `devices`
    are named, measure on every device.

    A case that a device cannot run is skipped with the reason: the strategy does not compute it, is not installed, or
    the data are too large. A case that goes wrong fails with the reason. The benchmark then goes on.
    """

    timed: ClassVar[bool] = True
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "benchmark",
                    "strategies": ["exact", "numpy"],
                    "ops": ["sum"],
                    "dtypes": ["float32"],
                    "sizes": [1000, 1000000],
                    "caches": ["cold", "hot"],
                    "time_limit_s": 2.0,
                }
            ]
        }
    )

    kind: Literal["benchmark"]
    strategies: Listed[MeasuredStrategy] = Field(
        max_length=MAX_VALUES, description="Strategies to measure. `/v1/strategies` lists them; auto is none of them."
    )
    ops: Listed[OpOfOneArray] = Field(
        ("sum",), max_length=MAX_VALUES, description="Ops to measure. They take one array."
    )
    dtypes: Listed[DTypeName] = Field(("float32",), max_length=MAX_VALUES, description="Element types of the arrays.")
    sizes: Listed[Size] = Field(max_length=MAX_VALUES, description="The numbers of elements.")
    caches: Listed[Cache] = Field(
        (Cache.COLD, Cache.HOT),
        description="`cold` caches are flushed before every run; `hot` caches are as the run before left them.",
    )
    backend: BackendName = Field("auto", description="`auto` takes any device that knows all of the strategies.")
    devices: Listed[Literal["cpu", "cuda"]] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="The devices to measure on, in place of `backend`: each gets a child job with the strategies "
        "that it knows.",
    )
    distribution: DistributionName | None = Field(
        None,
        description="The distribution of the data. Null means N(0, 1); for integers it means whole numbers from "
        "−100 (0 if the dtype is unsigned) to 100.",
    )
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, max_length=16, description="The parameters of the distribution."
    )
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True, description="Seed of the data.")
    target_rse: float = Field(
        0.005, gt=0, lt=1, strict=True, description="The relative standard error of the mean at which sampling ends."
    )
    min_samples: int = Field(
        20, ge=2, le=100_000, strict=True, description="Fewest runs of a case, if the time limit allows them."
    )
    max_samples: int = Field(10_000, ge=2, le=100_000, strict=True, description="Most runs of a case.")
    time_limit_s: float = Field(
        5.0,
        gt=0,
        le=3600,
        strict=True,
        description="How long one case may be sampled; a case that reaches this limit is flagged `unconverged`.",
    )

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        axes = self.axes()  # checks their lengths and their product
        if self.distribution is None and self.parameters:
            raise InvalidInput("parameters need a distribution, and the spec names none", "parameters")
        for dtype in axes.dtypes:
            self.data().source(dtype, max(axes.sizes))
        self.rule()
        if self.devices is not None:
            self._check_devices(self.devices)
            return self
        known = self.backends()
        if not known:
            apart = ", ".join(
                f"{device} knows {', '.join(self._known_on(device)) or 'none'}" for device in ("cpu", "cuda")
            )
            raise InvalidInput(
                f"no device knows all of these strategies ({apart}): name both in `devices`", "strategies"
            )
        if self.backend not in ("auto", *known):
            raise InvalidInput(f"these strategies run on {' and '.join(known)}, not on {self.backend}", "backend")
        return self

    def _check_devices(self, devices: tuple[str, ...]) -> None:
        check_axis("devices", devices)
        if self.backend != "auto":
            raise InvalidInput("names one device, and `devices` name several: leave one of them out", "backend")
        for device in devices:
            if not self._known_on(device):
                raise InvalidInput(f"none of the strategies runs on {device}", "devices")

    def _known_on(self, device: str) -> tuple[str, ...]:
        names = {row.name for row in strategies() if row.backend == device}
        return tuple(name for name in self.strategies if name in names)

    def parts(self) -> Sequence[tuple[str, Self]]:
        """A benchmark for each of the devices, by the name of the device; none where no devices are named."""
        return tuple(
            (device, self.model_copy(update={"devices": None, "backend": device, "strategies": self._known_on(device)}))
            for device in self.devices or ()
        )

    def axes(self) -> Axes:
        """The lists as the engine takes them."""
        return Axes(self.strategies, self.ops, self.dtypes, self.sizes, self.caches)

    def rule(self) -> Rule:
        """When a case has been sampled enough."""
        return Rule(self.target_rse, self.min_samples, self.max_samples, self.time_limit_s)

    def data(self) -> Data:
        """What is reduced."""
        return Data(self.distribution, self.parameters, self.seed)

    def backends(self) -> tuple[str, ...]:
        """The backends that have every one of the strategies."""
        named = [{row.backend for row in strategies() if row.name == name} for name in self.strategies]
        return tuple(sorted(set.intersection(*named)))

    def needs(self) -> str:
        if self.backend != "auto":
            return self.backend
        able = self.backends()
        return able[0] if len(able) == 1 else ANY

    def data_seed(self) -> int:
        return self.seed

    def moved(self, backend: BackendName) -> Mapping[str, Any]:
        if backend == "auto":
            return moved_from(self.backend, backend)
        kept = self._known_on(backend)
        if not kept or self.backend not in ("auto", backend):
            where = "" if self.backend == "auto" else f" on {self.backend}"
            raise LeftOut(f"it measures {', '.join(self.strategies)}{where}")
        return {"backend": backend, "strategies": kept}

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        return {"sizes": up_to(self.sizes, max_n)}

    def hurried(self, time_limit_s: float) -> Mapping[str, Any]:
        return {"time_limit_s": min(self.time_limit_s, time_limit_s)}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        return *lists(stored, "ops", "dtypes"), span(stored.get("sizes")), *lists(stored, "strategies")


class BenchmarkResult(Frozen):
    """The numbers of cases that a benchmark measured, skipped and failed, and the read speed of its device. Each case
    is a row of `/v1/results?job_id=…`."""

    cases: int
    measured: int
    skipped: int = Field(
        description="How many cases were not claimed, not installed, or too large; the row says which."
    )
    failed: int = Field(
        description="How many cases did not compile, crashed, or gave a wrong value; the row says which."
    )
    suspect: int = Field(
        description="How many of the measured cases are faster than physics allows; summaries leave them out."
    )
    ceiling_gbps: float | None = Field(
        description="The read speed that was measured as the device's ceiling, in 10⁹ bytes a second."
    )
    peak_gbps: float | None = Field(
        description="Memory clock × bus width, in 10⁹ bytes per second. Null if the device does not report them."
    )
    backend: Literal["cpu", "cuda"]
    device: DeviceView
    timings: StudyTimings
    provenance: Provenance
