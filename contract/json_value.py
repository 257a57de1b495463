"""A reduced value in JSON, which has no infinities, no NaN, and readers that refuse long integers."""

import math
from typing import TYPE_CHECKING, Annotated, overload

from pydantic import (
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from warpfold.contract.frozen import Frozen
from warpfold.kernels.errors import InvalidInput

if TYPE_CHECKING:
    from warpfold.kernels.backend import Reduction
    from warpfold.kernels.ops import Value

MAX_DIGITS = 4300
"""Longest integer in decimal digits that a result may have: Python and other readers of JSON refuse longer ones."""

_Value = int | float | bool
"""`kernels.ops.Value`, which Pydantic asks for by name, without NumPy."""

_NON_FINITE = ("nan", "inf", "-inf")
_TOO_LONG: int = 10**MAX_DIGITS


def _written(value: _Value) -> _Value | str:
    """The value as JSON: a non-finite float by its name, everything else as it is (integers of any size)."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: object) -> object:
    return float(value) if value in _NON_FINITE and isinstance(value, str) else value


KeyValue = Annotated[
    StrictBool | StrictInt | StrictFloat | str | None,
    PlainSerializer(lambda key: _written(key) if isinstance(key, float) else key, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("boolean", "number", "string", "null")]}),
]
"""A key of groups; an infinite one is a string."""

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


class ComplexHex(Frozen):
    """The parts of a complex value as Python's float.hex prints them."""

    re: str
    im: str


def _parts(value: complex) -> dict[str, _Value | str]:
    return {"re": _written(value.real), "im": _written(value.imag)}


def _complex(value: object) -> complex:
    match value:
        case complex():
            return value
        case {"re": re, "im": im, **rest} if not rest:
            real, imaginary = _read(re), _read(im)
            if isinstance(real, float | int) and isinstance(imaginary, float | int):
                return complex(real, imaginary)
    raise ValueError("is not a complex number, which is an object with re and im")


_PART: JsonDict = {"anyOf": [{"type": "number"}, {"type": "string", "enum": list(_NON_FINITE)}]}

JsonComplex = Annotated[
    complex,
    PlainValidator(_complex),
    PlainSerializer(_parts, when_used="json"),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"re": _PART, "im": _PART},
            "required": ["re", "im"],
            "additionalProperties": False,
            "title": "ComplexNumber",
            "description": "A complex number by its real and its imaginary part.",
        }
    ),
]
"""A reduced value of complex numbers: Python's own here, and in JSON an object of its parts."""


def value_of(reduction: "Reduction") -> "Value | complex":
    """The value of a reduction, whose parts are put together where it is complex."""
    return reduction.value if reduction.imaginary is None else complex(reduction.value, reduction.imaginary)


@overload
def hex_of(value: "Value") -> str | None: ...


@overload
def hex_of(value: "Value | complex") -> str | ComplexHex | None: ...


def hex_of(value: "Value | complex") -> str | ComplexHex | None:
    """`float.hex` of a float ("nan", "inf", "-inf" for non-finite ones), or of the parts of a complex number; None for
    integers and bools."""
    if isinstance(value, float):
        return value.hex()
    return ComplexHex(re=value.real.hex(), im=value.imag.hex()) if isinstance(value, complex) else None


def check_length(value: "Value | complex") -> None:
    """Raise InvalidInput if `value` is an integer too long to be served: a product of many integers."""
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        raise InvalidInput(
            f"the result is an integer of {value.bit_length()} bits, longer than the {MAX_DIGITS} decimal digits "
            "that readers of JSON accept; reduce as a float dtype instead"
        )
