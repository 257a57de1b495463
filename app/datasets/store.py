"""The folder of uploaded arrays: whole files under their SHA-256, and those that are still coming in.

A file gets its name only once all of it is on the disk, in one step; before, it lies in `incoming/`, where nobody looks
for arrays. What a crash leaves there, or leaves without an owner, the dispatcher sweeps up.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SUFFIX = ".npy"


class Store:
    """Uploaded arrays in `folder`, which is made as needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"

    def path(self, dataset_id: str) -> Path:
        """Where the array lies, if it is there."""
        return self._folder / dataset_id[:2] / f"{dataset_id}{_SUFFIX}"

    @contextmanager
    def incoming(self) -> Iterator[IO[bytes]]:
        """A new file to be written; gone at the end of the block unless it was put in place. Raises OSError."""
        self._incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked_file(self._incoming) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def place(self, incoming: Path, dataset_id: str) -> None:
        """Give a whole file its name. Doing it again changes nothing. Raises OSError."""
        if not incoming.exists():
            return
        target = self.path(dataset_id)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        incoming.replace(target)
        _flush_folder(target.parent)

    def remove(self, dataset_id: str) -> None:
        """Forget an array. Who has it open reads it to the end."""
        self.path(dataset_id).unlink(missing_ok=True)

    def ids(self, older_than_s: float) -> Iterator[str]:
        """The arrays that were put here at least so long ago."""
        for path in self._folder.glob(f"[0-9a-f][0-9a-f]/*{_SUFFIX}"):
            if _age_s(path) >= older_than_s:
                yield path.name.removesuffix(_SUFFIX)

    def remove_abandoned(self, older_than_s: float) -> int:
        """Remove what was coming in when its process died, and what was not written to for so long; how many files."""
        return sum(_removed(path, older_than_s) for path in self._incoming.glob("*"))


def _locked_file(folder: Path) -> IO[bytes]:
    """A new file that its process holds a lock on: the kernel releases it with the process, however that ends."""
    while True:
        name = folder / f"upload-{secrets.token_hex(8)}"
        file = open(name, "x+b", opener=_privately)  # noqa: SIM115 (the caller closes it)
        with suppress(OSError):  # a file system without locks: there the file's age has to do
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink > 0:
            return file
        file.close()  # somebody swept it up before it was locked


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _removed(path: Path, older_than_s: float) -> bool:
    try:
        with path.open("rb") as file:
            if _age_s(path) < older_than_s:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except OSError:  # it is being written, it is gone, or its file system has no locks
        return False
    return True


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _flush_folder(folder: Path) -> None:
    """Make a new name in `folder` survive the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
