"""Reductions to many values: which elements make which value, and how a source gets a shape."""

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from warpfold.contract.artefact import MOST_STORED
from warpfold.contract.fields import MAX_ELEMENTS, Listed
from warpfold.contract.frozen import Frozen
from warpfold.contract.unions import said_as
from warpfold.contract.windows import WindowSpec, window_in_words
from warpfold.kernels.catalog import finished_on_gpu, grouped_backends, refused_on_gpu, rolling_backends
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op
from warpfold.kernels.ops.operands import check_states
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.rolling import Layout, Rolling

MOST_RESULTS = 10_000
"""Values that stand in a result. More are stored in files beside it."""

MOST_AXES = 64

Axis = (
    Annotated[StrictInt, Field(ge=-MOST_AXES, lt=MOST_AXES)]
    | Annotated[str, StringConstraints(min_length=1, max_length=256, strict=True)]
)
Axes = int | str | tuple[int | str, ...]
AxisField = Annotated[
    Axis | Annotated[tuple[Axis, ...], Field(min_length=1, max_length=MOST_AXES)] | None,
    said_as("Should be the number or the name of an axis, or a list of at least one"),
]
Offset = Annotated[StrictInt, Field(ge=0, le=MAX_ELEMENTS)]
Length = Annotated[StrictInt, Field(ge=0, le=MAX_ELEMENTS)]
ShapeField = Annotated[
    tuple[Length, ...] | None,
    Field(
        min_length=1,
        max_length=MOST_AXES,
        exclude_if=lambda shape: shape is None,
        description="The lengths of the axes of the array that the elements are, in C order; if it is left out, the "
        "array has one axis.",
    ),
]


StatesField = Annotated[
    StrictBool,
    Field(
        exclude_if=lambda states: not states,
        description="Whether the exact state of each value is stored, too, in a table that `/v1/states/merge` takes. "
        "Ops that add nothing have no exact state.",
    ),
]


