"""Reductions along axes and by segments, as Python asks for them and as NumPy has them."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Rational, Real
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from warpfold.kernels.ops import Op, Parameters, op_named

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
        whole = hasattr(segments, "__index__") and not getattr(segments, "ndim", 0)
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
    several = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", True)
    return [_number(name, each) for each in value] if several else _number(name, value)


def _number(name: str, value: Any) -> int | float:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    raise TypeError(f"{name} is a number or a list of numbers, not {value!r}")
