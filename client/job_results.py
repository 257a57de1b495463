"""The results of jobs. Fields that are not named here are attributes, too, and part of `model_dump()`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, GetPydanticSchema
from pydantic_core import core_schema

from warpfold.client import html
from warpfold.client.answer import Answer, Input, Timings
from warpfold.client.group_table import GroupbyResult, MergeResult
from warpfold.contract.artefact import Artefact
from warpfold.contract.exact_forms import FractionText
from warpfold.contract.json_value import ComplexHex, JsonComplex, JsonValue
from warpfold.contract.time_view import TimeView
from warpfold.contract.wording import number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpfold.kernels.lowering.iso8601 import TimeValue
    from warpfold.kernels.ops import Value


class Placement(Answer):
    """Where the service sent a job with the backend auto, why, the bytes that it counted, and seconds predicted."""

    backend: str
    slot: str
    reason: str
    bytes: int | None = None
    predicted: dict[str, float] = Field(default_factory=dict)


def in_words(value: "Value | complex | None", decimal: str | None, time: "TimeValue | TimeView | None") -> str:
    """A value as it is printed: a decimal in full, and an instant or a duration in ISO 8601."""
    return "null" if value is None else decimal or (repr(value) if time is None else time.iso)


class ReduceResult(Answer):
    """The value of a reduction, exactly in `hex` too; `state` is the accumulator in base64, for `Client.merge`.
    `decimal` is the exact value of a column of decimals in full, `fraction` a mean of them or of integers exactly, and
    `time` has that of instants and durations in words. A value is None where a null propagates. `notice` says what to
    know about how the elements were read, such as chunks that were not in a file."""

    value: JsonValue | JsonComplex | None
    hex: str | ComplexHex | None
    dtype: str
    count: int
    op: str
    strategy: str
    correctly_rounded: bool
    backend: str
    device: dict[str, Any]
    timings: Timings
    provenance: dict[str, Any] = Field(default_factory=dict)
    state: str | None
    decimal: str | None = None
    fraction: FractionText | None = None
    time: TimeView | None = None
    nulls: int = 0
    notice: str | None = None
    input: Input | None = None
    placement: Placement | None = None

    @property
    def words(self) -> str:
        """The value as it is printed."""
        return in_words(self.value, self.decimal, self.time)

    def __repr__(self) -> str:
        of = f"{self.op} of {number_of('element', self.count)} as {self.dtype}"
        return f"<ReduceResult {of}: {self.words}, {self.strategy}>"

    def _repr_html_(self) -> str:
        rounded = "correctly rounded" if self.correctly_rounded else "not correctly rounded"
        return html.properties(
            f"{self.op} of {number_of('element', self.count)}",
            [
                ("value", repr(self.value)),
                ("decimal", self.decimal),
                ("fraction", None if self.fraction is None else str(self.fraction)),
                ("time", None if self.time is None else self.time.iso),
                ("hex", None if self.hex is None else str(self.hex)),
                ("dtype", self.dtype),
                ("strategy", f"{self.strategy}, {rounded}"),
                ("notice", self.notice),
                ("device", self.device.get("name")),
                ("prepare", f"{self.timings.prepare_ms:.3f} ms" if self.timings.prepare_ms else None),
                ("kernel", f"{self.timings.kernel_ms:.3f} ms"),
            ],
        )


class ReduceArrayResult(Answer):
    """The values of a reduction along axes or by segments, in C order of `shape`, with their `counts`; a missing value
    is None. Very many are stored instead (`artefact`): `Client.array` downloads them. Decimals and times have words."""

    shape: tuple[int, ...]
    values: tuple[JsonValue | None, ...] | None
    hex: tuple[str | None, ...] | None
    dtype: str
    count: int
    counts: tuple[int, ...] | None
    decimal: tuple[str | None, ...] | None = None
    fraction: tuple[FractionText | None, ...] | None = None
    time: tuple[TimeView | None, ...] | None = None
    artefact: Artefact | None = None
    op: str
    strategy: str
    kernel: str
    correctly_rounded: bool
    backend: str
    device: dict[str, Any]
    timings: Timings
    provenance: dict[str, Any] = Field(default_factory=dict)
    nulls: int = 0
    notice: str | None = None
    input: Input | None = None
    placement: Placement | None = None

    def to_numpy(self) -> "NDArray[Any]":
        """The values, masked where one is missing; decimals, and integers that 64 bits hold not, are Python's."""
        from warpfold.client.value_arrays import meant_from

        return meant_from(self.values, self.shape, self.dtype, self.decimal, self.time)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "NDArray[Any]":
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return (
            f"<ReduceArrayResult {self.op} of {number_of('element', self.count)} as {self.dtype}, shape {self.shape}>"
        )

    def _repr_html_(self) -> str:
        return html.properties(
            f"{self.op} of {number_of('element', self.count)}",
            [
                ("shape", " × ".join(map(str, self.shape)) or "one value"),
                ("dtype", self.dtype),
                ("strategy", f"{self.strategy}, {self.kernel}"),
                ("device", self.device.get("name")),
                ("kernel", f"{self.timings.kernel_ms:.3f} ms"),
            ],
        )


