"""Files on the server, below its data roots."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import Field, StringConstraints

from warpfold.contract.folders import Folders
from warpfold.contract.sources.npy import reason_of
from warpfold.contract.sources.source import SourceSpec
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.npy import open_array, read_head
from warpfold.kernels.source import ArraySource

_FIELD = "source.path"
_NO_ROOTS = "this server offers no files: it was started without data roots"


class PathSource(SourceSpec):
    """A .npy file on the server, in one of the server's data roots. The worker maps the file into memory and never
    unpickles it."""

    type: Literal["path"]
    path: Annotated[
        str,
        StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$"),
        Field(description="Path of the file on the server, in one of its data roots."),
    ]

    def identity(self) -> str:
        return f"the file {self.path}"

    @staticmethod
    def summary(stored: Mapping[str, Any]) -> str | None:
        return f"file {stored['path']}" if "path" in stored else None

    def open(self, folders: Folders) -> ArraySource:
        return open_npy(self.path, folders.roots)

    def check(self, field: str, roots: tuple[Path, ...], most_values: int) -> None:
        """Judge the name alone: the worker, which may be on another machine, looks at the file itself."""
        place = f"{field}.path"
        if not roots:
            raise InvalidInput(_NO_ROOTS, place)
        path = PurePosixPath(self.path)
        if ".." in path.parts:
            raise InvalidInput("'..' is not allowed in a path", place)
        if path.is_absolute() and not (_below(path, roots) or _below(Path(os.path.realpath(path)), roots)):
            raise InvalidInput(f"{self.path[:200]!r} lies outside of this server's data roots", place)


def _below(path: PurePath, roots: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def open_npy(name: str, roots: Sequence[Path]) -> ArraySource:
    """The array in a .npy file, of any shape, mapped into memory for reading.

    `name` is absolute, or relative to one of `roots`; wherever symbolic links lead, the file must lie under a root.
    Nothing is ever unpickled. Raises InvalidInput, whose sentence names the file as it was given and says nothing
    about files outside of the roots.
    """
    root, path = _locate(name, roots)
    try:
        with _open_below(root, path) as file:
            return _open(name, file)
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {reason_of(error)}", _FIELD) from None


def _locate(name: str, roots: Sequence[Path]) -> tuple[Path, Path]:
    """The root and the path below it, without links, of the file that `name` names."""
    if not roots:
        raise InvalidInput(_NO_ROOTS, _FIELD)
    inside = None
    for start in roots:
        real = Path(os.path.realpath(start / name))
        root = next((root for root in roots if real.is_relative_to(root)), None)
        if root is not None:
            inside = inside or (root, real.relative_to(root))
            if os.path.exists(real):  # noqa: PTH110 (which says no where Path.exists raises)
                return root, real.relative_to(root)
    if inside is None:
        raise InvalidInput(f"{name!r} lies outside of this server's data roots", _FIELD)
    return inside


def _open_below(root: Path, path: Path) -> BinaryIO:
    """Open `root / path` for reading, following no link: whoever put one there since we looked gets an error."""
    if not path.parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in path.parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        # Without O_NONBLOCK, opening a FIFO would wait for its writer.
        file = os.open(path.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    return os.fdopen(file, "rb")


def _open(name: str, file: BinaryIO) -> ArraySource:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{name!r} is not a regular file", _FIELD)
    try:
        head = read_head(file)
    except InvalidInput as error:
        raise InvalidInput(f"{name!r} {error}", _FIELD) from None
    present = status.st_size - head.offset
    if present < head.data_bytes:
        raise InvalidInput(
            f"{name!r} is truncated: its header promises {head.data_bytes} bytes of data, {present} are there", _FIELD
        )
    return open_array(file, head)
