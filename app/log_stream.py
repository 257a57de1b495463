"""Writes lines of the log to standard error, even where its disk is full or its pipe is closed or never read. The work
that a line reports must not fail for that: a line that cannot be written is dropped and counted. Before the next line
that can be written, another line says how many were dropped.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Callable
from threading import RLock
from typing import TextIO

_STANDARD_ERROR = 2
_PATIENCE_MS = 100
"""How long a line waits for a slow reader. While lines are dropped, no line waits."""
_PIECE = select.PIPE_BUF
"""The number of bytes that a pipe takes at once if it takes any byte."""


class LogStream(io.TextIOBase):
    """A stream of lines for structlog and logging, whose writes never raise. A write waits for a reader at most 0.1 s,
    and for a disk as long as it takes. Several threads may use the stream.

    `note_of` makes the line that says how many lines were dropped.
    """

    def __init__(self, stream: TextIO | None, note_of: Callable[[int], str]) -> None:
        """`stream` is standard error, or None where standard error was closed before this process began."""
        self._stream = stream
        self._note_of = note_of
        self._direct = _writes_to(stream, _STANDARD_ERROR)
        self._waits = self._direct and not stat.S_ISREG(os.fstat(_STANDARD_ERROR).st_mode)
        self._lock = RLock()
        self._torn = False
        self._untold = 0
        self.dropped = 0

    def write(self, text: str) -> int:
        """Write whole lines, or count them as dropped."""
        with self._lock:
            if self._untold and self._put(f"{self._note_of(self._untold)}\n"):
                self._untold = 0
            if self._untold or not self._put(text):
                self._untold += 1
                self.dropped += 1
        return len(text)

    def _put(self, text: str) -> bool:
        try:
            return self._put_direct(text) if self._direct else self._put_on_stream(text)
        except (OSError, ValueError):  # a ValueError is a stream that was closed
            return False

    def _put_on_stream(self, text: str) -> bool:
        if self._stream is None:
            return False
        self._stream.write(text)
        self._stream.flush()
        return True

    def _put_direct(self, text: str) -> bool:
        """Write to the descriptor: a stream would keep the text that it could not write, and fail again and again."""
        whole = rest = (b"\n" if self._torn else b"") + text.encode(errors="backslashreplace")
        try:
            while rest and (not self._waits or self._is_writable()):
                # A file takes a line in one piece, so that the lines of several processes do not mix.
                written = os.write(_STANDARD_ERROR, rest[:_PIECE] if self._waits else rest)
                rest = rest[written:]
        finally:
            if len(rest) < len(whole):
                self._torn = bool(rest) and (self._waits or not _took_back(len(whole) - len(rest)))
        return not rest

    def _is_writable(self) -> bool:
        waiting = select.poll()
        waiting.register(_STANDARD_ERROR, select.POLLOUT)
        return bool(waiting.poll(0 if self._untold else _PATIENCE_MS))


def _took_back(count: int) -> bool:
    """Cut the `count` bytes that were written last off the log, whose disk is full: otherwise the next line, which may
    be that of another process, would stand behind half a line. False if others have written meanwhile."""
    try:
        end = os.lseek(_STANDARD_ERROR, 0, os.SEEK_CUR)
        if end < count or os.fstat(_STANDARD_ERROR).st_size != end:
            return False
        os.ftruncate(_STANDARD_ERROR, end - count)
    except OSError:
        return False
    return True


def standard_error() -> TextIO | None:
    """`sys.stderr`. If it was closed before this process began, its descriptor is taken now: otherwise the next file or
    connection would get that descriptor, and with it all that libraries print."""
    for descriptor in range(_STANDARD_ERROR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    return sys.stderr


def _writes_to(stream: TextIO | None, descriptor: int) -> bool:
    try:
        return stream is not None and stream.fileno() == descriptor
    except (OSError, ValueError):
        return False
