"""The files of a stored result while they are written: in the folder of an attempt, hashed, flushed, and within what
the disk and the owner's quota hold."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.app.artefacts.formats import ROWS
from warpfold.app.datasets.digest import FollowingDigest
from warpfold.contract.artefact import ArtefactPart
from warpfold.contract.folders import incoming_artefact
from warpfold.kernels.errors import InvalidInput, Unavailable
from warpfold.worker.kinds.attempt import Attempt


class Column:
    """A file of an artefact. It is written from its beginning to its end, and hashed and flushed meanwhile. Writers of
    pyarrow take it as a file, too."""

    def __init__(self, path: Path, dtype: "np.dtype[Any] | None", head: bytes) -> None:
        self.path = path
        self.rows = 0
        self.closed = False
        self._dtype = dtype
        self._head = len(head)
        self._file = open(path, "x+b", buffering=0, opener=_privately)  # noqa: SIM115 (closed by `close`)
        self._digest = FollowingDigest(self._file.fileno())
        self._end = 0
        try:
            self.write(head)
        except BaseException:
            self.close()
            raise

    def append(self, values: NDArray[Any]) -> None:
        """Add values, converted to the dtype of the column. Raises OSError."""
        assert self._dtype is not None, "the column is an array"
        self.write(np.ascontiguousarray(values, self._dtype).view(np.uint8).data)
        self.rows += values.size

    def write(self, data: Any) -> int:
        """Add bytes. Raises OSError."""
        view = memoryview(data).cast("B")
        at = 0
        while at < len(view):
            at += self._file.write(view[at:]) or 0
        self._end += at
        self._digest.advance(self._end)
        return at

    def tell(self) -> int:
        return self._end

    def flush(self) -> None:
        """Do nothing: no byte waits in memory."""

    def pieces(self) -> Iterator[NDArray[Any]]:
        """All values that were written, piece by piece."""
        assert self._dtype is not None, "the column is an array"
        self._file.seek(self._head)
        for start in range(0, self.rows, ROWS):
            yield np.fromfile(self._file, self._dtype, min(ROWS, self.rows - start))

    def rename(self, path: Path) -> None:
        """Move the file to `path`, in place of a file that is there."""
        self.path = self.path.rename(path)

    def finished(self) -> ArtefactPart:
        """The description of the file, all of which is on the disk now. Raises OSError."""
        name: Any = self.path.stem
        digest = self._digest.hexdigest()
        descr = None if self._dtype is None else self._dtype.str if self._dtype.kind != "V" else self._dtype.name
        kind: Any = self.path.suffix[1:]
        return ArtefactPart(name=name, format=kind, dtype=descr, bytes=self._end, sha256=digest)

    def close(self) -> None:
        if not self._file.closed:
            self._digest.close()
            self._file.close()


def prepared(attempt: Attempt, nbytes: int, field: str) -> Path:
    """The empty folder of an attempt, on a disk that has room for `nbytes`. Raises as `check_room`."""
    artefacts = attempt.folders.artefacts
    if artefacts is None:
        raise Unavailable("this worker has no folder for results that are stored")
    folder = incoming_artefact(artefacts.path, attempt.lease.job_id, attempt.lease.attempt)
    shutil.rmtree(folder, ignore_errors=True)
    with full_disk():
        folder.mkdir(mode=0o700, parents=True)
        try:
            check_room(attempt, nbytes, field)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def check_room(attempt: Attempt, nbytes: int, field: str) -> None:
    """Raise InvalidInput naming `field` where a result of `nbytes` is larger than a user may hold, and Unavailable
    where the disk has no room for it."""
    artefacts = attempt.folders.artefacts
    assert artefacts is not None, "the folder was asked for before"
    if nbytes > artefacts.most_bytes:
        raise InvalidInput(
            f"{field}: the result would have {nbytes:,} bytes, and a user may hold {artefacts.most_bytes:,}", field
        )
    disk = os.statvfs(artefacts.path)
    if disk.f_bavail * disk.f_frsize - nbytes < artefacts.keep_free_bytes:
        raise Unavailable(f"the disk of stored results has no room for the {nbytes:,} bytes of this one")


@contextmanager
def full_disk() -> Iterator[None]:
    """Turn an error of the disk within the block into Unavailable."""
    try:
        yield
    except OSError as error:
        why = "it is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else os.strerror(error.errno or 0).lower()
        raise Unavailable(f"the result cannot be stored on the disk: {why}") from error


def flush_folder(folder: Path) -> None:
    """Flush the names in `folder`, and its own name, so that a crash of the machine loses none of them."""
    for place in (folder, folder.parent):
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
