"""The values of results in words, for people."""

import json
import re
from collections.abc import Mapping
from typing import Any

_MANY = re.compile(r'\{"(shape|groups)": ?(?:\[([\d, ]*)\]|(\d+))')
"""How a result of many values begins."""
_LONGEST_READ = 1 << 16
"""A result of one value is shorter, but for one that names very many files."""
_MOST_LETTERS = 26
"""As many as the longest float64 has, and two."""


def in_words(value: Any) -> str:
    """A value as JSON has it, and a complex one as people write it."""
    if isinstance(value, dict):
        return f"{value.get('re')} + {value.get('im')} i"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def answer_in_words(result: str) -> str | None:
    """The value of a result, which is JSON, or how many values or groups it has; None where it has another answer. Of
    decimals and times it is what the value stands for. A result of many values is not read: it may be long."""
    if many := _MANY.match(result):
        shape = [int(length) for length in (many[2] or many[3] or "").split(",") if length]
        what = "group" if many[1] == "groups" else "value"
        return f"{' × '.join(f'{length:,}' for length in shape) or 1} {what}{'' if shape in ([1], []) else 's'}"
    read = json.loads(result) if len(result) <= _LONGEST_READ else None
    if isinstance(read, dict) and (meant := meaning_of(read)) is not None:
        return meant
    match read:
        case {"value": value} | {"study": "three_numbers", "exact": value}:
            return in_words(value)
    return None


def meaning_of(result: Mapping[str, Any]) -> str | None:
    """What the value of a decimal or of a time stands for; None for other results."""
    match result:
        case {"decimal": str(said)} | {"time": {"iso": str(said)}}:
            return said
    return None


def in_brief(answer: str) -> str:
    """The beginning of a long answer, and its end, which has the exponent of a number."""
    half = _MOST_LETTERS // 2
    return answer if len(answer) <= _MOST_LETTERS else f"{answer[:half]}…{answer[1 - half :]}"
