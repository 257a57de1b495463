"""The options of commands that say how text is written."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Annotated, Any

import typer

_PANEL = "Text (CSV and its like)"


def _option(help: str, metavar: str | None = None) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=help, rich_help_panel=_PANEL)]


_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "delimiter": _option("What stands between cells: ';', tab.", "CHAR"),
        "quote": _option("What stands around cells; '' for nothing.", "CHAR"),
        "decimal": _option("What stands before fractions: . or ,", "CHAR"),
        "thousands": _option("What groups digits: , . ' _ or a space; '' for nothing.", "CHAR"),
        "encoding": _option("utf-8, utf-16, latin-1, cp1252, …", "NAME"),
        "comment": _option("What begins a comment; '' for nothing.", "TEXT"),
        "header": Annotated[
            bool | None,
            typer.Option("--header/--no-header", help="Whether the first row has names.", rich_help_panel=_PANEL),
        ],
        "null_words": _option("The words that are nulls, such as NA,missing.", "WORDS"),
        "words": _option("Columns that are words, whatever they hold.", "COLUMNS"),
        "sheet": Annotated[
            str | None, typer.Option(metavar="NAME", help="Of .xlsx: a sheet, by its name or its number from 1.")
        ],
    }
)


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options in the place of its argument `text`, which gets them for `options_of`."""

    @wraps(command)
    def call(**arguments: Any) -> None:
        chosen = {name: arguments.pop(name, None) for name in _OPTIONS}
        command(**arguments, text=_as_taken(chosen))

    parameters: list[Parameter] = []
    for each in signature(command, eval_str=True).parameters.values():
        if each.name == "text":
            more = (
                Parameter(name, each.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in _OPTIONS.items()
            )
            parameters.extend(more)
        else:
            parameters.append(each)
    shown: Any = call  # Typer asks for both
    shown.__signature__ = signature(command).replace(parameters=parameters)
    shown.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _as_taken(chosen: dict[str, Any]) -> dict[str, Any]:
    if str(chosen["sheet"]).isdecimal():
        chosen["sheet"] = int(chosen["sheet"])
    return chosen | ({"delimiter": "\t"} if chosen["delimiter"] in ("tab", "\\t") else {})
