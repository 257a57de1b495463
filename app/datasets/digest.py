"""The SHA-256 of a file while it grows, taken by a thread behind the one that writes."""

import hashlib
import os
import threading

_PIECE = 2 << 20
"""Bytes that are read and hashed at a time. After each of the two calls the thread needs the interpreter's lock again,
and where it has to wait for that, another thread takes its core. A piece that fits in a core's own cache would be read
a little faster, but would need the lock eight times as often."""

_BEHIND = 4 << 20
"""How many bytes may wait before a thread is worth its start."""

_FAR_BEHIND = 16 << 20
"""How many bytes may wait before the writer pauses. A writer that runs ahead takes the cores that the digest needs, and
the digest goes on alone at the end."""

_PAUSE_S = 0.02
"""The longest pause for one piece: a digest that takes up a long part from before must not stop the sender."""

_FLUSH_EVERY = 128 << 20


class FollowingDigest:
    """Hashes a growing file by reading it back from the page cache, so that it can follow the present writer or take up
    a part that an earlier request left. It flushes the file as it goes, so that the last flush has little left to
    do."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self._buffer = memoryview(bytearray())
        self._done = 0
        self._end = 0
        self._closed = self._finished = self._pausing = False
        self._error: BaseException | None = None
        self._flush_at = _FLUSH_EVERY
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._flush_due = threading.Condition(lock)
        self._follower: threading.Thread | None = None
        self._flusher: threading.Thread | None = None

    def advance(self, end: int) -> None:
        """Note that the file holds all bytes up to `end`. Waits a moment if the digest is far behind."""
        with self._changed:
            self._end = end
            if self._follower is None and end - self._done > _BEHIND:
                self._follower = threading.Thread(target=self._follow, name="digest", daemon=True)
                self._flusher = threading.Thread(target=self._flush, name="flush", daemon=True)
                self._follower.start()
                self._flusher.start()
            self._changed.notify_all()
            if end >= self._flush_at:
                self._flush_due.notify()
            if end - self._done > _FAR_BEHIND:
                self._pausing = True
                self._changed.wait_for(self._is_near, _PAUSE_S)
                self._pausing = False

    def hexdigest(self) -> str:
        """Waits until all bytes are hashed and on the disk; returns their digest. Raises OSError."""
        self._end_threads(finished=True)
        try:
            while self._done < self._end and self._error is None:
                self._update()
        finally:
            if self._flusher is not None:
                self._flusher.join()
        os.fsync(self._descriptor)
        if self._error is not None:
            raise self._error
        return self._hash.hexdigest()

    def close(self) -> None:
        """End the threads of an upload that goes no further."""
        self._end_threads(finished=False)
        if self._flusher is not None:
            self._flusher.join()

    def _end_threads(self, *, finished: bool) -> None:
        with self._changed:
            self._closed = True
            self._finished = self._finished or finished
            self._changed.notify_all()
            self._flush_due.notify()
        if self._follower is not None:
            self._follower.join()

    def _follow(self) -> None:
        try:
            while self._wait_for_more():
                self._update()
        except OSError as error:
            self._error = error

    def _flush(self) -> None:
        flushed = 0
        try:
            while self._wait_for_flush() or (self._finished and self._end > flushed):
                flushed = self._end
                self._flush_at = flushed + _FLUSH_EVERY
                os.fdatasync(self._descriptor)
        except OSError as error:
            self._error = error

    def _is_near(self) -> bool:
        return self._end - self._done <= _FAR_BEHIND // 2 or self._closed or self._error is not None

    def _wait_for_more(self) -> bool:
        """Wait until there is more to hash; False once the threads are to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._end > self._done or self._closed)
            return not self._closed

    def _wait_for_flush(self) -> bool:
        """Wait until there is enough to flush; False once the threads are to end."""
        with self._flush_due:
            self._flush_due.wait_for(lambda: self._end >= self._flush_at or self._closed)
            return not self._closed

    def _update(self) -> None:
        size = min(_PIECE, self._end - self._done)
        if size > len(self._buffer):  # a small upload needs a small buffer
            self._buffer = memoryview(bytearray(size))
        count = os.preadv(self._descriptor, [self._buffer[:size]], self._done)
        if not count:
            raise OSError(f"the file ends at {self._done}, before byte {self._end}")
        self._hash.update(self._buffer[:count])
        self._done += count
        if self._pausing and self._is_near():
            with self._changed:
                self._changed.notify_all()
