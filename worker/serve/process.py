"""A supervised process, which is started, watched, restarted when it dies, and stopped on request; and its log, which
is rotated. A process writes to a descriptor that it inherited, without the supervisor, because a supervisor that hangs
must not hold the process up. So a log is not renamed but copied and cut. That works because its writer appends. Lines
written between the last look of the copy and the cut, some microseconds, are lost.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.contract.backoff import Backoff
from warpfold.worker import start
from warpfold.worker.forks import Order
from warpfold.worker.nursery import Forked, Nursery

_QUICK_DEATH_S = 10.0
_SHORTEST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0
_LOOKS = 4

KEPT = 3
"""How many older parts of a log stay beside it: name.log.1, the latest, to name.log.3."""

log: FilteringBoundLogger = structlog.get_logger()


@dataclass
class Process:
    """A Python module with a function `main` that runs as a process of its own, which `nursery` forks, and whose output
    is appended to a log file.

    `restarts` counts how often it had to be started again. After a death that came soon after the start, the next
    start waits, twice as long each time.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    nursery: Nursery
    restarts: int = 0
    _process: Forked | None = field(default=None, repr=False)
    _started: float = 0.0
    _backoff: Backoff = field(default_factory=lambda: Backoff(_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S), repr=False)
    _restart_at: float | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        if self._process is not None:
            self._process.close()
        order = Order(
            " ".join(self.arguments),
            partial(start.run, self.arguments),
            files=(0, 1, 2),
            environment=dict(self.environment),
            dies_by=signal.SIGTERM,  # even if the supervisor is killed, nothing may be left behind
            leads_session=True,  # Ctrl-C reaches the supervisor alone, which then stops its processes in order
        )
        with Path(os.devnull).open("rb") as nothing, self._output() as output:
            self._process = self.nursery.start(order, [nothing.fileno(), output.fileno(), output.fileno()])
        self._started = time.monotonic()

    def _output(self) -> IO[bytes]:
        """The log, opened for appending, so that cutting it leaves no hole. On a full disk nothing is kept."""
        try:
            return self.log.open("ab")
        except OSError as error:
            log.error("there will be no log", process=self.name, error=str(error))
            return Path(os.devnull).open("ab")

    def exit_code(self) -> int | None:
        """The exit code of the process, or None while it runs."""
        return None if self._process is None else self._process.poll()

    def watch(self) -> int | None:
        """Return the exit code once after the process died, and start it again later. It is to be called often."""
        code = self.exit_code()
        if code is None:
            return None
        now = time.monotonic()
        if self._restart_at is None:
            if now - self._started >= _QUICK_DEATH_S:
                self._backoff.reset()
            self._restart_at = now + self._backoff.next()
            return code
        if now >= self._restart_at:
            self._restart_at = None
            self.restarts += 1
            self.start()
        return None

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, until: float) -> bool:
        """Whether the process ended before the monotonic time `until`."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


def stop_all(processes: Sequence[Process], within_s: float) -> list[str]:
    """Send SIGTERM to all at once, and SIGKILL to those that stay. Returns the names of the killed processes."""
    for process in processes:
        process.signal(signal.SIGTERM)
    until = time.monotonic() + within_s
    stubborn = [process for process in processes if not process.wait(until)]
    for process in stubborn:
        process.signal(signal.SIGKILL)
        process.wait(time.monotonic() + 1.0)
    return [process.name for process in stubborn]


def rotate(logs: Sequence[Path], most_bytes: int) -> None:
    """Cut every log that is longer than `most_bytes`, and keep its older parts beside it.

    Never raises: a full disk is no reason to end a process.
    """
    for path in logs:
        try:
            if path.stat().st_size > most_bytes:
                _rotate(path, most_bytes)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning("a log is not rotated", log=str(path), error=str(error))


def _rotate(path: Path, most_bytes: int) -> None:
    for number in range(KEPT - 1, 0, -1):
        if _part(path, number).exists():
            _part(path, number).replace(_part(path, number + 1))  # the oldest goes, and makes room on a full disk
    try:
        _copy(path, _part(path, 1), 2 * most_bytes)
    except OSError:
        _part(path, 1).unlink(missing_ok=True)
        if path.stat().st_size <= 2 * most_bytes:
            raise  # the next look tries again
        log.warning("the older lines of a log are given up: there is no room to keep them", log=str(path))
    os.truncate(path, 0)


def _copy(path: Path, part: Path, most_bytes: int) -> None:
    """Copy the last `most_bytes` of a log, in whole lines."""
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with path.open("rb") as lines, part.open("wb") as kept:
        if (beyond := path.stat().st_size - most_bytes) > 0:
            lines.seek(beyond)
            lines.readline()  # the rest of a line
        for _ in range(_LOOKS):  # the process may write during the copy
            shutil.copyfileobj(lines, kept, 1 << 20)
            kept.flush()


def _part(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
