"""The faults that Pydantic finds in a request, as errors of Warpfold."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from warpfold.kernels.errors import InvalidInput

_AN_OBJECT, _AN_ARRAY = "Input should be an object", "Input should be an array"
_IN_WORDS_OF_JSON: Mapping[str, str] = MappingProxyType(
    {
        "extra_forbidden": "There is no such field here",
        "union_tag_not_found": "Field required",
        "union_tag_invalid": "Input should be one of {expected_tags}",
        "model_type": _AN_OBJECT,
        "model_attributes_type": _AN_OBJECT,
        "dict_type": _AN_OBJECT,
        "tuple_type": _AN_ARRAY,
        "list_type": _AN_ARRAY,
        "string_too_short": "Too short: it needs {min_length} or more characters",
        "string_too_long": "Too long: it may have {max_length} characters",
        "too_short": "Too few items: there must be at least {min_length}",
        "too_long": "Too many items: there may be at most {max_length}",
    }
)
"""Our message by Pydantic's type of error, where Pydantic's own speaks of Python or repeats all that was sent."""

_IN_WORDS_OF_TEXT: Mapping[str, str] = MappingProxyType(
    {
        r"^[A-Za-z0-9_.-]{1,64}$": "Should be 1 to 64 letters of the English alphabet, digits, or the signs _ . -",
        r"^[0-9a-f]{64}$": "Should be the id of an uploaded file, which has 64 hexadecimal digits",
        r"^[0-9a-f]{32}$": "Should be the id of an upload, which has 32 hexadecimal digits",
        r"^[^\x00]*$": "May hold no character with the number 0",
        r"^[^\x00]+$": "Should hold a character, and none with the number 0",
    }
)
"""Our message by the pattern that a text does not match."""


def in_words(fault: Mapping[str, Any]) -> str:
    """What one of Pydantic's errors says to people."""
    context = fault.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ValueError):
        return str(cause)
    if fault["type"] == "string_pattern_mismatch":
        return _IN_WORDS_OF_TEXT.get(context["pattern"], str(fault["msg"]))
    return _IN_WORDS_OF_JSON.get(fault["type"], "").format(**context) or str(fault["msg"])


def first_fault(error: ValidationError) -> InvalidInput:
    """The first fault, with the field that it is about."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    inner = cause.field if isinstance(cause, InvalidInput) else None
    field = ".".join([*map(str, first["loc"]), *([inner] if inner else [])])
    return InvalidInput(in_words(first), field or None)
