"""The service's processes under a supervisor of the tests, which starts a dead process again at once."""

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.support import processes
from tests.support.waiting import until
from warpfold.app.config import Settings

WORKER = ("warpfold.worker", "--slot", "cpu")
DISPATCHER = ("warpfold.worker.dispatcher",)


@dataclass
class Fleet:
    """Processes by name, kept alive until the end of the test."""

    settings: Settings
    log: Path
    commands: Mapping[str, Sequence[str]]
    deaths: dict[str, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, processes.Process] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kill(self, name: str) -> None:
        """Send SIGKILL."""
        with self._lock:
            self._running[name].kill()

    def stop(self, name: str) -> None:
        """Send SIGSTOP: the process stays, and does nothing."""
        with self._lock:
            self._running[name].send_signal(signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """Send SIGCONT."""
        with self._lock:
            self._running[name].send_signal(signal.SIGCONT)

    def process(self, name: str) -> psutil.Process:
        """The process that runs now."""
        with self._lock:
            return psutil.Process(self._running[name].pid)

    def child(self, name: str) -> psutil.Process:
        """A worker's computing child, once there is one."""
        return until(lambda: processes.spawned(self._running[name].pid), describe=self._last_words)[0]

    def wait_until_logged(self, words: str, times: int = 1, within_s: float = 120.0) -> None:
        until(lambda: self.log.read_text().count(words) >= times, within_s, describe=self._last_words)

    def keep_alive(self) -> None:
        while not self.over.wait(0.02):
            with self._lock:
                for name, process in self._running.items():
                    if process.poll() is not None:
                        self.deaths[name] = self.deaths.get(name, 0) + 1
                        self._start(name)

    def start(self) -> None:
        for name in self.commands:
            self._start(name)

    def end(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGCONT)  # what is stopped hears no SIGTERM
        processes.end(list(self._running.values()))

    def _last_words(self) -> str:
        return self.log.read_text()[-3000:]

    def _start(self, name: str) -> None:
        self._running[name] = processes.start(self.settings, self.log, *self.commands[name])


@contextmanager
def fleet(settings: Settings, log: Path, **commands: Sequence[str]) -> Iterator[Fleet]:
    """A running fleet."""
    fleet = Fleet(settings, log, commands)
    fleet.start()
    keeper = threading.Thread(target=fleet.keep_alive)
    keeper.start()
    try:
        yield fleet
    finally:
        fleet.over.set()
        keeper.join()  # the supervisor ends first, so that it starts no process any more
        fleet.end()
