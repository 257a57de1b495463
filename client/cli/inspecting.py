"""The command that shows the contents of a file, of this machine or of the server: inspect."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpfold.client.cli import output
from warpfold.client.cli.files import is_pattern, matching, seekable
from warpfold.client.cli.opening import faults, folder_at, options_of
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import service
from warpfold.client.cli.text_options import with_text_options
from warpfold.contract.content_view import ContentView
from warpfold.contract.text_fields import TextFields
from warpfold.kernels.formats.contents import contents_of, contents_of_folder, sheets_of
from warpfold.kernels.places.place import is_url

if TYPE_CHECKING:
    from warpfold.client.inspections import FileColumn

_DATASET = re.compile(r"[0-9a-f]{64}")
_EXAMPLES = """Examples:

warpfold inspect sales.parquet

warpfold inspect --server run-7/ocean.nc

warpfold inspect --server 'run-*/ocean.nc'

warpfold inspect s3://sales/2026/june.parquet"""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Jobs", epilog=_EXAMPLES)(inspect)


@with_text_options
def inspect(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, a pattern of files, or the folder of a Zarr hierarchy.")
    ],
    *,
    on_server: Annotated[
        bool,
        typer.Option(
            "--server", help="FILE is the server's, as a URL always is: a path, a pattern, or the id of an upload."
        ),
    ] = False,
    text: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Show the arrays or the columns in a file: dtypes, shapes, and what its metadata know of nulls, chunks, and sizes.

    Nothing is uploaded. Of several files that a pattern matches, the first is shown.
    """
    of_text = options_of(text)
    if on_server or is_url(file):
        with service(context) as client:
            inspection = client.inspect(_source(file, of_text))
        if as_json:
            output.document(inspection)
            return
        if inspection.files > 1:
            output.say(f"{inspection.file}, the first of {inspection.files:,} files")
        _say_sheets(inspection.sheets)
        _show(inspection.contents)
        if inspection.left_out:
            output.say(f"{inspection.left_out:,} more {inspection.holds} are not shown")
        return
    files = matching([file]) if is_pattern(file) else [Path(file)]
    path = files[0]
    if len(files) > 1:
        output.say(f"{path}, the first of {len(files):,} files")
    sheets: Sequence[str] = ()
    with ExitStack() as unless_read, faults(str(path), "FILE"):
        if path.is_dir():
            inside = contents_of_folder(folder_at(path))
        else:
            readable = unless_read.enter_context(seekable(path, "FILE"))
            options = TextFields.model_validate(of_text).text_options(path.name)
            opened = unless_read.enter_context(readable.open("rb"))
            inside, sheets = contents_of(opened, options), sheets_of(opened)
    contents = [ContentView.of(content) for content in inside]
    if as_json:
        output.document([content.model_dump(mode="json") for content in contents])
    else:
        _say_sheets(sheets)
        _show(contents)


def _say_sheets(sheets: Sequence[str]) -> None:
    if len(sheets) > 1:
        output.say(f"one of {len(sheets)} sheets, which --sheet names: {', '.join(sheets)}")


def _source(name: str, of_text: dict[str, Any]) -> dict[str, Any]:
    if _DATASET.fullmatch(name):
        return {"type": "dataset", "id": name, **of_text}
    if any(letter in name for letter in "*?["):
        return {"type": "files", "glob": name, **of_text}
    return {"type": "table" if of_text else "array", "path": name, **of_text}


def _show(contents: Sequence["ContentView | FileColumn"]) -> None:
    names = ("name", "dtype", "shape", "nulls", "chunks", "bytes")
    rows = (
        [content.name, content.dtype, *map(_text, (content.shape, content.nulls, content.chunks, content.bytes))]
        for content in contents
    )
    output.table(names, rows, fold="name")


def _text(number: tuple[int, ...] | int | None) -> str:
    if isinstance(number, tuple):
        return "×".join(f"{length:,}" for length in number)
    return "" if number is None else f"{number:,}"
