"""A reduced value in JSON, which has no infinities, no NaN, and readers that refuse long integers."""

import math
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, StrictBool, StrictFloat, StrictInt, WithJsonSchema

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Value

MAX_DIGITS = 4300
"""Longest integer in decimal digits that a result may have: Python and other readers of JSON refuse longer ones."""

_NON_FINITE = ("nan", "inf", "-inf")
_TOO_LONG: int = 10**MAX_DIGITS


def _written(value: Value) -> Value | str:
    """What JSON can say: a non-finite float by name, everything else as it is (integers of any size)."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: object) -> object:
    return float(value) if value in _NON_FINITE and isinstance(value, str) else value


JsonValue = Annotated[
    StrictBool | StrictInt | StrictFloat,
    BeforeValidator(_read),
    PlainSerializer(_written, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string", "enum": list(_NON_FINITE)}],
            "description": (
                'A number (integers are exact and of any size), a bool, or one of the strings "nan", "inf", "-inf".'
            ),
        }
    ),
]
"""A reduced value: a Python bool, int or float here, and in JSON a bool, number or the name of a non-finite one."""


def hex_of(value: Value) -> str | None:
    """`float.hex` of a float ("nan", "inf", "-inf" for non-finite ones), None for integers and bools."""
    return value.hex() if isinstance(value, float) else None


def check_length(value: Value) -> None:
    """Raise InvalidInput if `value` is an integer too long to be served: a product of many integers."""
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        raise InvalidInput(
            f"the result is an integer of {value.bit_length()} bits, longer than the {MAX_DIGITS} decimal digits "
            "that readers of JSON accept; reduce as a float dtype instead"
        )
