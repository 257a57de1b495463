"""Files on the server, below its data roots."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

from warpfold.contract.folders import Folders
from warpfold.contract.sources.options import files_named, open_file
from warpfold.contract.sources.roots import PathName, check_name, opened, size_at_hand
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.arrays import open_array_file
from warpfold.kernels.formats.npy import open_array, read_head
from warpfold.kernels.formats.signature import Format, readable_format
from warpfold.kernels.places.place import NOWHERE, Places, is_url
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.inputs import LocalFile
from warpfold.kernels.sources.sequential import Elements

_FIELD = "source.path"


class PathSource(SourceSpec):
    """A .npy file on the server, in one of the server's data roots, or behind a URL in a place of the server's
    configuration. The worker maps a file into memory, and never unpickles it."""

    type: Literal["path"]
    path: PathName

    def identity(self) -> str:
        return f"the file {self.path}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"file {stored['path']}" if "path" in stored else None

    def open(self, folders: Folders) -> Elements:
        if is_url(self.path):
            return open_file(self.path, folders, _FIELD, _npy_in)
        return open_npy(self.path, folders.roots)

    def bytes_at_hand(self, folders: Folders | None) -> int | None:
        return None if folders is None else size_at_hand(self.path, folders.roots, _FIELD)

    def files(self, folders: Folders) -> Sequence[LocalFile]:
        return files_named((self.path,), folders, _FIELD)

    def check(self, field: str, roots: tuple[Path, ...], most_values: int, places: Places = NOWHERE) -> None:
        """Judge the name alone: the worker, which may be on another machine, looks at the file itself."""
        check_name(self.path, f"{field}.path", roots, places)


def _npy_in(file: BinaryIO) -> Elements:
    _check_format(file)
    return open_array_file(file)


def _check_format(file: BinaryIO) -> None:
    """Raise InvalidInput, which names the source to use, where a file is no .npy file."""
    kind = readable_format(file)
    if kind is None:
        raise InvalidInput("is not a whole .npy file: a source of type array or table reads other formats")
    if kind is not Format.NPY:
        reader = "table reads a column of it" if kind.tabular else "array reads it"
        raise InvalidInput(f"is {kind.value}, not .npy: a source of type {reader}")


def _reason(file: BinaryIO, fault: InvalidInput) -> InvalidInput:
    """Why a file has no head of an array: that it is of another format, or else the `fault` of the head."""
    if os.fstat(file.fileno()).st_size:
        try:
            _check_format(file)
        except InvalidInput as other_format:
            return other_format
    return fault


def open_npy(name: str, roots: Sequence[Path]) -> ArraySource:
    """The array in a .npy file, of any shape, mapped into memory for reading.

    `name` is absolute, or relative to one of `roots`; wherever symbolic links lead, the file must lie under a root.
    Nothing is ever unpickled. Raises InvalidInput, whose sentence names the file as it was given and says nothing
    about files outside of the roots.
    """
    with opened(name, roots, _FIELD) as file:
        try:
            head = read_head(file)
        except InvalidInput as error:
            raise InvalidInput(f"{name!r} {_reason(file, error)}", _FIELD) from None
        present = os.fstat(file.fileno()).st_size - head.offset
        if present < head.data_bytes:
            raise InvalidInput(
                f"{name!r} is truncated: its header promises {head.data_bytes} bytes of data, {present} are there",
                _FIELD,
            )
        return open_array(file, head)
