"""Reductions: which elements to reduce and how, and the values that came out."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, StrictBool, model_validator

from warpfold.contract import op_parameters as of_op
from warpfold.contract.artefact import Artefact
from warpfold.contract.beside import (
    KeysField,
    OtherField,
    OverField,
    WeightingField,
    WeightsField,
    as_beside,
    check_beside,
    check_beside_window,
    check_weights,
)
from warpfold.contract.brief_reduction import BriefReduceSpec
from warpfold.contract.exact_forms import DecimalField, DecimalsField, FractionField, FractionsField
from warpfold.contract.fields import OpName, ReduceBackendName, StrategyName
from warpfold.contract.folders import Folders
from warpfold.contract.frozen import Frozen
from warpfold.contract.groupings import (
    MOST_RESULTS,
    AxisField,
    SegmentsSpec,
    StatesField,
    backends_of_many,
    check_gang,
    check_named,
    check_results,
    check_states_of,
    grouping_of,
    has_names,
    numbered,
    words_of,
)
from warpfold.contract.inputs import FingerprintField, InputField, NoticeField
from warpfold.contract.json_value import ComplexHex, JsonComplex, JsonValue
from warpfold.contract.kinds.spec import Task, check_states_of_nulls, moved_from
from warpfold.contract.needs import ANY, DASK, GANG
from warpfold.contract.partitions import PartitionsField, SpreadField, check_partitioned
from warpfold.contract.placement import PlacementField, Work
from warpfold.contract.provenance import DeviceView, Provenance
from warpfold.contract.reduction_examples import ARRAY_EXAMPLE, REDUCE_EXAMPLE, REDUCE_SPECS
from warpfold.contract.sources import TAGGED_FIELDS, Source, summary_of_source
from warpfold.contract.time_view import TimeView
from warpfold.contract.timings import Timings
from warpfold.contract.windows import WindowField, check_windows
from warpfold.kernels.catalog import NOT_MANY_ON_GPU, backends_for, backends_of_any, refused_on_gpu, resolve_grouped
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, Op, Parameters, Value
from warpfold.kernels.ops.operands import check, check_arity, check_counts, check_freedom
from warpfold.kernels.ops.weights import Weighting
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.rolling import Layout, Rolling
from warpfold.kernels.strategy import AUTO

MOST_OF_SMALL = 10_000
"""A job over no more elements than these is small, if no file has to be opened first."""


class ReduceSpec(Task):
    """Reduce one array, or for `dot` two, to one value; or along axes or by segments to an array of values."""

    model_config = ConfigDict(json_schema_extra={"examples": [*REDUCE_SPECS]})

    kind: Literal["reduce"]
    op: OpName = Field("sum", description="Op that reduces the elements. `/v1/ops` lists the ops.")
    strategy: StrategyName = Field(
        AUTO,
        description="Strategy that computes the op; auto lets the service choose. `/v1/strategies` lists all of them.",
    )
    backend: ReduceBackendName = Field(
        "auto",
        description="Backend of the slot; auto takes the CPU or GPU slot that is predicted to end the job first, of "
        "those that know the strategy. gang is all GPUs of a machine together, for reductions along axes and by "
        "segments. dask reduces partitions on the workers of a Dask cluster.",
    )
    nan_policy: NanPolicy = Field(NanPolicy.PROPAGATE, description="What to do with NaN elements of float data.")
    source: Source
    other: OtherField = None
    weights: WeightsField = None
    weighting: WeightingField = Weighting.FREQUENCY
    ddof: of_op.DdofField = 0
    q: of_op.QuantilesField = None
    method: of_op.MethodField = None
    n: of_op.PlaceField = None
    k: of_op.PickedField = None
    bins: of_op.BinsField = None
    range: of_op.RangeField = None
    axis: AxisField = Field(
        None,
        exclude_if=lambda axis: axis is None,
        description="The axis along which elements are reduced, or several; a negative one counts from the last. In "
        "HDF5, NetCDF-4 and Zarr it may also be the name of a dimension, such as time. The "
        f"result is an array with the other axes. GPU slots compute every op but {NOT_MANY_ON_GPU}.",
    )
    keepdims: StrictBool = Field(
        False,
        exclude_if=lambda kept: not kept,
        description="Whether the reduced axes stay in the result's shape, with length 1.",
    )
    segments: SegmentsSpec | None = Field(
        None,
        exclude_if=lambda segments: segments is None,
        description="Segments of the elements, each of which is reduced to a value. GPU slots compute every op but "
        f"{NOT_MANY_ON_GPU}.",
    )
    window: WindowField = None
    over: OverField = None
    keys: KeysField = None
    states: StatesField = False
    fingerprint: FingerprintField = False
    partitions: PartitionsField = None
    digits: of_op.DigitsField = None

    def row(self) -> Op:
        """The op with its parameters. Raises InvalidInput naming a parameter."""
        return of_op.op_with_parameters(self)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Check what the op takes, so far as that is known without opening files: the worker checks the rest."""
        op = self.row()
        check_arity(op, other=self.other is not None, ddof=self.ddof)
        check_beside_window(self.window, self.over, self.keys, self.segments if self.axis is None else self.axis)
        if self.window is not None:
            check_windows(op, self.backend, {"weights": self.weights is not None, "states": self.states})
        self._be_alike()
        dtype, count = self.source.known_dtype, self.source.known_count
        other = None if self.other is None else self.other.known_dtype
        if dtype is not None and other is not None:
            check(op, dtype, other, self.ddof)
        others = None if self.other is None else self.other.known_count
        if count is not None and others is not None:
            check_counts(op, count, others)
        grouping = self.grouping()
        check_weights(op, self.source, self.weights, self.weighting)
        if self.weights is not None:
            check_beside(strategy=self.strategy, of_dask=self.backend == DASK, states=self.states)
        if grouping is not None:
            self._be_grouped(grouping)
        elif count and self.weights is None:
            check_freedom(op, count, self.ddof)
        refusing = {"states": self.states, "a window": self.window is not None, "weights": self.weights is not None}
        of_op.check_digits((op,), self.digits, refusing, dtype)
        if self.states:
            check_states_of(op, grouping)
            check_states_of_nulls(self.sources())
        return self

    def grouping(self) -> Layout | None:
        """Which elements make which value; None where all make one. A list of values is an array along all axes."""
        grouping = grouping_of(self.axis, self.keepdims, self.segments, self.window)
        return AlongAxes(None) if grouping is None and self.row().listed else grouping

    def numbered(self, folders: Folders) -> Self:
        """The same reduction by the numbers of its axes. Raises InvalidInput naming "axis", and as `source.open`."""
        named = has_names(self.axis)
        return self.model_copy(update={"axis": numbered(self.axis, self.source.dimensions(folders))}) if named else self

    def in_place(self) -> bool:
        """Whether every element is needed in its place, so that no null can be left out."""
        op, beside = self.row(), self.other is not None or self.weights is not None
        return op.places or beside or any(part is not None for part in (self.axis, self.segments, self.window))

    def _be_grouped(self, grouping: Layout) -> None:
        """Check what a reduction to many values needs. The worker knows the shapes of files, and checks them."""
        shape = self.source.known_shape
        check_named(self.axis, shape)
        if shape is not None:
            check_results(grouping, shape, self.row())
        other = None if self.other is None else self.other.known_shape
        if shape is not None and other is not None and isinstance(grouping, AlongAxes) and shape != other:
            raise InvalidInput(f"{self.op} needs two sources of one shape, not {shape} and {other}", "other")
        resolve_grouped(self.row(), self.source.known_dtype, self.strategy)

    def _be_alike(self) -> None:
        """Integers that were written without a dtype are float64 beside an array of floats."""
        if self.other is not None:
            source, other = self.source, self.other
            object.__setattr__(self, "source", as_beside(source, other, "source"))  # frozen for everybody else
            object.__setattr__(self, "other", as_beside(other, source, "other"))

    @model_validator(mode="after")
    def _claimed(self) -> Self:
        able = self.backends()
        op, dtype, grouping = self.row(), self.source.known_dtype, self.grouping()
        of_dask = check_partitioned(op, self.strategy, self.partitions, of_dask=self.backend == DASK)
        if of_dask or isinstance(grouping, Rolling):
            return self
        if self.backend in ("cuda", GANG) and grouping is not None and self.weights is not None:
            raise InvalidInput("many values with weights need the backend cpu or auto", "backend")
        if self.backend == GANG:
            check_gang(op, dtype, grouping, able)
        if self.backend not in ("auto", GANG, *able) and grouping is not None:
            raise InvalidInput(refused_on_gpu(op, dtype), "backend")
        if self.backend not in ("auto", GANG, *able):
            raise InvalidInput(
                f"strategy {self.strategy!r} computes {self.op}{'' if dtype is None else f' of {dtype.name}'} on "
                f"{' and '.join(able)}, not on {self.backend}",
                "backend",
            )
        return self

    def backends(self) -> tuple[str, ...]:
        """The backends that can run it, so far as that is known without looking at files. Raises InvalidInput where no
        backend can."""
        op = self.row()
        if (grouping := self.grouping()) is not None:
            if self.weights is not None:
                return ("cpu",)
            dtype, shape = self.source.known_dtype, self.source.known_shape
            made = self.source.known_count if dtype is not None and self.work().lies == "made" else None
            names = backends_of_many(op, dtype, grouping, shape, made, on_gpus=self.backend in ("cuda", GANG))
            # The host puts states together, so that a GPU gives them only where it is asked to.
            return ("cpu",) if self.states and self.backend == "auto" else names
        both = (self.source, self.other)
        known = [dtype for part in both if part is not None and (dtype := part.known_dtype) is not None]
        if known:
            return backends_for(op, known[0], self.strategy, known[-1] if op.sources == 2 else None)
        return backends_of_any(op, self.strategy)

    def needs(self) -> str:
        if self.backend != "auto":
            return self.backend
        able = self.backends()
        return able[0] if len(able) == 1 else ANY

    def sources(self) -> Iterator[tuple[str, Source]]:
        named = ((field, getattr(self, field)) for field in ("source", "other", "weights", "over", "keys"))
        return ((field, source) for field, source in named if source is not None)

    def small(self) -> bool:
        counts = [source.known_count for _, source in self.sources()]
        grouping, shape = self.grouping(), self.source.known_shape
        if self.states or self.backend in (GANG, DASK):
            return False
        if grouping and shape and prod(self.row().shape_of(grouping.result_shape(shape))) > MOST_RESULTS:
            return False
        return all(count is not None and count <= MOST_OF_SMALL for count in counts)

    def work(self, folders: Folders | None = None) -> Work:
        return Work.over((source.lies, source.bytes_at_hand(folders)) for _, source in self.sources())

    def data_seed(self) -> int | None:
        return self.source.generator_seed

    def moved(self, backend: ReduceBackendName) -> Mapping[str, Any]:
        return moved_from(self.backend, backend)

    def shortened(self, max_n: int) -> Mapping[str, Any]:
        return {field: source.shortened(max_n).model_dump() for field, source in self.sources()}

    def brief(self) -> BriefReduceSpec | None:
        briefs = {field: source.brief() for field, source in self.sources()}
        if all(briefs[field] is source for field, source in self.sources()):
            return None
        rest = self.model_dump(exclude={*TAGGED_FIELDS, "webhook"})
        return BriefReduceSpec.model_validate({**rest, "other": None, **briefs})

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> Sequence[str]:
        other, weights = stored.get("other"), stored.get("weights")
        return (
            f"{of_op.op_in_words(stored)} of {summary_of_source(stored.get('source'))}",
            summary_of_source(other) if other else "",
            f"weights {summary_of_source(weights)}" if weights else "",
            words_of(stored),
        )

    def description(self) -> str:
        arrays = " with ".join(part.identity() for part in (self.source, self.other) if part is not None)
        arrays += "" if self.weights is None else f", {self.weighting.value} weights {self.weights.identity()}"
        freedom = f", ddof {self.ddof}" if self.row().ddof else ""
        nan = "" if self.nan_policy == NanPolicy.PROPAGATE else f", NaN: {self.nan_policy.value}"
        groups = words_of(self.model_dump(mode="json", include={"axis", "segments", "window"}))
        freedom += f", {groups}" if groups else ""
        asked = of_op.op_in_words(self.model_dump(mode="json", include={"op", *Parameters.names()}))
        return f"{asked} of {arrays}{freedom}; strategy {self.strategy}, backend {self.backend}{nan}"


