"""Benchmarks: the points to measure, and how many were. The points themselves are rows of measurements."""

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
)
from warpfold.contract.frozen import Frozen
from warpfold.contract.kinds.spec import LeftOut, Task, moved_from, up_to
from warpfold.contract.needs import ANY
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.summaries import lists, span
from warpfold.contract.timings import StudyTimings
from warpfold.kernels.bench.axes import MAX_CASES, Axes, Cache, check_axes, check_axis
from warpfold.kernels.bench.contenders import contender_names, contenders
from warpfold.kernels.bench.data import Data
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.catalog import strategies, strategy_names
from warpfold.kernels.errors import InvalidInput, unknown
from warpfold.kernels.ops import OPS, Terms, op_named, sums_of
from warpfold.kernels.strategy import AUTO
from warpfold.kernels.studies.shapes import MAX_GROUPS, By, CaseShape, KeyOrder

MAX_VALUES = 1000
"""The most values of one axis; `kernels.bench.MAX_CASES` bounds the product of all axes."""


def _measured(strategy: str) -> str:
    if strategy == AUTO:
        raise InvalidInput("name the strategies to measure; 'auto' is not a strategy")
    known = _measurable_names()
    if strategy not in known:
        raise unknown("strategy", strategy, known)
    return strategy


def _measurable_names() -> tuple[str, ...]:
    # Strategies are found in their folders, which takes a while: not at import.
    return tuple(name for name in dict.fromkeys((*strategy_names(), *contender_names())) if name != AUTO)


def _of_one_array(op: str) -> str:
    if op_named(op).sources > 1:
        raise InvalidInput(f"{op} takes two arrays, and a benchmark has one")
    if op_named(op).terms is Terms.TOTALS:
        raise InvalidInput(
            f"{op} is made of several sums, and a benchmark measures one: name {', '.join(sums_of(op_named(op)))}"
        )
    return op


def _offer_measured(schema: JsonDict) -> None:
    schema["enum"] = list(_measurable_names())


MeasuredStrategy = Annotated[str, AfterValidator(_measured), Field(json_schema_extra=_offer_measured)]
OpOfOneArray = Annotated[
    OpName,
    AfterValidator(_of_one_array),
    Field(
        json_schema_extra={"enum": [op.name for op in OPS.values() if op.sources == 1 and op.terms is not Terms.TOTALS]}
    ),
]
Size = Annotated[int, Field(ge=1, le=MAX_ELEMENTS, strict=True)]
AxisOfMatrix = Annotated[int, Field(ge=0, le=1, strict=True)]


