"""JSON as people and programs write it, read so that nothing in it is lost without a word.

Readers of JSON keep the last of two members with one name, and read 1e-400 as 0. Here a name that an object has twice
is an error. A number such as 1e-400 in a list stays text: an array of floats reads it as 0, and an array of integers
refuses it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isinf
from typing import Any

from pydantic_core import from_json

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.written import nearest_or_text

_SHAPES = bytes.maketrans(b"123456789.E", b"0000000000e")
_SUSPECTS = (b"0" * 16, b"e-000")
"""A number that is not whole, and whose nearest float64 is, has one of these in its text as `_SHAPES` translates it:
sixteen digits, or an exponent of three digits."""
_LONGEST_NAME = 64


def read_json(body: bytes) -> Any:
    """The value of `body`, which is JSON of RFC 8259. Raises ValueError where `body` is no JSON, and InvalidInput that
    names the field where an object has two members of one name."""
    value = from_json(body, allow_inf_nan=False)
    # A colon follows the name of each member, so that no name was lost where there are as many members as colons.
    # Colons within texts only send the body the slow way.
    if body.count(b":") == _members(value) and not _may_have_become_whole(value, body):
        return value
    return _read_with_care(body)


def _members(value: Any) -> int:
    """How many members all objects in `value` have. Objects in a list whose first element is neither an object nor a
    list are not looked for: no field takes such a list, and long lists of numbers are common."""
    count, left = 0, [value]
    while left:
        inner = left.pop()
        if type(inner) is dict:
            count += len(inner)
            left += [each for each in inner.values() if type(each) is dict or type(each) is list]
        elif type(inner) is list and inner and type(inner[0]) in (dict, list):
            left += inner
    return count


def _may_have_become_whole(value: Any, body: bytes) -> bool:
    """Whether `value` may have a whole number where `body` has a number that is not whole. To read it with care takes
    no longer than to know."""
    shapes = body.translate(_SHAPES)
    return any(suspect in shapes for suspect in _SUSPECTS) and _has_whole_float(value)


def _has_whole_float(value: Any) -> bool:
    left = [value]
    while left:
        inner = left.pop()
        elements = list(inner.values()) if type(inner) is dict else inner
        if type(elements) is not list:
            continue
        types = set(map(type, elements))
        floats = elements if types == {float} else [each for each in elements if type(each) is float]
        if any(map(float.is_integer, floats)):
            return True
        if dict in types or list in types:
            left += elements
    return False


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Stands for an object that has two members of this name."""

    name: str


_NO_NAMES = frozenset({int, float, str, bool, type(None)})
"""The types of elements within which nothing has a name."""


def _read_with_care(body: bytes) -> Any:
    # No value of JSON is bytes: so the text of a float is told from a string until all floats of a list are read.
    value = _with_floats([json.loads(body.decode(), object_pairs_hook=_object, parse_float=str.encode)])[0]
    place = next(_places(value, ()), None)
    if place is not None:
        field = ".".join(part[:_LONGEST_NAME] for part in place)
        raise InvalidInput("is written twice in one object, and only one of the two would count", field)
    return value


def _with_floats(values: list[Any]) -> list[Any]:
    """A list with its floats for their texts, or with a text of each number that is not its nearest float64."""
    types = set(map(type, values))
    if list in types:
        values = [_with_floats(each) if type(each) is list else each for each in values]
    if bytes not in types:
        return values
    written = [each for each in values if type(each) is bytes]
    # Python's float takes twenty times as long for 1e-310 and 1e-400.
    nearest: list[float] = from_json(b"[%b]" % b",".join(written))
    numbers = (
        nearest_or_text(number, text.decode()) if number.is_integer() or isinf(number) else number
        for number, text in zip(nearest, written, strict=True)
    )
    return list(numbers) if len(types) == 1 else [next(numbers) if type(each) is bytes else each for each in values]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            return _Repeated(name)
        # Only lists keep the text: a field for one integer refuses every float.
        made[name] = float(value) if type(value) is bytes else _with_floats(value) if type(value) is list else value
    return made


def _places(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of the names that an object has twice."""
    if isinstance(value, _Repeated):
        yield (*path, value.name)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*path, name))
    elif isinstance(value, list) and not _NO_NAMES.issuperset(map(type, value)):
        for number, inner in enumerate(value):
            yield from _places(inner, (*path, str(number)))
