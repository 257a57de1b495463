"""How specs are put into a line of words: sizes, spans of sizes, and lists of names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from warpfold.contract.wording import compact_count

_MOST_NAMES = 3


def span(sizes: Sequence[int] | None) -> str:
    """The smallest and the largest size: "10³–2³⁰"."""
    sizes = sizes or ()
    return (
        f"{compact_count(min(sizes))}–{compact_count(max(sizes))}"
        if len(sizes) > 1
        else "".join(map(compact_count, sizes))
    )


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
        return compact_count(value)
    if isinstance(value, float):
        return f"{value:g}".replace("e+0", "e")  # 1e8, not 100000000.0
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return _some([short(item) for item in value])
    return json.dumps(value)[:40]


def spaced(name: str) -> str:
    """The name of a field as words."""
    return name.replace("_", " ")
