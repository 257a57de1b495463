"""A terminal of any width, for code that prints to a terminal."""

import fcntl
import os
import pty
import struct
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import redirect_stdout
from unittest import mock


def on_terminal(columns: int, prints: Callable[[], object]) -> str:
    """What `prints` writes to standard output, a terminal of so many columns, without what makes letters bold."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    read: list[bytes] = []
    reader = threading.Thread(target=_read, args=(master, read))
    reader.start()
    try:
        dumb = {"TERM": "dumb", "COLUMNS": str(columns)}
        with mock.patch.dict(os.environ, dumb), os.fdopen(slave, "w") as screen, redirect_stdout(screen):
            prints()
    finally:
        reader.join()
        os.close(master)
    return b"".join(read).decode()


def _read(master: int, read: list[bytes]) -> None:
    try:
        while piece := os.read(master, 1 << 16):
            read.append(piece)
    except OSError:  # the other end is closed
        return
