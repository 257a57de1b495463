"""The options of commands that say how text is written."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

_PANEL = "Text (CSV and its like)"


def _option(help: str, metavar: str | None = None) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=_PANEL)


Delimiter = Annotated[str | None, _option("What stands between cells: ';', tab.", "CHAR")]
Quote = Annotated[str | None, _option("What stands around cells; '' for nothing.", "CHAR")]
Decimal = Annotated[str | None, _option("What stands before fractions: . or ,", "CHAR")]
Thousands = Annotated[str | None, _option("What groups digits: , . ' _ or a space; '' for nothing.", "CHAR")]
Encoding = Annotated[str | None, _option("utf-8, utf-16, latin-1, cp1252, …", "NAME")]
Comment = Annotated[str | None, _option("What begins a comment; '' for nothing.", "TEXT")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first row has names.", rich_help_panel=_PANEL)
]
NullWords = Annotated[str | None, _option("The words that are nulls, such as NA,missing.", "WORDS")]
Words = Annotated[str | None, _option("Columns that are words, whatever they hold.", "COLUMNS")]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Of .xlsx: a sheet, by its name or its number from 1.")]


def text_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by which text is read, as they are given to `options_of`, of the arguments of a command."""
    marks = ("delimiter", "quote", "decimal", "thousands", "encoding", "comment")
    chosen: dict[str, Any] = {name: options.get(name) for name in (*marks, "header", "null_words", "words", "sheet")}
    if str(chosen["sheet"]).isdecimal():
        chosen["sheet"] = int(chosen["sheet"])
    return chosen | ({"delimiter": "\t"} if chosen["delimiter"] in ("tab", "\\t") else {})
