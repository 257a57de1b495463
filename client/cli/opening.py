"""Files of the user's in any format that is read: the options that say how, and what faults of a file become."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import typer

from warpfold.client.cli.exits import Exit, fail
from warpfold.contract.json_text import read_json
from warpfold.kernels.errors import InvalidInput, KernelError, Unavailable
from warpfold.kernels.formats.folder import Folder
from warpfold.kernels.formats.npy_head import written_head
from warpfold.kernels.formats.signature import Format, format_of, is_read, is_text

_LISTS = ("null_words", "words")


def options_of(texts: Mapping[str, str | int | None]) -> dict[str, Any]:
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
            such = '{"column": "n", "op": ">", "value": 50}' if name == "filter" else '[{"start": 1, "stop": 9}]'
            raise typer.BadParameter(f"is not JSON, such as {such}: {error}", param_hint=f"--{name}") from None
    if not options:
        return options
    from pydantic import ValidationError

    from warpfold.contract.faults import first_fault
    from warpfold.contract.sources.options import AnyOptions  # which imports what reads every format

    try:
        AnyOptions.model_validate(options)
    except ValidationError as error:
        fault = first_fault(error)
        option = f"--{str(fault.field or '').partition('.')[0].replace('_', '-')}"
        raise typer.BadParameter(str(fault), param_hint=option) from None
    return options


def check_dtype(dtype: str | None, files: Sequence[Path | str]) -> None:
    """Raise BadParameter if `dtype` is given for other things than files of text that are one array."""
    if dtype is not None and not (files and all(is_text(str(file)) for file in files)):
        raise typer.BadParameter("is for one column of one array in .csv or .tsv files", param_hint="--dtype")


def check_op(op: str, fields: Mapping[str, Any]) -> None:
    """Raise BadParameter for an op that there is not, and for a parameter among `fields` that it does not take."""
    from warpfold.client.groups import op_of, parameters_in

    try:
        op_of(op, parameters_in(fields))
    except InvalidInput as error:
        raise typer.BadParameter(str(error), param_hint=f"--{error.field or 'op'}") from None


def is_plain(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file is to be read as a .npy file of numbers, or refused as one."""
    if path.is_dir() or options or is_text(path.name):
        return False
    with path.open("rb") as file:
        kind = format_of(file)
        if kind is Format.NPY:
            with suppress(InvalidInput):  # the code that opens the file reports its faults
                return written_head(file).plain is not None or _is_of_numbers(file)
        is_spec = kind is Format.JSON_LINES and path.suffix.lower() == ".json"  # without a column, it may be one
        return kind in (None, Format.NPY) or is_spec or not is_read(kind)


def _is_of_numbers(file: BinaryIO) -> bool:
    """Whether a .npy file has elements of a dtype that is reduced as it is. Raises InvalidInput."""
    from warpfold.kernels.dtypes import part_dtype
    from warpfold.kernels.formats.npy import read_head
    from warpfold.kernels.lowering.float8 import bytes_of
    from warpfold.kernels.lowering.times import times_of_dtype

    file.seek(0)
    dtype = read_head(file, wider=True).dtype
    return times_of_dtype(dtype) is None and part_dtype(dtype) is None and bytes_of(dtype) is None


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
