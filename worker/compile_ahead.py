"""Compiles the kernels of a CPU slot before a job needs them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class CompileAhead:
    """A process of the lowest priority that compiles into the cache on disk. It stands still while a job runs: a job
    that needs a kernel which is not there yet compiles it by itself. Its end, however it comes, means nothing to us.

    Without `wanted` there is none. All methods belong to the thread that made the object, as those of `Slot`.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, at the first call."""
        if self._wanted:
            self._wanted = False
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warpfold.kernels.cpu.ahead", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int | None:
        """Its process id while it works, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It stands still within the block."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # does nothing where it has ended
