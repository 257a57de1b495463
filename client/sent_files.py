"""The memory of the files that this user has sent: their digests, and uploads that were cut, so that no file is read or
sent twice. A file counts as unchanged while its path, size, inode, and times of modification and change (in
nanoseconds) stay the same. A file system counts time in steps, up to two seconds long, and a change within a step
leaves the times as they were: so a file that was modified within two seconds before it was read is not remembered.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

_MOST = 1000
_STEP_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file as it was at a moment, just before it was read."""

    path: Path
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    at_ns: int

    @classmethod
    def now(cls, path: Path) -> "FileStamp":
        """The file as it is. Raises OSError."""
        status, full = path.stat(), path.resolve()
        return cls(full, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, time.time_ns())

    def is_still(self) -> bool:
        """Whether the file has not changed since, as far as its times tell."""
        try:
            now = FileStamp.now(self.path)
        except OSError:
            return False
        return self.identity == now.identity

    @property
    def identity(self) -> tuple[int, int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns, self.inode

    @property
    def is_settled(self) -> bool:
        """Whether any later change shows in its times."""
        return self.at_ns - max(self.mtime_ns, self.ctime_ns) >= _STEP_NS


class Sent(BaseModel):
    """An entry of the memory: the digest of a file's contents, or the path of its unfinished upload."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    digest: Annotated[str | None, Field(pattern=r"^[0-9a-f]{64}$")] = None
    upload: Annotated[str | None, Field(pattern=r"^/v1/uploads/[0-9a-f]{32}$")] = None


class _Memory(BaseModel):
    """The contents of the file in which the memory is kept, the oldest entry first."""

    files: dict[str, Sent] = {}


class SentFiles:
    """The memory of files that were sent, in a file of its own. It may be lost, damaged or read-only: then files are
    read again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def recall(self, seen: FileStamp) -> Sent | None:
        """The entry of a file that has not changed since."""
        kept = self._read().files.get(str(seen.path))
        same = kept is not None and (kept.size, kept.mtime_ns, kept.ctime_ns, kept.inode) == seen.identity
        return kept if same and seen.is_settled else None

    def keep(self, seen: FileStamp, *, digest: str | None = None, upload: str | None = None) -> None:
        """Remember the entry of a file, if the file is still the same. The thousand latest entries are kept."""
        if not seen.is_settled or not seen.is_still():
            return
        size, mtime_ns, ctime_ns, inode = seen.identity
        sent = Sent(size=size, mtime_ns=mtime_ns, ctime_ns=ctime_ns, inode=inode, digest=digest, upload=upload)
        files = self._read().files
        files.pop(str(seen.path), None)
        files[str(seen.path)] = sent
        self._write(_Memory(files=dict(list(files.items())[-_MOST:])))

    def _read(self) -> _Memory:
        try:
            return _Memory.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return _Memory()

    def _write(self, memory: _Memory) -> None:
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}.{time.monotonic_ns()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(new, "x", opener=_privately) as file:
                file.write(memory.model_dump_json())
            new.replace(self._path)
        except OSError:
            with suppress(OSError):
                new.unlink()


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
