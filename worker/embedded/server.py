"""The base of the embedded servers."""

import hashlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Protocol

import psutil

_LONGEST_SOCKET_PATH = 100  # of sockaddr_un: 108 on Linux, 104 elsewhere


class ServerMissing(RuntimeError):
    """This machine has no program of the server."""


class EmbeddedServer(Protocol):
    """A server that keeps its data in one folder. An instance may find it already running and take it over."""

    @property
    def url(self) -> str:
        """The url to which clients connect. It is known before the server runs, and stays the same."""
        ...

    @property
    def pid(self) -> int | None:
        """The id of the server's process, or None while it does not run."""
        ...

    def start(self) -> str:
        """Start the server unless it runs, wait until it answers, and return its url. Raises ServerMissing or
        RuntimeError."""
        ...

    def is_running(self) -> bool: ...

    def stop(self) -> None:
        """Stop the server in an orderly way, within a few seconds. Nothing that it confirmed is lost in any case."""
        ...


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
