"""The folder of uploaded arrays: whole files under their SHA-256, and those that are still coming in.

A file gets its name only once all of it is on the disk, in one step; before, it lies in `incoming/` under its owner's
id, has its final length, and is locked by the process that writes it. So the folder itself tells every api process what
is on its way and whose it is. A file that a crash left there has no lock.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from warpfold.app.datasets.partial import PartialUploads, age_s
from warpfold.contract.folders import dataset_file
from warpfold.contract.upload_notes import incoming_folder, note_folder

_SUFFIX = ".npy"
_LONG_S = 3600.0
_BLOCK = 512  # the unit of st_blocks on every disk


@dataclass(frozen=True, slots=True)
class Arriving:
    """Uploads on their way: `owned`, the bytes of one owner's uploads, received or not, and the bytes that all uploads
    have yet to take of the disk."""

    owned: int
    unwritten: int


class Store:
    """Uploaded arrays in `folder`, which is made as needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = incoming_folder(folder)
        self.partial = PartialUploads(note_folder(folder), self._incoming)

    def path(self, dataset_id: str) -> Path:
        """Where the array lies, if it is there."""
        return dataset_file(self._folder, dataset_id)

    @contextmanager
    def incoming(self, owner_id: int) -> Iterator[IO[bytes]]:
        """A new file to be written; gone at the end of the block unless it was put in place. Raises OSError."""
        self._incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked_file(self._incoming, owner_id) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def arriving(self, owner_id: int) -> Arriving:
        """The uploads in progress, with those that may be resumed. Abandoned ones are removed and do not count."""
        self.remove_abandoned(_LONG_S)
        owned = unwritten = 0
        for path in self._incoming.glob("*"):
            with suppress(FileNotFoundError):
                status = path.stat()
                owned += status.st_size if path.name.startswith(f"{owner_id}-") else 0
                unwritten += max(0, status.st_size - status.st_blocks * _BLOCK)
        return Arriving(owned, unwritten)

    def free_bytes(self) -> int:
        """The bytes that the disk has left for processes without root's reserve. Raises OSError."""
        disk = os.statvfs(self._incoming)
        return disk.f_bavail * disk.f_frsize

    def place(self, incoming: Path, dataset_id: str) -> None:
        """Give a whole file its name. Doing it again changes nothing. Raises OSError."""
        target = self.path(dataset_id)
        if not incoming.exists() and target.exists():
            return
        target.parent.mkdir(mode=0o700, exist_ok=True)
        incoming.replace(target)
        _flush_folder(target.parent)

    def remove(self, dataset_id: str) -> None:
        """Remove an array. A reader that has it open can read it to the end."""
        self.path(dataset_id).unlink(missing_ok=True)

    def ids(self, older_than_s: float) -> Iterator[str]:
        """The arrays that were put here at least so long ago."""
        for path in self._folder.glob(f"[0-9a-f][0-9a-f]/*{_SUFFIX}"):
            if age_s(path) >= older_than_s:
                yield path.name.removesuffix(_SUFFIX)

    def remove_abandoned(self, older_than_s: float) -> int:
        """Remove uploads whose process died, and those that were not written to for so long; returns how many files. An
        upload that may be resumed stays as long as its note says."""
        self.partial.remove_expired()
        kept = self.partial.names()
        return sum(_removed(path, older_than_s) for path in self._incoming.glob("*") if path.name not in kept)


def _locked_file(folder: Path, owner_id: int) -> IO[bytes]:
    """A new file that its process holds a lock on: the kernel releases it with the process, however that ends."""
    while True:
        name = folder / f"{owner_id}-{secrets.token_hex(8)}"
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
            if age_s(path) < older_than_s:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except OSError:  # it is being written, it is gone, or its file system has no locks
        return False
    return True


def _flush_folder(folder: Path) -> None:
    """Make a new name in `folder` survive the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
