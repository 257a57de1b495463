"""The output of commands: values and tables on standard output, JSON for scripts, and messages on standard error."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

if TYPE_CHECKING:
    from warpfold.contract.dialect_view import DialectView

Json = Annotated[bool, typer.Option("--json", help="Print JSON: one document, or one line for each item of a list.")]


def say(message: str) -> None:
    """Print a message for a person to standard error, so that a script that reads standard output does not get it."""
    typer.echo(message, err=True)


def noticed(notice: str | None) -> str:
    """A phrase with the notice of a result, to follow another one."""
    return f"; {notice}" if notice else ""


def read_by(dialects: "Iterable[DialectView]") -> str:
    """A phrase that says how text was read, where it is not written as most are, to follow another one."""
    words = [dialect.words for dialect in dialects if dialect.words]
    return f"; read by {' and by '.join(words)}" if words else ""


def table(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    fold: str | None = None,
    headed: bool = True,
) -> None:
    """Print rows as `contract.terminal` does, which imports Rich: a command without a table does not wait for that."""
    from warpfold.contract import terminal

    terminal.table(names, rows, right=right, fold=fold, headed=headed)


def properties(rows: Iterable[tuple[str, object]]) -> None:
    """Print names with their values, one a line, as `contract.terminal` does."""
    from warpfold.contract import terminal

    terminal.properties(rows)


def document(value: object) -> None:
    """Print one JSON document, indented for people."""
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def lines(values: Iterable[object]) -> None:
    """One line of JSON for each value."""
    for value in values:
        typer.echo(line(value))  # which flushes: a reader sees each as it comes


def line(value: object) -> str:
    """A value as a line of JSON."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
