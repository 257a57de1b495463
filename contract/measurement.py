"""One measured point. Its fields are declared here once.

A worker reports points, a table stores them, the api shows and filters them, and the client reads them: each derives
its columns from these fields. The fields stand in the order in which the api shows them.
"""

from dataclasses import dataclass
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from warpfold.kernels.studies.shapes import SHAPE_FIELDS, CaseShape

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Stored:
    """How a field is stored: the most characters of a text (of each text in a list), or whether an integer needs 64
    bits. `filter`: the api lists the points that have one value of it."""

    width: int | None = None
    big: bool = False
    filter: bool = False


class PointShape(BaseModel):
    """The shape of a point that has many values; all of it is null where a whole array was reduced to one."""

    rows: Annotated[
        int | None, Stored(big=True, filter=True), Field(description="The rows of a matrix or of a table.")
    ] = None
    columns: Annotated[int | None, Stored(big=True, filter=True), Field(description="The columns of a matrix.")] = None
    axis: Annotated[
        int | None, Stored(filter=True), Field(description="The axis along which a matrix was reduced.")
    ] = None
    segments: Annotated[
        int | None,
        Stored(big=True, filter=True),
        Field(description="The mean length of the segments into which the array was cut."),
    ] = None
    groups: Annotated[
        int | None, Stored(big=True, filter=True), Field(description="The number of groups of a table.")
    ] = None
    key_order: Annotated[
        str | None, Stored(8, filter=True), Field(description="How the keys of a table lay: `random` or `sorted`.")
    ] = None

    def size_in_words(self, n: int) -> str:
        """The shape, or the number `n` of elements of a whole array: "1,024 × 8, axis 1", "1,000,000"."""
        shape = self.shape_of(n)
        return f"{n:,}" if shape is None else str(shape)

    def shape_of(self, n: int) -> CaseShape | None:
        """The shape, of `n` elements; None of a whole array."""
        return CaseShape.of(n, {name: getattr(self, name) for name in SHAPE_FIELDS})


class PointHead(BaseModel):
    """A measured point: its place among the points, and the time that it took."""

    kind: Annotated[str, Stored(32, filter=True)]
    op: Annotated[str, Stored(32, filter=True)]
    dtype: Annotated[str, Stored(16, filter=True)]
    strategy: Annotated[str, Stored(64, filter=True)]
    backend: Annotated[str, Stored(16, filter=True)]
    device: Annotated[str, Stored(128, filter=True)]
    device_uuid: Annotated[str | None, Stored(64)] = None
    driver: Annotated[str | None, Stored(32, filter=True)] = None
    host: Annotated[str | None, Stored(64, filter=True)] = None
    n: Annotated[int, Stored(big=True), Field(description="The number of elements.")]
    bytes: Annotated[
        int,
        Stored(big=True),
        Field(
            description="The bytes of the elements that one run reads, as the strategy declares them. By shape, they "
            "include the offsets or keys and the values that the run writes."
        ),
    ]
    distribution: Annotated[str | None, Stored(32), Field(description="The distribution of the data.")] = None
    cache: Annotated[
        str | None,
        Stored(8, filter=True),
        Field(description="A `cold` cache is flushed before every run; a `hot` cache is as the run before left it."),
    ] = None
    outcome: Annotated[
        str, Stored(16, filter=True), Field(description="The point was measured, skipped or failed.")
    ] = "measured"
    reason: Annotated[str | None, Stored(), Field(description="Why the point was skipped or failed.")] = None
    samples: Annotated[int, Stored(), Field(description="How many runs the times stand for.")]
    load_ms: Annotated[
        float | None, Stored(), Field(description="Time to load the data of a reduction, in milliseconds.")
    ] = None
    kernel_ms: Annotated[float | None, Stored(), Field(description="The median time on the device.")] = None


class PointSpeed(BaseModel):
    """The fields that follow from other fields, and are not stored."""

    gb_per_s: float | None = Field(description="`bytes` ÷ `kernel_ms`, in 10⁹ bytes per second. Null without a time.")
    percent_of_ceiling: float | None = Field(
        description="`gb_per_s` as a share of `ceiling_gbps`, the read speed that was measured on the device."
    )
    percent_of_peak: float | None = Field(
        description="`gb_per_s` as a share of the peak, which is memory clock × bus width."
    )


