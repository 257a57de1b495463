"""Processes of the service that start in hundredths of a second: forks of a process that has imported the service.

`python -m …` imports for one to two seconds of computing, at each start. What a fork runs afterwards is the same: the
module as `__main__`, with its arguments and its environment. The children that it spawns are forks, too
(`tests/support/warm_children.py`).
"""

import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from multiprocessing import connection, forkserver, get_context, reduction
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from tests.support.warm_children import Nursery, name, serve, warm_children

_ROOT = Path(__file__).parents[2]
_TURN = threading.Lock()
"""A look at a process takes its exit code from a pipe, which has it once."""


class Fork:
    """A process that runs `python -m module …`, with the methods of `subprocess.Popen`."""

    def __init__(self, module: Sequence[str], environment: Mapping[str, str], output: "Path | Descriptor") -> None:
        """The process's output is appended to a file, or goes to a descriptor."""
        if isinstance(output, Path):
            output.touch()
            output = output.absolute()
        with _TURN:
            self._process: ForkServerProcess = _context().Process(
                target=_run, args=(tuple(module), dict(environment), output, str(Path.cwd()))
            )
            self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        with _TURN:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def nursery() -> Nursery:
    """A nursery for the children of this process."""
    ours, theirs = socket.socketpair()
    with _TURN:
        _context().Process(target=serve, args=(theirs,), daemon=True).start()
    theirs.close()
    return Nursery(ours)


def _context() -> ForkServerContext:
    """Its processes are forks of one that has imported the service, which begins with the first call."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.preloaded"])
    with chdir(_ROOT):  # where `tests` is found
        forkserver.ensure_running()
    return context


def run(module: Sequence[str], environment: Mapping[str, str], log: Path, within_s: float = 60.0) -> tuple[int, str]:
    """The exit code of `python -m module …`, and what it prints, by way of the new file `log`."""
    log.unlink(missing_ok=True)
    return Fork(module, environment, log).wait(within_s), log.read_text()


@dataclass(frozen=True)
class Descriptor:
    """An open file of this process, as the standard output and error of a fork."""

    number: int

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (reduction.DupFd(self.number),)


def _received(sent: Any) -> Descriptor:
    return Descriptor(sent.detach())


def _run(module: Sequence[str], environment: Mapping[str, str], output: Path | Descriptor, folder: str) -> None:
    """Body of the fork: what `python -m module …` does."""
    os.chdir(folder)
    opened = output.number if isinstance(output, Descriptor) else os.open(output, os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(opened, descriptor)
    os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(module)
    name(module[0].rpartition(".")[2])
    warnings.filterwarnings("ignore", ".* found in sys.modules after import of package")  # as it is meant here
    nursery = Nursery.forked()  # now, while there is a single thread
    with warm_children(lambda: nursery):
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
