"""The service's processes under a supervisor of the tests' own: what dies is started again at once."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.config import Settings
from tests.worker import processes

WORKER = ("worker", "--slot", "cpu")
DISPATCHER = ("worker.dispatcher",)


@dataclass
class Fleet:
    """Processes by name, kept alive until the end of the test."""

    settings: Settings
    log: Path
    commands: Mapping[str, Sequence[str]]
    deaths: dict[str, int] = field(default_factory=dict)
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        with self._lock:
            os.kill(self._running[name].pid, signal.SIGKILL)

    def kill_child(self, name: str) -> None:
        """SIGKILL to a worker's child."""
        with self._lock:
            processes.child_of(self._running[name]).kill()

    def child(self, name: str) -> psutil.Process:
        """A worker's computing child."""
        with self._lock:
            return processes.child_of(self._running[name])

    def wait_until_logged(self, words: str, times: int = 1, within_s: float = 60.0) -> None:
        give_up = time.monotonic() + within_s
        while self.log.read_text().count(words) < times:
            assert time.monotonic() < give_up, self.log.read_text()[-3000:]
            time.sleep(0.01)

    def start(self) -> None:
        for name, command in self.commands.items():
            self._running[name] = processes.start(self.settings, self.log, *command)

    def keep_alive(self) -> None:
        while not self._over.wait(0.02):
            with self._lock:
                for name, process in self._running.items():
                    # Asked again: what ended because all is over is not started again.
                    if process.poll() is not None and not self._over.is_set():
                        self.deaths[name] = self.deaths.get(name, 0) + 1
                        self._running[name] = processes.start(self.settings, self.log, *self.commands[name])

    def stop(self) -> None:
        self._over.set()
        with self._lock:
            processes.end([process for process in self._running.values() if process.poll() is None])


@contextmanager
def fleet(settings: Settings, log: Path, **commands: Sequence[str]) -> Iterator[Fleet]:
    """A running fleet. Machine code is compiled once for all of them."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "warpfold-tests-numba"))
    one = Fleet(settings, log, commands)
    one.start()
    keeper = threading.Thread(target=one.keep_alive)
    keeper.start()
    try:
        yield one
    finally:
        one.stop()
        keeper.join()
