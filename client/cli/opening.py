"""Files of the user's in any format that is read, and the command that shows what is in one: inspect."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from warpfold.client.cli import output
from warpfold.client.cli.exits import Exit
from warpfold.client.cli.files import seekable
from warpfold.client.cli.output import Json
from warpfold.client.cli.session import fail
from warpfold.contract.sources.options import AnyOptions, read_of
from warpfold.kernels.errors import InvalidInput, KernelError
from warpfold.kernels.formats.contents import Content, contents_of, contents_of_folder
from warpfold.kernels.formats.folder import Folder
from warpfold.kernels.formats.signature import Format, delimiter_of, format_of, is_text
from warpfold.kernels.formats.zarr_ import is_zarr
from warpfold.kernels.ops import Op
from warpfold.kernels.sequential import Elements


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Jobs")(inspect)


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of yours, or the folder of a Zarr hierarchy.")],
    as_json: Json = False,
) -> None:
    """Show the arrays or the columns in a file of this machine: dtypes, shapes, and nulls if the file counts them."""
    with ExitStack() as unless_read, _faults(str(file), "FILE"):
        if file.is_dir():
            contents = contents_of_folder(_folder(file))
        else:
            path = unless_read.enter_context(seekable(file, "FILE"))
            contents = contents_of(unless_read.enter_context(path.open("rb")), delimiter_of(file.name))
    if as_json:
        output.document([_facts(content) for content in contents])
        return
    rows = (
        [
            content.name,
            content.dtype,
            "" if content.shape is None else "×".join(f"{length:,}" for length in content.shape),
            "" if content.nulls is None else f"{content.nulls:,}",
        ]
        for content in contents
    )
    output.table(("name", "dtype", "shape", "nulls"), rows, fold="name")


def _facts(content: Content) -> dict[str, Any]:
    return {"name": content.name, "dtype": content.dtype, "shape": content.shape, "nulls": content.nulls}


def options_of(texts: Mapping[str, str | None]) -> dict[str, Any]:
    """The options of a file as the command line has them; `filter` and `select` are JSON. Raises BadParameter."""
    options: dict[str, Any] = {}
    for name, text in texts.items():
        if text is None:
            continue
        try:
            options[name] = json.loads(text) if name in ("filter", "select") else text
        except ValueError as error:
            raise typer.BadParameter(f"is no JSON: {error}", param_hint=f"--{name}") from None
    try:
        AnyOptions.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise typer.BadParameter(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return options


def is_plain(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file is to be read as a .npy file, or refused as one."""
    if path.is_dir() or options or is_text(path.name):
        return False
    with path.open("rb") as file:
        return format_of(file) in (None, Format.NPY)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is no plain .npy file, with the options by which it is read."""

    path: Path
    options: Mapping[str, Any]

    def elements(self, parameter: str, op: Op | None) -> Elements:
        """Its elements, for `op`. Raises BadParameter; faults that show later are told with the path."""
        wanted = AnyOptions.model_validate(self.options)
        if op is not None and (op.places or op.sources > 1):
            wanted = wanted.refusing_nulls()
        with _faults("", parameter):
            if self.path.is_dir():
                return wanted.open_folder_in(_folder(self.path))
            open_in = partial(wanted.open_in, name=self.path.name)
            return read_of(str(self.path), "", lambda: self.path.open("rb"), open_in)

    @contextmanager
    def sent(self, parameter: str) -> Iterator[Path]:
        """The file to be uploaded: itself, or of a Zarr hierarchy an archive, which is gone after the block."""
        if not self.path.is_dir():
            yield self.path
            return
        with _faults(str(self.path), parameter):
            if not is_zarr(_folder(self.path)):
                raise InvalidInput("is a folder, and no Zarr hierarchy")
        with TemporaryDirectory(prefix="warpfold-") as folder:
            packed = Path(folder) / f"{self.path.resolve().name}.zip"
            with zipfile.ZipFile(packed, "w") as archive:
                for file in sorted(path for path in self.path.rglob("*") if path.is_file()):
                    # Without a time, the same hierarchy is the same file.
                    member = zipfile.ZipInfo(file.relative_to(self.path).as_posix())
                    with file.open("rb") as stored, archive.open(member, "w", force_zip64=True) as to:
                        shutil.copyfileobj(stored, to)
            yield packed


def _folder(path: Path) -> Folder:
    return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY))


@contextmanager
def _faults(called: str, parameter: str) -> Iterator[None]:
    try:
        yield
    except KernelError as error:
        if error.reason == "unavailable":
            raise fail(str(error), Exit.NOT_INSTALLED) from None
        raise typer.BadParameter(f"{called} {error}".strip(), param_hint=parameter) from None
