"""The folder of stored results. Each result has a folder of its own, named after the job and the attempt that made it.

The child of a slot writes the folder in `incoming/`, and the worker moves it to its place within the transaction that
ends the job. Its name and the tables tell whether a folder is still needed, whenever a process died.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from warpfold.contract.folders import incoming_artefact


class ArtefactName(NamedTuple):
    """The attempt of a job that made a stored result."""

    job_id: UUID
    attempt: int

    @classmethod
    def of(cls, text: str) -> "ArtefactName | None":
        """The result that a folder's name stands for; None for a folder that is no stored result."""
        job_id, _, attempt = text.rpartition("-")
        try:
            return cls(UUID(job_id), int(attempt))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.job_id}-{self.attempt}"


class ArtefactStore:
    """Stored results in `folder`, which is made as needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: ArtefactName) -> Path:
        """The folder of a result, if it is there."""
        return self._folder / str(name)[:2] / str(name)

    def place(self, name: ArtefactName) -> None:
        """Give a written result its place. Doing it again changes nothing. Raises OSError."""
        target = self.path(name)
        if target.exists():
            return
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        incoming_artefact(self._folder, *name).rename(target)
        for folder in (target.parent, self._folder, self._folder / "incoming"):
            _flush(folder)

    def remove(self, name: ArtefactName) -> None:
        """Remove a result, whether it is complete or not. A reader that has one of its files open can read that file to
        the end."""
        for folder in (self.path(name), incoming_artefact(self._folder, *name)):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, name: ArtefactName) -> None:
        """Remove what a failed attempt wrote. An attempt that wrote nothing costs one look at the folder."""
        shutil.rmtree(incoming_artefact(self._folder, *name), ignore_errors=True)

    def names(self) -> Iterator[ArtefactName]:
        """All results in the folder, and those that are being written or were left unfinished."""
        for pattern in ("[0-9a-f][0-9a-f]/*", "incoming/*"):
            for path in self._folder.glob(pattern):
                name = ArtefactName.of(path.name)
                if name is not None:
                    yield name


def _flush(folder: Path) -> None:
    """Flush the names in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
