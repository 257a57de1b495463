"""How specs are put into a line of words: sizes, spans of sizes, and lists of names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_NAMES = 3


def span(sizes: Sequence[int] | None) -> str:
    """The smallest and the largest size: "10³–2³⁰"."""
    sizes = sizes or ()
    return f"{size(min(sizes))}–{size(max(sizes))}" if len(sizes) > 1 else "".join(map(size, sizes))


def size(n: int) -> str:
    """10000000 → "10⁷", 1073741824 → "2³⁰", 1500 → "1,500"."""
    if n >= 1024 and n & (n - 1) == 0:
        return f"2{_raised(n.bit_length() - 1)}"
    digits = str(n)
    if n >= 1000 and set(digits[1:]) == {"0"}:
        factor = "" if digits[0] == "1" else f"{digits[0]}·"
        return f"{factor}10{_raised(len(digits) - 1)}"
    return f"{n:,}"


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def lists(spec: Mapping[str, Any], *fields: str) -> Sequence[str]:
    """The lists in these fields, each as its first names and how many follow."""
    return [_some(spec.get(field)) for field in fields]


def _some(names: Sequence[str] | None) -> str:
    names = names or ()
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def short(value: object) -> str:
    """Any JSON value in at most about 40 characters."""
    if isinstance(value, str | bool):
        return str(value)[:40]
    if isinstance(value, int):
        return size(value)
    if isinstance(value, float):
        return f"{value:g}".replace("e+0", "e")  # 1e8, not 100000000.0
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return _some([short(item) for item in value])
    return json.dumps(value)[:40]


def spaced(name: str) -> str:
    """The name of a field as words."""
    return name.replace("_", " ")
