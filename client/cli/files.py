"""Files that commands read: by name, or through a pipe."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, BinaryIO

import typer

Rehash = Annotated[
    bool, typer.Option("--rehash", help="Read the file even if its size and times say that it was sent before.")
]

DASH = "-"
"""Names standard input."""


@contextmanager
def seekable(path: Path, parameter: str) -> Iterator[Path]:
    """`path` itself if it is a file; of a pipe (`-`, /dev/stdin, a named one) a copy of all that comes through it, for
    a .npy file is read in more than one go. The copy is gone after the block."""
    if str(path) != DASH:
        _check(path, parameter)
        if path.is_file():
            yield path
            return
    with TemporaryDirectory(prefix="warpfold-") as folder:
        copy = Path(folder) / "stdin.npy"
        with copy.open("wb") as to, _piped(path) as source:
            if source.isatty():
                raise typer.BadParameter("is a terminal: send a .npy file through a pipe", param_hint=parameter)
            shutil.copyfileobj(source, to)
        yield copy


def _check(path: Path, parameter: str) -> None:
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder", param_hint=parameter)
    if not os.access(path, os.R_OK):
        why = "cannot be read" if path.exists() else "does not exist"
        raise typer.BadParameter(f"{path} {why}", param_hint=parameter)


@contextmanager
def _piped(path: Path) -> Iterator[BinaryIO]:
    if str(path) == DASH:
        yield typer.get_binary_stream("stdin")
        return
    with path.open("rb") as source:
        yield source
