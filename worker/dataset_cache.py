"""The folder of uploaded arrays that this machine fetched: whole files under their SHA-256, and partial files that are
being fetched. All slots of the machine use it, each by processes of its own. A process that reads a file, or writes a
partial one, holds a lock on it, which the kernel releases with the process. So no file is removed that a job reads, one
process downloads at a time, and nothing stays locked by a process that is killed.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from warpfold.contract.folders import DatasetCache, dataset_file, dataset_in_words
from warpfold.kernels.errors import Unavailable


class NoRoom(Exception):
    """The cache has no room now, because all of its files are in use, or because the disk is full. The message says
    which."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file of the cache: the time of its last use, in nanoseconds of the machine's clock, how many bytes it is to
    have when it is whole, and how many of them are yet to be written."""

    used_at: int
    path: Path
    nbytes: int
    unwritten: int


class Partial:
    """A dataset that is being fetched. Only the holder of this object may write it."""

    def __init__(self, dataset_id: str, path: Path, note: Path, target: Path, descriptor: int) -> None:
        self.dataset_id = dataset_id
        self.path = path
        self.note = note
        self._target = target
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        """How many bytes have come."""

    def fileno(self) -> int:
        return self._descriptor

    def append(self, piece: bytes) -> None:
        """Write the next bytes. Raises OSError, after which the whole pieces before are kept."""
        view = memoryview(piece)
        at = self.size
        try:
            while view:
                count = os.pwrite(self._descriptor, view, at)
                at += count
                view = view[count:]
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size = at

    def empty(self) -> None:
        """Drop all bytes, so that the download begins anew."""
        os.ftruncate(self._descriptor, 0)
        self.size = 0

    def place(self) -> None:
        """Give the whole file its name, in one step. Raises OSError."""
        self._target.parent.mkdir(mode=0o700, exist_ok=True)
        os.utime(self._descriptor)
        self.path.replace(self._target)
        self.note.unlink(missing_ok=True)


class CachedDatasets:
    """The datasets in the cache's folder, which is made as needed."""

    def __init__(self, cache: DatasetCache) -> None:
        self._cache = cache
        self._incoming = cache.path / "incoming"

    @contextmanager
    def reading(self, dataset_id: str) -> Iterator[bool]:
        """Whether the dataset is in the cache. If it is, this counts as a use, and the dataset stays there until the
        end of the block."""
        path = dataset_file(self._cache.path, dataset_id)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)  # a moment at most: nobody else locks a whole file for longer
            status = os.fstat(descriptor)
            if status.st_nlink:
                # The time of modification must stay, because a file whose time changes while it is read counts as
                # changed.
                os.utime(descriptor, ns=(time.time_ns(), status.st_mtime_ns))
            yield status.st_nlink > 0
        finally:
            os.close(descriptor)

    @contextmanager
    def partial(self, dataset_id: str) -> Iterator[Partial | None]:
        """The dataset as one to be fetched by this process; None while another process fetches it, or has just done so.
        Raises OSError."""
        self._incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._incoming / dataset_id
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                own = path.stat().st_ino == os.fstat(descriptor).st_ino
            except (BlockingIOError, FileNotFoundError):
                own = False
            target = dataset_file(self._cache.path, dataset_id)
            yield Partial(dataset_id, path, _note(path), target, descriptor) if own else None
        finally:
            os.close(descriptor)

    def progress(self, dataset_id: str) -> tuple[int, int]:
        """How many bytes of a dataset that another process fetches have come, and how many there are to be."""
        path = self._incoming / dataset_id
        try:
            done = path.stat().st_size
        except FileNotFoundError:
            return 0, 0
        return done, max(done, _promised(path))

    def make_room(self, partial: Partial, total: int) -> None:
        """Make room in the cache and on the disk for `total` bytes of this dataset: the least recently used datasets
        are removed, but none that is in use. Raises Unavailable where the cache is too small, NoRoom, and OSError."""
        if total > self._cache.most_bytes:
            raise Unavailable(
                f"{dataset_in_words(partial.dataset_id)} has {total} bytes, and the cache of this machine takes at "
                f"most {self._cache.most_bytes} (WARPFOLD_DATASET_CACHE_BYTES)"
            )
        lock = os.open(self._cache.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            partial.note.write_text(str(total))
            self._evict(partial, total)
        except BaseException:
            partial.note.unlink(missing_ok=True)
            raise
        finally:
            os.close(lock)

    def _evict(self, partial: Partial, total: int) -> None:
        others = [kept for kept in self._kept() if kept.path != partial.path]
        held = sum(kept.nbytes for kept in others)
        unwritten = sum(kept.unwritten for kept in others)
        for kept in sorted(others, key=lambda kept: kept.used_at):
            if held + total <= self._cache.most_bytes and self._free(unwritten) >= total - partial.size:
                return
            if _removed(kept.path):
                held -= kept.nbytes
                unwritten -= kept.unwritten
        if held + total > self._cache.most_bytes:
            raise NoRoom(f"the cache of this machine ({self._cache.most_bytes} bytes) is full of files of other jobs")
        if self._free(unwritten) < total - partial.size:
            raise NoRoom("the disk of this machine's cache is full")

    def _free(self, unwritten: int) -> int:
        """The free bytes of the disk, without those that are to stay free and those that other downloads are yet to
        write."""
        disk = os.statvfs(self._cache.path)
        return disk.f_bavail * disk.f_frsize - self._cache.keep_free_bytes - unwritten

    def _kept(self) -> Iterator[_Kept]:
        """All files of the cache, including the partial files."""
        for path in (*self._cache.path.glob("[0-9a-f][0-9a-f]/*.npy"), *self._incoming.glob("*")):
            with suppress(FileNotFoundError):
                status = path.stat()
                size = status.st_size
                if path.parent != self._incoming:
                    yield _Kept(status.st_atime_ns, path, size, 0)
                elif path.suffix != _NOTE:
                    promised = max(size, _promised(path))
                    yield _Kept(status.st_mtime_ns, path, promised, promised - size)


_NOTE = ".bytes"


def _note(partial: Path) -> Path:
    """The file that says how many bytes a partial file is to have."""
    return partial.with_name(partial.name + _NOTE)


def _promised(partial: Path) -> int:
    try:
        return int(_note(partial).read_text() or 0)
    except FileNotFoundError:
        return 0


def _removed(path: Path) -> bool:
    """Remove a file unless somebody reads or writes it; returns whether it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        _note(path).unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