class ReduceResult(Frozen):
    """The value of a reduction, how it was computed, and where."""

    model_config = ConfigDict(json_schema_extra={"examples": [REDUCE_EXAMPLE]})

    value: JsonValue | JsonComplex | None = Field(
        description="The value; a complex value has two parts. It is null where a null is among the elements and the "
        "`null_policy` of a source is propagate."
    )
    hex: str | ComplexHex | None = Field(
        description="The value, or each part of a complex value, as Python's float.hex prints it; null for integers "
        "and bools, and where `value` is null."
    )
    decimal: DecimalField = None
    fraction: FractionField = None
    time: TimeView | None = Field(
        None,
        exclude_if=lambda time: time is None,
        description="The value of a column of timestamps, dates or durations in words; `value` is its integer.",
    )
    dtype: str = Field(
        description='The dtype of the value; "integer" is an integer of any size, and times have the name that Arrow '
        "gives their type."
    )
    count: int = Field(description="How many elements the value was computed from.")
    nulls: int = Field(
        0, description="How many nulls were left out, or made the value null. They are counted apart from NaNs."
    )
    notice: NoticeField = None
    input: InputField = None
    op: str
    strategy: str = Field(description="The strategy that ran, which is never `auto`.")
    correctly_rounded: bool = Field(description="Whether the value is the true one, rounded once.")
    backend: Literal["cpu", "cuda", "dask"]
    device: DeviceView
    placement: PlacementField = None
    timings: Timings
    provenance: Provenance
    partitions: SpreadField = None
    state: str | None = Field(description="The bytes of the exact accumulator in base64, for /v1/states/merge.")

    @property
    def number(self) -> Value:
        """The value of a reduction of real numbers, that no null made null."""
        assert self.value is not None, "no null is among the elements"
        assert not isinstance(self.value, complex), "the elements are real"
        return self.value


