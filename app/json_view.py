"""A generic view of a JSON object: a titled list of names and values, and tables. It shows results of every kind, those
of later versions included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpfold.contract import wording

_MOST_ROWS = 200
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class JsonTable:
    """Rows of text under headings; `more` were left out."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0


@dataclass(slots=True)
class JsonView:
    """A titled list of names and values, and the tables within."""

    title: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    tables: list[JsonTable] = field(default_factory=list)


def json_view_of(title: str, value: Mapping[str, Any]) -> JsonView:
    """The view of `value`. Names of inner values begin with their path: {"a": {"b": 1}} has a row "a b"."""
    view = JsonView(title)
    _collect(view, "", value)
    return view


def _collect(view: JsonView, path: str, value: Mapping[str, Any]) -> None:
    for name, inner in value.items():
        full_name = f"{path} {_spaced(name)}".strip()
        match inner:
            case dict():
                _collect(view, full_name, inner)
            case [dict(), *_]:
                view.tables.append(_table(full_name, inner))
            case _:
                view.rows.append((full_name, text_of(name, inner)))


def _table(title: str, rows: Sequence[Any]) -> JsonTable:
    flat = [_flat(row) if isinstance(row, dict) else {"": row} for row in rows[:_MOST_ROWS]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    used = [name for name in names if any(row.get(name) not in (None, [], "") for row in flat)]
    cells = [[text_of(name, row.get(name)) for name in used] for row in flat]
    return JsonTable(title, [_spaced(name) for name in used], cells, max(0, len(rows) - _MOST_ROWS))


def _flat(row: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        full_name = f"{path}{name}"
        flat |= _flat(value, f"{full_name} ") if isinstance(value, dict) else {full_name: value}
    return flat


def text_of(name: str, value: object) -> str:
    """A value as text, with the unit that the end of its name gives."""
    match value:
        case None:
            text = wording.ABSENT
        case bool():
            text = wording.yes_or_no(value)
        case int() | float() if name.endswith("_ms"):
            text = wording.duration(value)
        case int() | float() if name.endswith("_gbps"):
            text = f"{wording.number(value)} GB/s"
        case int() if name.endswith("bytes"):
            text = wording.size(value)
        case int():
            text = f"{value:,}"
        case float():
            text = repr(value)
        case list():
            text = ", ".join(text_of("", item) for item in value[:_MOST_ROWS]) or "none"
        case _:
            text = str(value)[:_LONGEST]
    return text


def _spaced(name: str) -> str:
    for unit in ("_ms", "_gbps", "_bytes"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")