class SegmentsSpec(Frozen):
    """Segments of the elements, which are taken in C order. Each segment has a value. Give `offsets` or a `length`."""

    offsets: Listed[Offset] | None = Field(
        None,
        min_length=2,
        max_length=MOST_RESULTS + 1,
        description="Segment i has the elements offsets[i] to offsets[i + 1] − 1, as in compressed sparse rows: for n "
        "segments give n + 1 offsets, none less than the one before it. Equal offsets make an empty segment.",
    )
    length: int | None = Field(
        None,
        ge=1,
        le=MAX_ELEMENTS,
        strict=True,
        description="The number of elements of a segment; the last segment has the elements that are left.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.offsets is None) == (self.length is None):
            raise InvalidInput("segments need offsets or a length, and not both", "segments")
        self.grouping().check(None)
        return self

    def grouping(self) -> Segments:
        """The segments as kernels take them."""
        return Segments(self.offsets, self.length)


def check_shape(shape: tuple[int, ...] | None, count: int) -> None:
    """Raise InvalidInput naming "source.shape" unless an array of `shape` has `count` elements."""
    if shape is not None and prod(shape) != count:
        raise InvalidInput(f"an array of this shape has {prod(shape):,} elements, not {count:,}", "source.shape")


def shape_in_words(shape: tuple[int, ...] | None) -> str:
    """The shape in words that follow the elements; empty without a shape."""
    return "" if shape is None else f" of shape {' × '.join(map(str, shape))}"


def check_named(axis: Axes | None, shape: tuple[int, ...] | None) -> None:
    """Raise InvalidInput where an axis is called by a name, and the shape is known: no file gives it names."""
    if shape is not None and has_names(axis):
        raise InvalidInput("these elements have no names of dimensions: name the number of an axis", "axis")


def numbered(axis: Axes | None, dimensions: Sequence[str]) -> int | tuple[int, ...]:
    """The numbers of axes, some of which are called by the names of dimensions. Raises InvalidInput naming "axis"."""
    assert axis is not None, "an axis has a name"
    if not isinstance(axis, tuple):
        return _number_of(axis, dimensions)
    return tuple(_number_of(each, dimensions) for each in axis)


def _number_of(axis: int | str, dimensions: Sequence[str]) -> int:
    if isinstance(axis, int):
        return axis
    if dimensions.count(axis) != 1:
        listed = ", ".join(repr(name[:64]) for name in dimensions[:MOST_AXES] if name) or "no name"
        known = "several axes of the name" if axis in dimensions else "no axis"
        raise InvalidInput(f"the array has {known} {axis[:64]!r}; its axes have the names {listed}", "axis")
    return dimensions.index(axis)


def has_names(axis: Axes | None) -> bool:
    """Whether one of the axes is called by the name of its dimension."""
    return any(isinstance(each, str) for each in (axis if isinstance(axis, tuple) else (axis,)))


def grouping_of(
    axis: Axes | None, keepdims: bool, segments: SegmentsSpec | None, window: WindowSpec | None
) -> Layout | None:
    """The grouping, which says which elements make which value; None where all elements make one value. Raises
    InvalidInput where these fields do not go together. Until a file is open, named axes are counted from the first."""
    if axis is not None and segments is not None:
        raise InvalidInput("segments and an axis cannot be combined", "segments")
    if keepdims and axis is None:
        raise InvalidInput("keepdims needs an axis", "keepdims")
    lines: Grouping | None = None if segments is None else segments.grouping()
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        numbers = tuple(each for each in axes if isinstance(each, int))
        lines = AlongAxes(tuple(range(len(axes))) if has_names(axis) else numbers, keepdims)
    return lines if window is None else window.within(lines)


def check_results(grouping: Layout, shape: tuple[int, ...], op: Op | None = None) -> tuple[int, ...]:
    """The shape of the values for an array of `shape`, of an op that may have several for each group. Raises
    InvalidInput naming the field that is at fault: an axis that is not there, an offset outside of the array, or more
    values than a result may have."""
    result_shape = grouping.result_shape(shape) if op is None else op.shape_of(grouping.result_shape(shape))
    if prod(result_shape) > MOST_STORED:
        raise InvalidInput(
            f"the result would have {prod(result_shape):,} values, and a stored result has at most {MOST_STORED:,}",
            field_of(grouping),
        )
    return result_shape


def check_held(op: Op, grouping: Layout, shape: tuple[int, ...], dtype: DType, most_bytes: int) -> None:
    """Raise InvalidInput naming the field that is at fault where the values of `op` of elements of `dtype` are stored
    and are more bytes than a user may hold."""
    count, result = prod(op.shape_of(grouping.result_shape(shape))), op.result_dtype(dtype)
    nbytes = count * (DTYPES[result].itemsize if result in DTYPES else 8)
    if count > MOST_RESULTS and nbytes > most_bytes:
        raise InvalidInput(
            f"the result would have {nbytes:,} bytes, and a user may hold {most_bytes:,}", field_of(grouping)
        )


def field_of(grouping: Layout) -> str:
    """The field of a spec that says how many values there are."""
    if isinstance(grouping, AlongAxes):
        return "q" if grouping.axes is None else "axis"
    return "segments" if isinstance(grouping, Segments) else "window"


def words_of(stored: Any) -> str:
    """The fields of a stored spec that say which elements make which value, in words."""
    lines, windows = _lines_in_words(stored), window_in_words(stored.get("window"))
    return f"{windows}, {lines}" if windows and lines else windows or lines


def _lines_in_words(stored: Any) -> str:
    match stored:
        case {"axis": int(axis) | str(axis)}:
            return f"axis {axis}"
        case {"axis": [*axes]}:
            return f"axes {', '.join(map(str, axes))}"
        case {"segments": {"length": int(length)}}:
            return f"segments of {length:,}"
        case {"segments": {"offsets": [*offsets]}}:
            return f"{len(offsets) - 1:,} segments"
    return ""


LARGE_ON_GPU = 1 << 24
"""Elements that are made on a GPU from which on it may reduce them to many values without being asked to."""


def serves_a_gpu(grouping: Grouping | None, shape: tuple[int, ...] | None, made: int) -> bool:
    """Whether a GPU may reduce `made` elements that it makes itself to many values without being asked to: they are
    many, and the axes lie side by side."""
    if made < LARGE_ON_GPU:
        return False
    if not isinstance(grouping, AlongAxes):
        return True
    return shape is not None and len(grouping.runs(shape)) <= 2


def check_states_of(op: Op, grouping: Layout | None) -> None:
    """Raise InvalidInput naming "states" unless exact states of the values can be made."""
    if grouping is None:
        raise InvalidInput("needs an axis or segments: a single value has its `state` in any case", "states")
    check_states(op)


def backends_of_many(
    op: Op, dtype: DType | None, grouping: Layout, shape: tuple[int, ...] | None, made: int | None, *, on_gpus: bool
) -> tuple[str, ...]:
    """The backends that reduce elements of `dtype` to many values; None for the dtype of a file. `made` is how many
    elements the device makes itself, None where it reads them. Unless `on_gpus` asks for GPUs, they get only what they
    make and finish themselves, and no windows."""
    if isinstance(grouping, Rolling):
        return rolling_backends(op) if on_gpus else ("cpu",)
    unasked = made is None or not serves_a_gpu(grouping, shape, made) or not finished_on_gpu(op, dtype)
    return ("cpu",) if unasked and not on_gpus else grouped_backends(op, dtype)


def check_gang(op: Op, dtype: DType | None, grouping: Grouping | None, able: tuple[str, ...]) -> None:
    """Raise InvalidInput where all GPUs of a machine together do not reduce this, which the backends `able` do."""
    if grouping is None:
        raise InvalidInput("all GPUs together reduce to many values: name an axis or segments, or give cuda", "backend")
    if "cuda" not in able:
        raise InvalidInput(refused_on_gpu(op, dtype), "backend")