class ReduceArrayResult(Frozen):
    """The values of a reduction along axes or by segments, how they were computed, and where."""

    model_config = ConfigDict(json_schema_extra={"examples": [ARRAY_EXAMPLE]})

    shape: tuple[int, ...] = Field(description="The lengths of the result's axes. By segments it has one axis.")
    values: tuple[JsonValue | None, ...] | None = Field(
        description="The values in C order of `shape`. A null stands where the op has no value, such as the "
        "maximum of no elements, and where a null among the elements propagates. "
        f"More than {MOST_RESULTS:,} values are all in the `artefact`; then this is null."
    )
    hex: tuple[str | None, ...] | None = Field(
        description="The values as Python's float.hex prints them; null for integers and bools, and where `values` is "
        "null."
    )
    decimal: DecimalsField = None
    fraction: FractionsField = None
    time: tuple[TimeView | None, ...] | None = Field(
        None,
        exclude_if=lambda time: time is None,
        description="The values of timestamps, dates or durations in words; `values` are their integers.",
    )
    dtype: str = Field(
        description='The dtype of the values; "integer" is an integer of any size, and times have the name that Arrow '
        "gives their type."
    )
    count: int = Field(description="How many elements all values together were computed from.")
    counts: tuple[int, ...] | None = Field(
        description="The number of elements that each value was computed from; null where `values` is null."
    )
    artefact: Artefact | None = Field(
        None,
        exclude_if=lambda artefact: artefact is None,
        description="The stored values, if they are too many for the result or the request asked for `states`, which "
        "are the part `states`.",
    )
    nulls: int = Field(
        0, description="How many nulls made values null. Where nulls do not propagate, a null is an error here."
    )
    notice: NoticeField = None
    input: InputField = None
    op: str
    strategy: str = Field(description="The strategy that ran, which is never `auto`.")
    kernel: str = Field(
        description="The compiled loops that the shape chose: `rows` and `long_rows` for neighbouring elements of one "
        "value, `columns` for neighbouring values, `turned_columns` for columns that are copied into rows first, "
        "`segments`, `rolling` for windows, `ranks` for the quantiles of all elements, or `numpy`."
    )
    correctly_rounded: bool = Field(description="Whether every value is the true one, rounded once.")
    backend: Literal["cpu", "cuda", "dask"]
    device: DeviceView
    placement: PlacementField = None
    timings: Timings
    provenance: Provenance
    partitions: SpreadField = None
