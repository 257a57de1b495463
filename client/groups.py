"""Reductions along axes and by segments, as Python asks for them and as NumPy has them."""

import operator
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from warpfold.contract.time_view import TimeView
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.lowering.iso8601 import TimeValue
from warpfold.kernels.ops import Op, Parameters, Value, op_named

_NAT = -(1 << 63)

Axis = int | str | Sequence[int | str]
Segments = int | Sequence[int] | Mapping[str, Any]
"""The length of all segments, the offsets of each, or the object of a spec."""


Rolling = int | Literal["expanding"] | Mapping[str, Any]
"""The number of rows of a window that moves along the elements, or the object of a spec."""

BESIDE_WINDOWS = ("over", "keys")
"""What a window has beside the elements, which a spec names beside the window: arrays, or columns of the same file."""

CUMULATIVE: Mapping[str, str] = MappingProxyType(
    {"cumsum": "sum", "cummin": "min", "cummax": "max", "cumcount": "count"}
)
"""What NumPy and pandas call values of all elements so far, and the op of expanding windows that they are."""


def cumulative(op: str, fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The op and the fields of a spec, of which an op such as cumsum stands for both. Raises TypeError for one with a
    window of its own."""
    if op not in CUMULATIVE:
        return op, fields
    if "window" in fields:
        raise TypeError(f"{op} is {CUMULATIVE[op]} over an expanding window, and takes no other")
    return CUMULATIVE[op], {**fields, "window": {"expanding": True}}


def fields_of(
    axis: Axis | None, keepdims: bool | None, segments: Segments | None, window: Rolling | None = None
) -> dict[str, Any]:
    """The fields of a spec that say which elements make which value; no fields if all elements make one value. Raises
    TypeError for an axis that is no integer and no name, and for offsets or rows that are not integers."""
    fields: dict[str, Any] = {}
    if axis is not None:
        if isinstance(axis, str):
            fields["axis"] = axis
        elif isinstance(axis, Sequence):
            fields["axis"] = [each if isinstance(each, str) else operator.index(each) for each in axis]
        else:
            fields["axis"] = operator.index(axis)
    if keepdims:
        fields["keepdims"] = True
    if isinstance(segments, Mapping):
        fields["segments"] = dict(segments)
    elif segments is not None:
        whole = hasattr(segments, "__index__") and not np.ndim(segments)
        offsets = {"length": operator.index(segments)} if whole else {"offsets": list(map(operator.index, segments))}  # type: ignore[arg-type]
        fields["segments"] = offsets
    if isinstance(window, Mapping):
        beside = {name: window[name] for name in BESIDE_WINDOWS if window.get(name) is not None}
        fields["window"] = {name: value for name, value in window.items() if name not in BESIDE_WINDOWS}
        fields |= beside
    elif window is not None:
        fields["window"] = {"expanding": True} if window == "expanding" else {"rows": operator.index(window)}
    return fields


class OpOptions(TypedDict, total=False):
    """What is said of an op besides its elements: see `kernels.ops.parameters`."""

    q: float | Sequence[float]
    method: str
    n: int
    k: int
    bins: int | Sequence[float]
    range: Sequence[float]


def parameters_in(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of ops among these fields, as a spec has them: numbers and lists of numbers. Raises TypeError."""
    chosen = {name: fields[name] for name in Parameters.names() if fields.get(name) is not None}
    return {name: value if name == "method" else _numbers(name, value) for name, value in chosen.items()}


def of_several(parameters: Mapping[str, Any]) -> bool:
    """Whether these ask for several values of each group, which lie on a last axis."""
    return isinstance(parameters.get("q"), list) or parameters.keys() & {"k", "bins"} != set()


def op_of(op: str, parameters: Mapping[str, Any]) -> Op:
    """The op with these parameters. Raises InvalidInput naming one."""
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()
    }
    return op_named(op).having(Parameters(**chosen))


def _numbers(name: str, value: Any) -> Any:
    return [_number(name, each) for each in value] if np.ndim(value) else _number(name, value)


def _number(name: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} is a number or a list of numbers, not {value!r}")
    return int(value) if isinstance(value, int | np.integer) else float(value)


def array_from(
    values: Sequence[Value | None], shape: Sequence[int], dtype: str, unit: str | None = None
) -> NDArray[Any]:
    """Values in C order of `shape` as an array of `dtype`, of which "integer" and those of times stand for int64,
    uint64 or, where neither holds them, Python integers. With a `unit` times that int64 holds are NumPy's. Where a
    value is None, the array is masked."""
    missing = [value is None for value in values]
    present = [0 if value is None else value for value in values]
    if dtype not in DTYPES:  # integers of any size, or those of instants and durations
        held = [row for row in (DTYPES["int64"], DTYPES["uint64"]) if _holds(row.bounds, present)]
        array = np.array(present, held[0].numpy if held else object)
        if unit is not None and array.dtype == np.int64 and _NAT not in present:
            array = array.view(f"{'m' if dtype.startswith('duration') else 'M'}8[{unit}]")
    else:
        row = DTYPES[dtype]  # integers never pass through an array of float64, which would round them
        array = np.array(present, np.float64 if row.is_float else row.numpy).astype(row.numpy)
    array = array.reshape(shape)
    return np.ma.masked_array(array, np.reshape(missing, shape)) if any(missing) else array


def meant_from(
    values: Sequence[Value | None] | None,
    shape: Sequence[int],
    dtype: str,
    decimals: Sequence[str | None] | None,
    times: Sequence[TimeView | TimeValue | None] | None,
) -> NDArray[Any]:
    """Values in C order of `shape` as an array: decimals as Python's, instants and durations as NumPy's, of their unit
    and in UTC where there is a zone, and all others as `array_from` has them. Raises ValueError without values."""
    if values is None:
        raise ValueError("the values are stored in files: Client.array downloads them")
    if decimals is not None:
        return _decimals_from(decimals, shape)
    unit = next((time.unit for time in times or () if time is not None), None)
    return array_from(values, shape, dtype, unit)


def _decimals_from(words: Sequence[str | None], shape: Sequence[int]) -> NDArray[Any]:
    missing = [word is None for word in words]
    array = np.empty(len(words), object)
    array[:] = [Decimal(word or 0) for word in words]
    array = array.reshape(shape)
    return np.ma.masked_array(array, np.reshape(missing, shape)) if any(missing) else array


def _holds(bounds: tuple[int, int], values: Sequence[Value]) -> bool:
    return all(bounds[0] <= value <= bounds[1] for value in values)
