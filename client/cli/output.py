"""The output of commands: values and tables on standard output, JSON for scripts, and messages on standard error."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from warpfold.contract.terminal import properties, table

Json = Annotated[bool, typer.Option("--json", help="Print JSON: one document, or one line for each item of a list.")]

__all__ = ["Json", "document", "line", "lines", "noticed", "properties", "say", "table"]


def say(message: str) -> None:
    """Print a message for a person to standard error, so that a script that reads standard output does not get it."""
    typer.echo(message, err=True)


def noticed(notice: str | None) -> str:
    """A phrase with the notice of a result, to follow another one."""
    return f"; {notice}" if notice else ""


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
