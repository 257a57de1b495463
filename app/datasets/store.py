"""The folder of uploaded arrays: whole files under their SHA-256, and those that are still coming in.

A file gets its name only once all of it is on the disk, in one step; before, it lies in `incoming/`, where nobody looks
for arrays. What a crash leaves there, or leaves without an owner, the dispatcher sweeps up.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
        with tempfile.NamedTemporaryFile(dir=self._incoming, delete=False) as file:
            try:
                yield file.file
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
        """Remove what came in and was not written to for so long; how many files."""
        abandoned = [path for path in self._incoming.glob("*") if _age_s(path) >= older_than_s]
        for path in abandoned:
            path.unlink(missing_ok=True)
        return len(abandoned)


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
