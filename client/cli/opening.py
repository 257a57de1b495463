"""Files of the user's in any format that is read."""

import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import typer
from pydantic import ValidationError

from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.files import is_pattern
from warpfold.contract.inputs import MOST_OBJECTS, InputView
from warpfold.contract.json_text import read_json
from warpfold.contract.sources.options import AnyOptions, read_folder_of, read_of
from warpfold.kernels.errors import InvalidInput, KernelError, Unavailable
from warpfold.kernels.formats.folder import Folder
from warpfold.kernels.formats.npy import read_head
from warpfold.kernels.formats.signature import Format, format_of, is_read, is_text
from warpfold.kernels.formats.zarr_ import is_zarr
from warpfold.kernels.lowering.complexes import part_dtype
from warpfold.kernels.lowering.float8 import bytes_of
from warpfold.kernels.lowering.times import times_of_dtype
from warpfold.kernels.ops import Op
from warpfold.kernels.places.place import is_url
from warpfold.kernels.sources.inputs import Inputs, LocalFile
from warpfold.kernels.sources.sequential import Elements

_LISTS = ("null_words", "words")


def options_of(texts: Mapping[str, str | bool | None]) -> dict[str, Any]:
    """The options of a file as the command line has them: `filter` and `select` are JSON, and lists have commas. Raises
    BadParameter."""
    options: dict[str, Any] = {}
    for name, text in texts.items():
        if text is None:
            continue
        try:
            if isinstance(text, str) and name in ("filter", "select"):
                options[name] = read_json(text.encode())
            else:
                options[name] = text.split(",") if isinstance(text, str) and name in _LISTS else text
        except InvalidInput as error:
            raise typer.BadParameter(f"{error.field} {error}", param_hint=f"--{name}") from None
        except ValueError as error:
            raise typer.BadParameter(f"is not JSON: {error}", param_hint=f"--{name}") from None
    try:
        AnyOptions.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise typer.BadParameter(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return options


def check_dtype(dtype: str | None, file: str | None) -> None:
    """Raise BadParameter if `dtype` is given for another thing than one file of text."""
    if dtype is not None and (file is None or not is_text(file) or (is_pattern(file) and not is_url(file))):
        raise typer.BadParameter("is for one column of one file whose name ends in .csv or .tsv", param_hint="--dtype")


def is_plain(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file is to be read as a .npy file of numbers, or refused as one."""
    if path.is_dir() or options or is_text(path.name):
        return False
    with path.open("rb") as file:
        kind = format_of(file)
        if kind is Format.NPY:
            with suppress(InvalidInput):  # the code that opens the file reports its faults
                dtype = read_head(file, wider=True).dtype
                return times_of_dtype(dtype) is None and part_dtype(dtype) is None and bytes_of(dtype) is None
        return kind in (None, Format.NPY) or not is_read(kind)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is no plain .npy file, with the options by which it is read."""

    path: Path
    options: Mapping[str, Any]

    def elements(self, parameter: str, op: Op | None, *, in_place: bool = False) -> Elements:
        """The elements of the file, for `op`; with `in_place` no null is left out. Raises BadParameter. Faults that
        show while elements are read are reported with the path."""
        wanted = AnyOptions.model_validate(self.options)
        if in_place or (op is not None and (op.places or op.sources > 1)):
            wanted = wanted.in_place()
        with faults("", parameter):
            if self.path.is_dir():
                return read_folder_of(str(self.path), "", lambda: wanted.open_folder_in(folder_at(self.path)))
            open_in = partial(wanted.open_in, name=self.path.name)
            return read_of(str(self.path), "", lambda: self.path.open("rb"), open_in)

    def _open(self) -> None:
        wanted = AnyOptions.model_validate(self.options)
        if self.path.is_dir():
            wanted.open_folder_in(folder_at(self.path))
            return
        with self.path.open("rb") as file:
            wanted.open_in(file, self.path.name)

    @contextmanager
    def sent(self, parameter: str, *, checked: bool = False) -> Iterator[Path]:
        """The file to be uploaded. For a Zarr hierarchy it is an archive of the folder, which is removed after the
        block. If it is to be `checked`, no byte is sent of a file that lacks what an option names."""
        if checked:
            with name_faults(self.path, parameter):
                self._open()
        if not self.path.is_dir():
            yield self.path
            return
        with faults(str(self.path), parameter):
            if not is_zarr(folder_at(self.path)):
                raise InvalidInput("is a folder, but not a Zarr hierarchy")
        with TemporaryDirectory(prefix="warpfold-") as folder:
            packed = Path(folder) / f"{self.path.resolve().name}.zip"
            with zipfile.ZipFile(packed, "w") as archive:
                for file in sorted(path for path in self.path.rglob("*") if path.is_file()):
                    # Members have no time of modification, so that the same hierarchy always gives the same file.
                    member = zipfile.ZipInfo(file.relative_to(self.path).as_posix())
                    with file.open("rb") as stored, archive.open(member, "w", force_zip64=True) as to:
                        shutil.copyfileobj(stored, to)
            yield packed


@contextmanager
def name_faults(path: Path, parameter: str) -> Iterator[None]:
    """End the command where an option names what the file at `path` does not have. All other faults are left to the
    service, which may read more than this machine does."""
    try:
        yield
    except InvalidInput as error:
        if error.field is not None:
            raise typer.BadParameter(f"{path} {error}", param_hint=parameter) from None
    except Unavailable:
        pass


def _begin(path: Path) -> BinaryIO:
    return path.open("rb")


class ReadHere:
    """The files that a reduction on this machine reads, by the names that the user gave them: `with ReadHere(…)`."""

    def __init__(self, files: Sequence[tuple[str, Path]], fingerprint: bool) -> None:
        self.fingerprint = fingerprint
        self._inputs = Inputs(
            [LocalFile(name, partial(_begin, path)) for name, path in files],
            fingerprint=fingerprint,
            most=MOST_OBJECTS,
        )

    def __enter__(self) -> "ReadHere":
        self._inputs.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._inputs.__exit__(*error)

    def view(self, null_words: tuple[str, ...] | None = None) -> InputView:
        """The files that were read, as a result of the service describes them, and the nulls of text. Raises
        InvalidInput where a file has changed."""
        view = InputView.of((), self._inputs, fingerprint=self.fingerprint, null_words=null_words)
        assert view is not None, "there is a file"
        return view


def folder_at(path: Path) -> Folder:
    """The open folder."""
    return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY))


@contextmanager
def faults(called: str, parameter: str) -> Iterator[None]:
    """End the command with the fault of a file."""
    try:
        yield
    except KernelError as error:
        if error.reason == "unavailable":
            raise fail(str(error), Exit.NOT_INSTALLED) from None
        raise typer.BadParameter(f"{called} {error}".strip(), param_hint=parameter) from None
