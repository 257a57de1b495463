"""An object as a file that decoders read and seek in."""

import io
import os
from collections import OrderedDict
from concurrent.futures import Future
from threading import Lock
from typing import Any, BinaryIO, cast

from warpfold.kernels.places.remote import FIRST_BYTES, IN_FLIGHT, REQUEST_BYTES, RemoteObject

PAGE_BYTES = FIRST_BYTES
_RUN_PAGES = REQUEST_BYTES // PAGE_BYTES
MOST_BYTES = 2 * IN_FLIGHT * REQUEST_BYTES
"""The bytes of an object's pages in memory, those that are asked for ahead among them."""


class _Pages:
    """The pages of an object that were read last, or are on their way."""

    def __init__(self, remote: RemoteObject) -> None:
        self._remote = remote
        self._count = -(-remote.size // PAGE_BYTES)
        self._runs: OrderedDict[int, tuple[int, Future[bytearray]]] = (
            OrderedDict()
        )  # by first page: how many, and bytes
        self._run_of: dict[int, int] = {}
        self._held = 0
        self._lock = Lock()

    def read_into(self, start: int, view: memoryview, ahead: int) -> None:
        """Fill `view` with the bytes from `start` on, and ask for `ahead` bytes behind them."""
        if start + len(view) <= len(self._remote.head):
            view[:] = self._remote.head[start : start + len(view)]
            return
        filled = 0
        while filled < len(view):
            page = (start + filled) // PAGE_BYTES
            first, coming = self._asked(page, start + len(view) + ahead)
            at = start + filled - first * PAGE_BYTES
            part = memoryview(coming.result())[at : at + len(view) - filled]
            view[filled : filled + len(part)] = part
            filled += len(part)

    def _asked(self, page: int, stop: int) -> tuple[int, Future[bytearray]]:
        """The first page and the bytes of the run that has `page`; the pages up to the byte `stop` are asked for, too,
        as far as memory is granted, but not before half of them are missing: requests are to be long."""
        last = max(page + 1, min(-(-stop // PAGE_BYTES), self._count, page + MOST_BYTES // 2 // PAGE_BYTES))
        with self._lock:
            at = page
            while at < last:
                first = self._run_of.get(at)
                if first is None and at > page and 2 * (at - page) >= last - page:
                    break
                if first is None:
                    at = self._begun(at, last)
                else:
                    self._runs.move_to_end(first)  # pages that are needed next are forgotten last
                    at = first + self._runs[first][0]
            first = self._run_of[page]
            coming = self._runs[first][1]
            self._forget(first)
        return first, coming

    def _begun(self, page: int, last: int) -> int:
        """Begin to read a run of pages from `page` on; returns the page behind it."""
        end = page + 1
        while end < min(last, page + _RUN_PAGES) and end not in self._run_of:
            end += 1
        start, stop = page * PAGE_BYTES, min(end * PAGE_BYTES, self._remote.size)
        self._runs[page] = end - page, self._remote.session.start(self._remote.read, start, stop)
        self._run_of.update(dict.fromkeys(range(page, end), page))
        self._held += stop - start
        return end

    def _forget(self, needed: int) -> None:
        for first in list(self._runs):
            if self._held <= MOST_BYTES:
                return
            if first == needed:
                continue
            count, _ = self._runs.pop(first)  # a reader that waits for it still gets it
            for page in range(first, first + count):
                del self._run_of[page]
            self._held -= min((first + count) * PAGE_BYTES, self._remote.size) - first * PAGE_BYTES


class RemoteFile(io.RawIOBase):
    """A place in an object to read from, as that of an open file. Where it is read in order, what follows is asked for
    ahead: as much again each time, so that a look at the first bytes costs little."""

    def __init__(self, remote: RemoteObject, pages: _Pages | None = None) -> None:
        super().__init__()
        self.remote = remote
        self._pages = _Pages(remote) if pages is None else pages
        self._at = 0
        self._next = 0
        self._ahead = 0

    def again(self) -> "RemoteFile":
        """The same object from its beginning, to be read beside this one; what was read is shared."""
        return RemoteFile(self.remote, self._pages)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.remote.size}[whence]
        if base + offset < 0:
            raise ValueError("a position in a file is not negative")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        view = view[: max(0, min(len(view), self.remote.size - self._at))]
        if view:
            in_order = self._at == self._next and self._at > 0
            self._ahead = min(max(2 * self._ahead, len(view)), MOST_BYTES // 2) if in_order else 0
            self._pages.read_into(self._at, view, self._ahead)
            self._at = self._next = self._at + len(view)
        return len(view)


def stamp_of(file: BinaryIO) -> tuple[Any, ...]:
    """The mark that tells a file, or an object of a place, from another of its name."""
    if isinstance(file, RemoteFile):
        return file.remote.stamp
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def as_file(remote: RemoteObject) -> BinaryIO:
    """The object as a file."""
    return cast(BinaryIO, RemoteFile(remote))


def is_remote(file: BinaryIO) -> bool:
    """Whether a file is an object of a place, which has no descriptor."""
    return isinstance(file, RemoteFile)


def again(file: BinaryIO) -> Any:
    """The object that `file` is, to be read beside it."""
    assert isinstance(file, RemoteFile)
    return file.again()


class ByPosition:
    """The bytes of a file where they lie. Several threads may read one file so, each by a reader of its own: the place
    of the file itself, which they share, stays where it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = again(file) if is_remote(file) else file

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        remote = is_remote(self._file)
        return int(self._file.seek(0, io.SEEK_END)) if remote else os.fstat(self._file.fileno()).st_size

    def read(self, at: int, length: int) -> bytes:
        """So many bytes from byte `at` on; fewer where the file ends before."""
        if not is_remote(self._file):
            return os.pread(self._file.fileno(), length, at)
        self._file.seek(at)
        return bytes(self._file.read(length))
