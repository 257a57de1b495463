"""Files below the data roots of a server: their names are judged when a job is accepted, and again, with every link on
the way, when a worker opens them."""

import errno
import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, BinaryIO

from pydantic import Field, StringConstraints

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.folder import Folder, open_within
from warpfold.kernels.places.place import Places, is_url

PathName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$"),
    Field(
        description="Path of the file on the server, in one of its data roots; or a URL in one of the places of its "
        "configuration: s3://, gs://, az:// or https://."
    ),
]

_NO_ROOTS = "this server offers no files: it was started without data roots"


def reason_of(error: OSError) -> str:
    """Why a file cannot be read, in the system's words."""
    if error.errno == errno.ELOOP:
        return "its links lead in a circle, or it changed while it was opened"
    return os.strerror(error.errno).lower() if error.errno else "the system gave no reason"


def check_name(name: str, field: str, roots: Sequence[Path], places: Places, *, pattern: bool = False) -> None:
    """Judge the name of a file alone: the worker, which may be on another machine, looks at the file itself. Raises
    InvalidInput naming `field`."""
    if is_url(name):
        places.target(name, field, pattern=pattern)
        return
    if not roots:
        raise InvalidInput(_NO_ROOTS, field)
    path = PurePosixPath(name)
    if ".." in path.parts:
        raise InvalidInput("'..' is not allowed in a path", field)
    if path.is_absolute() and not (_below(path, roots) or _below(Path(os.path.realpath(path)), roots)):
        raise InvalidInput(f"{name[:200]!r} lies outside of this server's data roots", field)


@contextmanager
def opened(name: str, roots: Sequence[Path], field: str) -> Iterator[BinaryIO]:
    """The regular file that `name` names, opened for reading.

    `name` is absolute, or relative to one of `roots`; wherever symbolic links lead, the file must lie under a root.
    Raises InvalidInput, whose sentence names the file as it was given and says nothing about files outside of the
    roots; of an OSError within the block, too.
    """
    try:
        with open_regular(name, roots, field) as file:
            yield file
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {reason_of(error)}", field) from None


def open_regular(name: str, roots: Sequence[Path], field: str) -> BinaryIO:
    """The same file, to be closed by the caller. Raises OSError, too."""
    return open_located(name, *locate(name, roots, field), field)


def open_located(name: str, root: Path, path: Path, field: str) -> BinaryIO:
    """The same file, which `locate` found at `path` below `root`."""
    file = open_below(root, path)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InvalidInput(f"{name!r} is not a regular file", field)
    return file


def size_at_hand(name: str, roots: Sequence[Path], field: str) -> int | None:
    """The size in bytes of the regular file `name`, which must lie under a root as it must to be opened; None for a URL
    and where no such file exists."""
    if is_url(name):
        return None
    try:
        root, path = locate(name, roots, field)
        status = (root / path).lstat()
    except (OSError, InvalidInput):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _below(path: PurePath, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def locate(name: str, roots: Sequence[Path], field: str) -> tuple[Path, Path]:
    """The root and the path below it, without links, of the file that `name` names."""
    if not roots:
        raise InvalidInput(_NO_ROOTS, field)
    inside = None
    for start in roots:
        real = Path(os.path.realpath(start / name))
        root = next((root for root in roots if real.is_relative_to(root)), None)
        if root is not None:
            inside = inside or (root, real.relative_to(root))
            if os.path.exists(real):  # noqa: PTH110 (which says no where Path.exists raises)
                return root, real.relative_to(root)
    if inside is None:
        raise InvalidInput(f"{name!r} lies outside of this server's data roots", field)
    return inside


def open_below(root: Path, path: Path) -> BinaryIO:
    """Open `root / path` for reading, following no link: a link that was put there since we looked is an error."""
    if not path.parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    file = _descriptor(root, path)
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return os.fdopen(file, "rb")


def open_folder(name: str, roots: Sequence[Path], field: str) -> Folder:
    """The folder that `name` names, held to the roots as a file is. Raises InvalidInput and OSError."""
    root, path = locate(name, roots, field)
    descriptor = _descriptor(root, path)
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return Folder(descriptor)


def _descriptor(root: Path, path: Path) -> int:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return open_within(folder, path.parts)
    finally:
        os.close(folder)


def matching(pattern: str, roots: Sequence[Path], field: str, most: int) -> list[str]:
    """The names of the files that match a glob pattern below any of `roots`, sorted; those of one root are relative to
    it. Hidden files match no wildcard, and a file that a link leads to outside of the roots matches nothing: its name
    is no business of a job. Raises InvalidInput where no file matches, or more than `most` do."""
    if not roots:
        raise InvalidInput(_NO_ROOTS, field)
    names: set[str] = set()
    for root in roots:
        relative = pattern
        if pattern.startswith("/"):
            if not PurePosixPath(pattern).is_relative_to(root):
                continue
            relative = str(PurePosixPath(pattern).relative_to(root))
        for name in glob.iglob(relative, root_dir=root, recursive=True):  # noqa: PTH207 (Path.glob enters links)
            if _below(Path(os.path.realpath(root / name)), roots):
                names.add(name)
            if len(names) > most:
                raise InvalidInput(f"{pattern[:200]!r} matches more than {most:,} files", field)
    if not names:
        raise InvalidInput(f"{pattern[:200]!r} matches no file below this server's data roots", field)
    return sorted(names)
