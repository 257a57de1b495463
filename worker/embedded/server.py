"""What the embedded servers have in common: how a server is found, started and ended."""

import hashlib
import os
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import psutil

_LONGEST_SOCKET_PATH = 100  # of sockaddr_un: 108 on Linux, 104 elsewhere


class ServerMissing(RuntimeError):
    """This machine has no program of the server."""


class EmbeddedServer(ABC):
    """A server that keeps its data in one folder, `data_dir`. An instance may find it already running and take it
    over."""

    name: ClassVar[str]
    """The server's name in messages."""
    start_s: ClassVar[float]
    """How long the server may take to answer after its start, in seconds."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.expanduser().resolve()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The url to which clients connect. It is known before the server runs, and stays the same."""

    @property
    @abstractmethod
    def log(self) -> Path:
        """The server's log, to which the server appends."""

    @property
    @abstractmethod
    def pid_file(self) -> Path:
        """The file that has the id of the server's process in its first line."""

    @property
    def pid(self) -> int | None:
        """The id of the server's process, or None while it does not run."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        pid = written_pid(self.pid_file)
        return pid if pid is not None and serving(pid, self._data_dir) else None

    def is_running(self) -> bool:
        return self.pid is not None

    def start(self) -> str:
        """Start the server unless it runs, wait until it answers, and return its url. Raises ServerMissing or
        RuntimeError."""
        launched = False
        give_up = time.monotonic() + self.start_s
        while not self._answers():
            if not self.is_running():
                if launched:
                    raise RuntimeError(f"{self.name} did not start; see {self.log}")
                self._launch()
                launched = True
            if time.monotonic() > give_up:
                raise RuntimeError(f"{self.name} does not answer; see {self.log}")
            time.sleep(0.01)
        return self.url

    @abstractmethod
    def stop(self) -> None:
        """Stop the server in an orderly way, within a few seconds. Nothing that it confirmed is lost in any case."""

    @abstractmethod
    def _launch(self) -> None:
        """Start the server's process as `self._process`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server answers a client."""


def serving(pid: int, data_dir: Path) -> bool:
    """Whether process `pid` runs and works in `data_dir`, as both servers do.

    A process that ended and was not yet waited for does not, nor does one that got the number of an earlier one.
    """
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.cwd() == str(data_dir))
    except psutil.Error:
        return False


def written_pid(file: Path) -> int | None:
    """The process id in the first line of `file`, None if the file or the number is missing."""
    try:
        return int(file.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def end(
    pid: int,
    data_dir: Path,
    signals: tuple[signal.Signals, ...],
    patience_s: float,
    child: subprocess.Popen[bytes] | None,
) -> None:
    """Send each signal in turn and give it its share of `patience_s`, until the server is gone."""
    for number in signals:
        if not serving(pid, data_dir):
            break
        os.kill(pid, number)
        give_up = time.monotonic() + patience_s / len(signals)
        while time.monotonic() < give_up and not _gone(pid):
            time.sleep(0.01)
    if child is not None and child.pid == pid:
        child.wait(patience_s)


def _gone(pid: int) -> bool:
    """Whether every thread of the process has ended. Redis has several, and its first one often ends first: then the
    process is a zombie that its parent cannot wait for yet."""
    try:
        process = psutil.Process(pid)
        return bool(process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1)
    except psutil.NoSuchProcess:
        return True


def socket_folder(data_dir: Path) -> Path:
    """A private folder for a server's socket: `data_dir`, or a short path made from it where that is too long."""
    if len(os.fsencode(data_dir)) < _LONGEST_SOCKET_PATH - len("/.s.PGSQL.5432"):
        return data_dir
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"warpfold-{os.getuid()}-{digest}"


def make_private(folder: Path, owner: int) -> None:
    """Make `folder` if it is missing, for user id `owner` alone. Raises RuntimeError if it is another user's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.getuid() == 0:
        os.chown(folder, owner, -1)
    if folder.stat().st_uid != owner:
        raise RuntimeError(f"{folder} belongs to another user")
