"""Conditions on columns that select the rows of a table. Each value in a condition is converted exactly to the type of
its column.

As in SQL, a condition on a null is neither true nor false, and a row stays only if its condition is true.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

import numpy as np

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.naming import chosen_name
from warpfold.kernels.machine.extras import required

Value = bool | int | float | str
"""Dates and times are written as ISO 8601 says, decimals as strings or integers."""

Bounds = tuple[Any, Any]

_FIELD = "filter"
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a column with a value; `op` is one of ==, !=, <, <=, >, >=."""

    column: str
    op: str
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """A column that equals one of several values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column that is null."""

    column: str


@dataclass(frozen=True, slots=True)
class Joined:
    """All of several conditions, or any of them."""

    all: bool
    of: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite of a condition."""

    of: "Condition"


Condition = Compared | IsIn | IsNull | Joined | Negated


def columns_of(condition: Condition) -> set[str]:
    """The columns that a condition reads."""
    match condition:
        case Joined(of=parts):
            return set().union(*(columns_of(part) for part in parts))
        case Negated(of=part):
            return columns_of(part)
    return {condition.column}


def compared_with_words(condition: Condition | None) -> set[str]:
    """The columns that a condition compares with strings alone, and only for equality."""
    compared: dict[str, bool] = {}
    parts = [] if condition is None else [condition]
    while parts:
        match parts.pop():
            case Joined(of=several):
                parts += several
            case Negated(of=part):
                parts.append(part)
            case Compared(column=name, op=op, value=value):
                compared[name] = compared.get(name, True) and op in ("==", "!=") and isinstance(value, str)
            case IsIn(column=name, values=values):
                compared[name] = compared.get(name, True) and all(isinstance(value, str) for value in values)
    return {name for name, alone in compared.items() if alone}


def may_hold(condition: Condition, schema: Any, bounds: Callable[[str], Bounds | None]) -> bool:
    """Whether some row of a group may fulfil the condition. `bounds` gives two values between which all those of a
    column lie that are no nulls and not NaN: numbers, decimals, integers of a time's unit, or bytes of words in ASCII;
    None where they are not known. Nulls and NaN fulfil no comparison but `!=`, so nothing has to be known of them: by
    `!=`, `is_null` and `not` no group is left out.

    Raises InvalidInput as `expression`."""
    match condition:
        case Joined(all=every, of=parts):
            held = [may_hold(part, schema, bounds) for part in parts]
            return all(held) if every else any(held)
        case IsNull() | Negated() | Compared(op="!="):
            return True
    name = chosen_name(condition.column, schema.names, "a column", _FIELD)
    known = bounds(name)
    if known is None:
        return True
    kind = schema.field(name).type
    kind = kind.value_type if required("pyarrow", "tables").types.is_dictionary(kind) else kind
    op, values = ("==", condition.values) if isinstance(condition, IsIn) else (condition.op, (condition.value,))
    return any(_reached(op, *known, _compared(name, kind, value)) for value in values)


def _compared(name: str, kind: Any, value: Value) -> Any:
    """The value as the bounds of its column are."""
    types = required("pyarrow", "tables").types
    if types.is_floating(kind):
        return value  # Python compares numbers exactly
    scalar = _scalar(name, kind, value)
    if types.is_temporal(kind):
        return scalar.value
    return scalar.as_py().encode() if isinstance(value, str) and not types.is_decimal(kind) else scalar.as_py()


def _reached(op: str, least: Any, most: Any, value: Any) -> bool:
    """Whether a value between `least` and `most` may stand in the relation `op` to `value`."""
    if isinstance(value, bytes):
        # Words may be cut in a footer, and some writers order bytes beyond ASCII as if they were negative. Whatever the
        # order, no word is below `least`, and a word of ASCII is not above `most`.
        if not value.isascii() or op in (">", ">="):
            return True
        most = value if value.startswith(most) else most
    if op == "==":
        return bool(least <= value <= most)
    return bool(_COMPARED[op](least if op in ("<", "<=") else most, value))


def expression(condition: Condition, schema: Any) -> Any:
    """The condition as an expression of pyarrow, on rows of `schema`. Raises InvalidInput naming "filter" where a
    column does not exist, or where its type does not hold a value."""
    compute = required("pyarrow.compute", "tables")
    match condition:
        case Joined(all=every, of=parts):
            first, *rest = (expression(part, schema) for part in parts)
            for part in rest:
                first = first & part if every else first | part
            return first
        case Negated(of=part):
            return ~expression(part, schema)
    pyarrow = required("pyarrow", "tables")
    name = chosen_name(condition.column, schema.names, "a column", _FIELD)
    field, kind = compute.field(name), schema.field(name).type
    if isinstance(condition, IsNull):
        return field.is_null()
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
        field = field.cast(kind)
    values = condition.values if isinstance(condition, IsIn) else (condition.value,)
    if pyarrow.types.is_floating(kind) and any(_needs_float64(value, kind) for value in values):
        kind = pyarrow.float64()  # this type holds the column's values, too, so that the comparison is exact
        field = field.cast(kind)
    scalars = [_scalar(name, kind, value) for value in values]
    if isinstance(condition, IsIn):
        members = [scalar.as_py() for scalar in scalars]
        if pyarrow.types.is_floating(kind) and 0.0 in members:
            members += [0.0, -0.0]  # which are equal, but not to `isin`
        is_member = field.isin(pyarrow.array(members, kind))
        return compute.if_else(field.is_valid(), is_member, pyarrow.scalar(None, pyarrow.bool_()))
    return _COMPARED[condition.op](field, scalars[0])


def _needs_float64(value: Value, kind: Any) -> bool:
    if isinstance(value, bool | str):
        return False
    with np.errstate(over="ignore"):  # pyarrow compares no float16 at all
        return str(kind) == "halffloat" or float(kind.to_pandas_dtype()(value)) != value


def _scalar(name: str, kind: Any, value: Value) -> Any:
    """`value` converted to the type `kind`. Raises InvalidInput where `kind` does not hold exactly this value."""
    pyarrow = required("pyarrow", "tables")
    types = pyarrow.types
    refusal = InvalidInput(f"holds column {name!r} as {kind}, which does not hold {_shown(value)}", _FIELD)
    number = isinstance(value, int) and not isinstance(value, bool)
    try:
        if types.is_boolean(kind):
            fits = isinstance(value, bool)
        elif types.is_integer(kind):
            fits = number
        elif types.is_floating(kind):
            fits = (number and float(value) == value) or isinstance(value, float)
            value = float(value) if fits else value
        elif types.is_decimal(kind):
            fits = number or isinstance(value, str)
            value = str(value)
            value = Decimal(value)  # type: ignore[assignment]
        elif types.is_temporal(kind):
            if isinstance(value, str):
                return pyarrow.scalar(value).cast(kind)
            fits = False
        else:
            fits = isinstance(value, str) and (types.is_string(kind) or types.is_large_string(kind))
        if not fits:
            raise refusal
        return pyarrow.scalar(value, kind)
    except (pyarrow.ArrowException, OverflowError, ValueError, InvalidOperation):
        raise refusal from None


def _shown(value: Value) -> str:
    return repr(value)[:80]