class PointDetails(BaseModel):
    """The further fields of a benchmark's point, and its outcome."""

    min_ms: Annotated[
        float | None, Stored(), Field(description="Shortest time of a run on the device, in milliseconds.")
    ] = None
    p95_ms: Annotated[
        float | None,
        Stored(),
        Field(description="95th percentile of the times of the runs on the device, in milliseconds."),
    ] = None
    rse: Annotated[float | None, Stored(), Field(description="The relative standard error of the mean.")] = None
    low_ms: Annotated[
        float | None, Stored(), Field(description="The lower end of the 97.5 % confidence interval of the median.")
    ] = None
    high_ms: Annotated[
        float | None, Stored(), Field(description="The upper end of the 97.5 % confidence interval of the median.")
    ] = None
    host_ms: Annotated[
        float | None,
        Stored(),
        Field(description="The median time from the call until the host knows that the device is done."),
    ] = None
    issue_ms: Annotated[
        float | None, Stored(), Field(description="The time of a run when runs are called back to back.")
    ] = None
    replay_ms: Annotated[
        float | None,
        Stored(),
        Field(description="The time of a run when the device replays a graph of runs by itself."),
    ] = None
    launches: Annotated[
        int | None, Stored(), Field(description="How many kernels a run launches, counted in the graph.")
    ] = None
    clock: Annotated[str | None, Stored(64), Field(description="How device time was taken.")] = None
    ceiling_gbps: Annotated[
        float | None,
        Stored(),
        Field(
            description="The read speed that was measured as the device's ceiling; null if other processes disturbed "
            "that, or if hot data came from a cache."
        ),
    ] = None
    peak_gbps: Annotated[
        float | None,
        Stored(),
        Field(
            description="Memory clock × bus width, in 10⁹ bytes per second. Null if the device does not report them."
        ),
    ] = None
    clock_before_mhz: Annotated[
        float | None, Stored(), Field(description="Clock of the device before the measurement, in MHz.")
    ] = None
    clock_after_mhz: Annotated[
        float | None, Stored(), Field(description="Clock of the device after the measurement, in MHz.")
    ] = None
    memory_clock_mhz: Annotated[float | None, Stored()] = None
    temperature_c: Annotated[
        float | None, Stored(), Field(description="Temperature of the device, in degrees Celsius.")
    ] = None
    power_w: Annotated[float | None, Stored(), Field(description="Power that the device takes, in watts.")] = None
    throttle: Annotated[
        list[str], Stored(32), Field(description="The reasons for which the device held its clocks down.")
    ] = []
    others: Annotated[
        float | None,
        Stored(),
        Field(
            description="How many other processes were on the GPU, or how many logical cores of a CPU others kept busy."
        ),
    ] = None
    flags: Annotated[
        list[str],
        Stored(16),
        Field(
            description="The flags of the point: any of throttled, contended, unconverged, suspect, no_ceiling and "
            "first_run."
        ),
    ] = []
    value: Annotated[
        str | None,
        Stored(),
        Field(description="The exact value that the strategy gave, as Python writes it: 1e+16, nan, inf, True."),
    ] = None
    relative_error: Annotated[float | None, Stored(), Field(description="The error against the exact value.")] = None
    distinct_values: Annotated[
        int | None,
        Stored(),
        Field(description="How many different results 8 runs gave; 1 if the strategy is deterministic."),
    ] = None
    correctly_rounded: Annotated[bool | None, Stored()] = None
    prepare_ms: Annotated[
        float | None,
        Stored(),
        Field(
            description="The time of compiling and loading kernels for a reduction, which no other time includes; 0 "
            "if all were loaded."
        ),
    ] = None


class Measurement(PointShape, PointDetails, PointHead):
    """A point as a worker reports it, and as it is stored: times in milliseconds, bandwidths in 10⁹ bytes a second.

    A field that has no meaning for the kind of job stays None. Only a measured point has times.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def shape(self) -> CaseShape | None:
        """The shape that was reduced to many values; None of a whole array."""
        return self.shape_of(self.n)

    @property
    def gb_per_s(self) -> float | None:
        return self.bytes / self.kernel_ms / 1e6 if self.kernel_ms else None

    @property
    def percent_of_ceiling(self) -> float | None:
        return _percent(self.gb_per_s, self.ceiling_gbps)

    @property
    def percent_of_peak(self) -> float | None:
        return _percent(self.gb_per_s, self.peak_gbps)


def _percent(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True)
class MeasuredField:
    """A field of Measurement: its Python type (`list` of texts), whether it may be None, and how it is stored."""

    name: str
    type: type
    nullable: bool
    default: Any
    stored: Stored


def plain_type(annotation: Any) -> type:
    """`int` of `int` and of `int | None`, `list` of `list[str]`."""
    if get_origin(annotation) is list:
        return list
    plain: type = next(kind for kind in (*get_args(annotation), annotation) if kind is not NoneType)
    return plain


def arrow_schema(shown: type[BaseModel]) -> "pyarrow.Schema":
    """The columns of tables of measurements, one for each field of the model `shown`: int64, float64, bool, timestamps
    of microseconds in UTC, lists of text, and text for all others. Raises ImportError without pyarrow."""
    import pyarrow

    text = pyarrow.string()
    types = {
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", tz="UTC"),
        list: pyarrow.list_(text),
    }
    kinds = {name: plain_type(field.annotation) for name, field in shown.model_fields.items()}
    return pyarrow.schema([(name, types.get(kind, text)) for name, kind in kinds.items()])


FIELDS: tuple[MeasuredField, ...] = tuple(
    MeasuredField(
        name,
        plain_type(field.annotation),
        NoneType in get_args(field.annotation),
        None if field.is_required() else field.get_default(),
        next(mark for mark in field.metadata if isinstance(mark, Stored)),
    )
    for name, field in Measurement.model_fields.items()
)
FILTERS: tuple[str, ...] = tuple(field.name for field in FIELDS if field.stored.filter)
"""The fields of which the api lists the points that have one value."""
