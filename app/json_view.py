"""Any JSON object as titled lists of facts and tables, for results of every kind, those of later versions included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpfold.contract import wording as words

_MOST_ROWS = 200
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings; `more` were left out."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0


@dataclass(slots=True)
class Facts:
    """A titled list of names and values, and the tables within."""

    title: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def facts_of(title: str, value: Mapping[str, Any]) -> Facts:
    """`value` with what lies deeper in it named by its way: {"a": {"b": 1}} is a fact "a b"."""
    found = Facts(title)
    _collect(found, "", value)
    return found


def _collect(found: Facts, way: str, value: Mapping[str, Any]) -> None:
    for name, inner in value.items():
        called = f"{way} {_words(name)}".strip()
        match inner:
            case dict():
                _collect(found, called, inner)
            case [dict(), *_]:
                found.tables.append(_table(called, inner))
            case _:
                found.rows.append((called, text_of(name, inner)))


def _table(title: str, rows: Sequence[Any]) -> Table:
    flat = [_flat(row) if isinstance(row, dict) else {"": row} for row in rows[:_MOST_ROWS]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    used = [name for name in names if any(row.get(name) not in (None, [], "") for row in flat)]
    cells = [[text_of(name, row.get(name)) for name in used] for row in flat]
    return Table(title, [_words(name) for name in used], cells, max(0, len(rows) - _MOST_ROWS))


def _flat(row: Mapping[str, Any], way: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        called = f"{way}{name}"
        found |= _flat(value, f"{called} ") if isinstance(value, dict) else {called: value}
    return found


def text_of(name: str, value: object) -> str:
    """A value as text, with the unit that its name tells."""
    match value:
        case None:
            text = "–"
        case bool():
            text = "yes" if value else "no"
        case int() | float() if name.endswith("_ms"):
            text = words.milliseconds(value)
        case int() | float() if name.endswith("_gbps"):
            text = f"{words.number(value)} GB/s"
        case int() if name.endswith("bytes"):
            text = words.size(value)
        case int():
            text = f"{value:,}"
        case float():
            text = repr(value)
        case list():
            text = ", ".join(text_of("", one) for one in value[:_MOST_ROWS]) or "none"
        case _:
            text = str(value)[:_LONGEST]
    return text


def _words(name: str) -> str:
    for unit in ("_ms", "_gbps", "_bytes"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")
