"""Files that are read by their names. They lie in a folder, in which no link is followed, or in an archive."""

import os
import stat
import weakref
from collections.abc import Iterator, Sequence
from typing import Protocol

from warpfold.kernels.errors import InvalidInput


def open_within(folder: int, parts: Sequence[str]) -> int:
    """A descriptor of the file or folder at `parts` below the folder that is open as `folder`. Raises OSError; for a
    link it is ELOOP, so that nobody can put a link there after the path was checked."""
    opened = os.dup(folder)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = deeper
        # Without O_NONBLOCK, opening a FIFO would wait for its writer.
        return os.open(parts[-1] if parts else ".", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened)
    finally:
        os.close(opened)


class Tree(Protocol):
    """Files that are read by their names, which are paths with slashes."""

    def size(self, name: str) -> int | None:
        """Bytes of the file `name`; None if there is no such file. Raises OSError."""
        ...

    def read(self, name: str, start: int, stop: int | None, most: int) -> bytes | None:
        """Bytes start … stop − 1 of the file, to its end for None; a negative start counts from the end. None if there
        is no such file. Several threads may read at once. Raises OSError, and InvalidInput where the bytes are more
        than `most`, or where the file is not a regular file."""
        ...

    def folders(self, name: str = "") -> Iterator[str]:
        """The names of the folders in the folder `name`. Raises OSError."""
        ...

    def check_names(self) -> None:
        """Raise InvalidInput where a file has another name than it is looked for by. Called before a file counts as
        missing."""
        return


class Folder(Tree):
    """A folder that stays open as long as this object lives. The object closes `descriptor` at its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def size(self, name: str) -> int | None:
        try:
            file = open_within(self._descriptor, _parts(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            status = os.fstat(file)
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        finally:
            os.close(file)

    def read(self, name: str, start: int, stop: int | None, most: int) -> bytes | None:
        try:
            file = open_within(self._descriptor, _parts(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise InvalidInput(f"holds {name!r}, which is not a regular file")
        with os.fdopen(file, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            begin = max(0, size + start) if start < 0 else start
            length = max(0, min(size, size if stop is None else stop) - begin)
            if length > most:
                raise InvalidInput(f"holds {name!r} with {length:,} bytes, and at most {most:,} are read at a time")
            stream.seek(begin)
            return stream.read(length)

    def folders(self, name: str = "") -> Iterator[str]:
        opened = open_within(self._descriptor, _parts(name))
        try:
            with os.scandir(opened) as entries:
                yield from sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        finally:
            os.close(opened)


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise InvalidInput(f"holds no {name[:200]!r}")
    return parts
