"""What commands print: values and tables on standard output, JSON for scripts, everything said besides on standard
error."""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON: one document, or one line for each item of a list.")]
_WIDE = (140, 24)  # of a pipe, where nobody said COLUMNS
_ANY = 10_000


def _console() -> Console:
    """Standard output, as wide as the terminal, and in a pipe as COLUMNS says."""
    width = None if sys.stdout.isatty() else shutil.get_terminal_size(_WIDE).columns
    return Console(width=width, highlight=False, soft_wrap=False)


def say(message: str) -> None:
    """Tell a person something, beside what a script reads."""
    typer.echo(message, err=True)


def document(value: object) -> None:
    """One JSON document, for reading by people too."""
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def lines(values: Iterable[object]) -> None:
    """One line of JSON for each value."""
    for value in values:
        typer.echo(line(value))  # which flushes: a reader sees each as it comes


def line(value: object) -> str:
    """A value as a line of JSON."""
    return json.dumps(_plain(value), ensure_ascii=False)


def table(
    names: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), fold: str | None = None
) -> None:
    """Rows under names; numbers in the columns `right` stand at the right, and where there is too little room the
    column `fold` takes more lines. What is None is empty."""
    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        made.add_column(name, justify=justify, no_wrap=name != fold, overflow="fold")
    for row in rows:
        made.add_row(*(_cell(value) for value in row))
    show(made)


def facts(rows: Iterable[tuple[str, object]]) -> None:
    """Names with their values, one a line; what is None is left out."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            made.add_row(name, _cell(value))
    show(made)


def show(made: Table) -> None:
    """Print a table; into a pipe or a file without the spaces that fill its lines up. Ids and numbers are never cut:
    where there is too little room, lines are longer than the terminal is wide."""
    console = _console()
    console.width = max(console.width, console.measure(made, options=console.options.update(max_width=_ANY)).minimum)
    if console.is_terminal:
        console.print(made)
        return
    with console.capture() as captured:
        console.print(made)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"  # by the clock of whoever reads it
    return escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def _plain(value: object) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
