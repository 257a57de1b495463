"""Locks between the processes of the tests: what several of them need, one makes while the others wait for it."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WAIT_S = 60.0
_AGAIN_S = 0.02


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Meanwhile no other process is in a turn of this file. It is no lock between the threads of a process.

    A process that waits for a minute goes on without: a process that a test has stopped may hold the lock.
    """
    with path.open("w") as file:
        _wait(file.fileno())
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough where a fork has the file open, too


def _wait(file: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_AGAIN_S)