class BenchmarkResult(Answer):
    """How many cases a benchmark measured; its points are `Client.results(job_id=…)`. Ceilings in 10⁹ bytes/s."""

    cases: int
    measured: int
    skipped: int
    failed: int
    suspect: int
    ceiling_gbps: float | None
    peak_gbps: float | None


class ClusterResult(Answer):
    """The answer of a puzzle: float32 numbers, as text and as hex floats too. `model`: no cluster computed it."""

    puzzle: str
    values: tuple[float | str, ...]
    texts: tuple[str, ...]
    hex: tuple[str, ...]
    model: bool
    why_model: str | None
    same_bits_as_model: bool


class ScalingResult(Answer):
    """How a sum scales over GPUs: arrays in `points`, bare all-reduces in `messages`, each with the fields that
    `docs/scaling.md` lists. `note` says what stood in for GPUs, if anything did."""

    dtype: str
    note: str | None
    available: int
    points: tuple[dict[str, Any], ...]
    messages: tuple[dict[str, Any], ...]
    measured: int
    skipped: int
    failed: int
    suspect: int


class ProfileResult(Answer):
    """The resources that kernels take of a GPU of `arch`. `note` names figures that need a GPU."""

    arch: str
    note: str | None
    points: tuple[dict[str, Any], ...]
    measured: int
    skipped: int
    failed: int


class AccuracyResult(Answer):
    """How far methods are from the truth, by points (docs/accuracy.md). `exceeded` counts errors beyond their bound."""

    points: tuple[dict[str, Any], ...]
    measured: int
    skipped: int
    failed: int
    exceeded: int


class ThreeNumbersResult(Answer):
    """Three numbers added in all `orders`, each with its `expression`, `value` and errors, and their true sum."""

    dtype: str
    a: JsonValue
    b: JsonValue
    c: JsonValue
    exact: JsonValue
    exact_hex: str
    orders: tuple[dict[str, Any], ...]
    distinct_values: int


class OtherResult(Answer):
    """The result of another kind of job."""


def _read(value: Any) -> Any:
    """The result `value` as one of the class all of whose required fields it has. The other classes are not built."""
    if isinstance(value, BaseModel):
        return value
    classes = _NEEDED.items() if isinstance(value, dict) else ()
    return next((kind for kind, needed in classes if needed <= value.keys()), OtherResult).model_validate(value)


_NEEDED: Mapping[type[Answer], frozenset[str]] = MappingProxyType(
    {
        result: frozenset(name for name, field in result.model_fields.items() if field.is_required())
        for result in (
            ReduceResult,
            ReduceArrayResult,
            BenchmarkResult,
            ClusterResult,
            ScalingResult,
            ProfileResult,
            AccuracyResult,
            ThreeNumbersResult,
            GroupbyResult,
            MergeResult,
        )
    }
)


Result = Annotated[
    ReduceResult
    | ReduceArrayResult
    | BenchmarkResult
    | ClusterResult
    | ScalingResult
    | ProfileResult
    | AccuracyResult
    | ThreeNumbersResult
    | GroupbyResult
    | MergeResult
    | OtherResult,
    GetPydanticSchema(lambda _source, _handler: core_schema.no_info_plain_validator_function(_read)),
]
"""The types of results, which their fields tell apart."""
