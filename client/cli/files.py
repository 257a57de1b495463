"""Files that commands read: by name, or through a pipe."""

import glob
import os
import shutil
from collections.abc import Iterator, Sequence
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


def is_pattern(name: str) -> bool:
    """Whether a name stands for the files that fit it, as 'runs/*.npy' does."""
    return not Path(name).exists() and glob.has_magic(name)


def matching(names: Sequence[str]) -> list[Path]:
    """The files that are named, in order, those of a pattern by name."""
    paths: list[Path] = []
    for name in names:
        if name == DASH:
            raise typer.BadParameter("standard input cannot be combined with files", param_hint="FILE")
        # Unlike Path.glob, it takes a pattern with a root.
        fitting = sorted(glob.glob(name, recursive=True)) if is_pattern(name) else [name]  # noqa: PTH207
        if not fitting:
            raise typer.BadParameter(f"no file fits {name!r}", param_hint="FILE")
        paths += map(Path, fitting)
    return paths


def one_array(names: Sequence[str], *, as_one: bool, on_server: bool) -> list[Path | str]:
    """The files that are one array, in their order: those that the service reads by their names, and those of this
    machine as Paths. None of several files that are to be reduced each by itself."""
    from warpfold.kernels.places.place import is_url

    if not as_one and not on_server:
        several = len(names) > 1 or (is_pattern(names[0]) and not is_url(names[0]))
        return [] if several else [names[0] if is_url(names[0]) else Path(names[0])]
    files: list[Path | str] = []
    for name in names:
        files += [name] if on_server or is_url(name) else matching([name])
    return files


@contextmanager
def seekable(path: Path, parameter: str) -> Iterator[Path]:
    """`path` itself if it is a file; for a pipe (`-`, /dev/stdin, a named pipe) it is a copy of all bytes that come
    through it, because a .npy file is read in several steps. The copy is gone after the block."""
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
    if path == Path():
        raise typer.BadParameter("is an empty name", param_hint=parameter)
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
