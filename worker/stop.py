"""Turns SIGTERM, SIGINT and SIGHUP into a flag, and into a file number that a process can wait for."""

import os
import select
import signal
from types import FrameType


class StopRequested(Exception):
    """The process was asked to stop."""


class WaitAbandoned(Exception):
    """The caller gave up its wait for an event."""


class Stop:
    """Whether this process was asked to stop.

    It has a file number, so that it can stand in a `select` beside pipes and sockets.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._requested = False

    @property
    def requested(self) -> bool:
        return self._requested

    def fileno(self) -> int:
        return self._reader

    def listen(self) -> None:
        """Handle SIGTERM, SIGINT and, unless the process runs under `nohup`, SIGHUP from now on. SIGHUP is handled
        because a closed terminal must leave no server behind. Only the main thread may call this."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def request(self) -> None:
        """Ask to stop, as a signal does."""
        if not self._requested:
            self._requested = True
            os.write(self._writer, b"!")

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or a stop is requested; return whether a stop is requested."""
        select.select([self._reader], [], [], max(0.0, seconds))
        return self._requested

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.request()
