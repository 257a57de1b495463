"""Small HTML tables, by which notebooks show jobs and results. All text in them is escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def properties(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values; rows whose value is None are left out."""
    shown = [(name, value) for name, value in rows if value is not None]
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in shown
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def grid(caption: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line of names."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