class BenchmarkSpec(Task):
    """Measure every strategy on every op, dtype, size and state of the caches: the product of these lists. If `devices`
    are named, measure on every device.

    A size is a whole array, or a shape that is reduced to many values: `rows` and `columns` are matrices, `rows` and
    `groups` are tables grouped by a key, and `sizes` with `segments` are arrays cut into segments.

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
                },
                {
                    "kind": "benchmark",
                    "strategies": ["exact", "numpy"],
                    "rows": [1000, 10000],
                    "columns": [8, 64],
                    "axis": [0, 1],
                    "caches": ["cold"],
                    "time_limit_s": 0.5,
                },
                {
                    "kind": "benchmark",
                    "strategies": ["exact", "polars", "pyarrow"],
                    "rows": [1000000],
                    "groups": [100, 10000],
                    "key_order": ["random", "sorted"],
                    "caches": ["cold"],
                    "time_limit_s": 0.5,
                },
            ]
        }
    )

    kind: Literal["benchmark"]
    strategies: Listed[MeasuredStrategy] = Field(
        max_length=MAX_VALUES,
        description="Strategies to measure. `/v1/strategies` lists them; auto is none of them. By shape these are "
        "measured: exact and numpy on a CPU, with polars and pyarrow for tables; exact, torch, cupy and cub on a GPU.",
    )
    ops: Listed[OpOfOneArray] = Field(
        ("sum",), max_length=MAX_VALUES, description="Ops to measure. They take one array."
    )
    dtypes: Listed[DTypeName] = Field(("float32",), max_length=MAX_VALUES, description="Element types of the arrays.")
    sizes: Listed[Size] = Field(
        (), max_length=MAX_VALUES, description="The numbers of elements. They are left out where `rows` are named."
    )
    rows: Listed[Size] | None = Field(
        None,
        max_length=MAX_VALUES,
        description="The numbers of rows of matrices, with `columns`, or of tables, with `groups`.",
    )
    columns: Listed[Size] | None = Field(
        None, max_length=MAX_VALUES, description="The numbers of columns of matrices, which lie in C order."
    )
    axis: Listed[AxisOfMatrix] | None = Field(
        None,
        max_length=2,
        description="The axes along which matrices are reduced: 1 gives a value for each row, 0 one for each column. "
        "1 if left out.",
    )
    segments: Listed[Size] | None = Field(
        None,
        max_length=MAX_VALUES,
        description="Mean lengths of the segments into which arrays of `sizes` are cut. The lengths are random, with a "
        "geometric distribution, and follow from the seed.",
    )
    groups: Listed[Size] | None = Field(
        None,
        max_length=MAX_VALUES,
        description="The numbers of groups of tables. Keys are int32, drawn evenly, and follow from the seed.",
    )
    key_order: Listed[KeyOrder] | None = Field(
        None, max_length=2, description="How the keys of tables lie: random or sorted; random if left out."
    )
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
        description="The distribution of the data. If it is left out, data are N(0, 1), and integers are whole numbers "
        "from −100 (0 if the dtype is unsigned) to 100.",
    )
    parameters: dict[str, Parameter] = Field(
        default_factory=dict, max_length=16, description="The parameters of the distribution."
    )
    seed: int = Field(0, ge=0, lt=1 << 64, strict=True, description="Seed of the data.")
    target_rse: float = Field(
        0.005, gt=0, lt=1, strict=True, description="The relative standard error of the mean at which sampling ends."
    )
    min_samples: int = Field(
        20,
        ge=2,
        le=100_000,
        strict=True,
        description="The least number of runs of a case, if the time limit allows them.",
    )
    max_samples: int = Field(
        10_000, ge=2, le=100_000, strict=True, description="The greatest number of runs of a case."
    )
    time_limit_s: float = Field(
        5.0,
        gt=0,
        le=3600,
        strict=True,
        description="How long one case may be sampled; a case that reaches this limit is flagged `unconverged`.",
    )

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        self._check_shapes()
        axes = self.axes()  # checks their lengths and their product
        if self.distribution is None and self.parameters:
            raise InvalidInput("parameters need a distribution, and the spec names none", "parameters")
        for dtype in axes.dtypes:
            self.data().source(dtype, max(axes.counts()))
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

    def _check_shapes(self) -> None:
        """Raise InvalidInput naming the field that does not go with the others."""
        self._check_partners()
        lists = ("rows", "columns", "axis", "segments", "groups", "key_order")
        named = {name: values for name in lists if (values := getattr(self, name)) is not None}
        check_axes(named, MAX_CASES)
        if self.rows and self.columns and max(self.rows) * max(self.columns) > MAX_ELEMENTS:
            raise InvalidInput(f"the largest matrix has more than {MAX_ELEMENTS:,} elements", "columns")
        if self.groups and max(self.groups) > MAX_GROUPS:
            raise InvalidInput(f"a table has at most {MAX_GROUPS:,} groups", "groups")
        by = self._by()
        for number, name in enumerate(self.strategies):
            known = strategy_names() if by is None else [row.strategy for row in contenders(by)]
            if name not in known:
                what = "of whole arrays" if by is None else f"by {by}"
                raise InvalidInput(f"{name} is not measured {what}", f"strategies.{number}")

    def _check_partners(self) -> None:
        if self.rows is not None:
            if self.sizes:
                raise InvalidInput("rows say the sizes of matrices and tables: leave `sizes` out", "sizes")
            if (self.columns is None) == (self.groups is None):
                raise InvalidInput("rows need either `columns` or `groups`", "rows")
        elif not self.sizes:
            raise InvalidInput("name the sizes of arrays, or `rows` with `columns` or `groups`", "sizes")
        for name, partner in (("columns", "rows"), ("groups", "rows"), ("axis", "columns"), ("key_order", "groups")):
            if getattr(self, name) is not None and getattr(self, partner) is None:
                raise InvalidInput(f"`{name}` needs `{partner}`", name)
        if self.segments is not None and self.rows is not None:
            raise InvalidInput("segments are cut from arrays of `sizes`: leave `rows` out", "segments")

    def _by(self) -> By | None:
        """The name of the field that makes many values of a shape; None for whole arrays."""
        if self.rows is not None:
            return By.AXIS if self.columns is not None else By.KEYS
        return None if self.segments is None else By.SEGMENTS

    def shapes(self) -> tuple[int | CaseShape, ...]:
        """The numbers of elements, or the shapes."""
        match self._by():
            case By.AXIS:
                axes = self.axis or (1,)
                pairs = ((rows, columns) for rows in self.rows or () for columns in self.columns or ())
                return tuple(CaseShape.matrix(rows, columns, axis) for rows, columns in pairs for axis in axes)
            case By.KEYS:
                orders = self.key_order or (KeyOrder.RANDOM,)
                tables = ((rows, groups) for rows in self.rows or () for groups in self.groups or ())
                return tuple(CaseShape.table(rows, groups, order.value) for rows, groups in tables for order in orders)
            case By.SEGMENTS:
                return tuple(CaseShape.cut(n, mean) for n in self.sizes for mean in self.segments or ())
            case None:
                return self.sizes

    def _check_devices(self, devices: tuple[str, ...]) -> None:
        check_axis("devices", devices)
        if self.backend != "auto":
            raise InvalidInput("names one device, and `devices` name several: leave one of them out", "backend")
        for device in devices:
            if not self._known_on(device):
                raise InvalidInput(f"none of the strategies runs on {device}", "devices")

    def _known_on(self, device: str) -> tuple[str, ...]:
        return tuple(name for name in self.strategies if device in self._devices_of(name))

    def _devices_of(self, strategy: str) -> set[str]:
        by = self._by()
        if by is None:
            return {row.backend for row in strategies() if row.name == strategy}
        return {row.backend for row in contenders(by) if row.strategy == strategy}

    def parts(self) -> Sequence[tuple[str, Self]]:
        """A benchmark for each of the devices, by the name of the device; none where no devices are named."""
        return tuple(
            (device, self.model_copy(update={"devices": None, "backend": device, "strategies": self._known_on(device)}))
            for device in self.devices or ()
        )

    def axes(self) -> Axes:
        """The lists as the engine takes them."""
        return Axes(self.strategies, self.ops, self.dtypes, self.shapes(), self.caches)

    def rule(self) -> Rule:
        """When a case has been sampled enough."""
        return Rule(self.target_rse, self.min_samples, self.max_samples, self.time_limit_s)

    def data(self) -> Data:
        """The elements that are reduced."""
        return Data(self.distribution, self.parameters, self.seed)

    def backends(self) -> tuple[str, ...]:
        """The backends that have every one of the strategies."""
        return tuple(sorted(set.intersection(*map(self._devices_of, self.strategies))))

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
            raise LeftOut(f"the job measures {', '.join(self.strategies)}{where}")
        return {"backend": backend, "strategies": kept}

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        if self.rows is None:
            return {"sizes": up_to(self.sizes, max_n)}
        columns = up_to(self.columns or (), max_n)
        rows = up_to(self.rows, max(1, max_n // max(columns, default=1)))
        return {"rows": rows} | ({"columns": columns} if columns else {})

    def hurried(self, time_limit_s: float) -> Mapping[str, Any]:
        return {"time_limit_s": min(self.time_limit_s, time_limit_s)}

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        extents = (span(stored.get(name)) for name in ("sizes", "rows", "columns", "segments", "groups"))
        return *lists(stored, "ops", "dtypes"), " × ".join(filter(None, extents)), *lists(stored, "strategies")


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
