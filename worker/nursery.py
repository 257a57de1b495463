"""The nursery of a process: it has imported what others need, and forks them.

A new interpreter imports for a second of computing, and holds what it imported for itself. A fork begins at once, and
shares the memory of its imports with all other forks. So `serve` has a nursery for its processes, and each worker has
one for the children of its slot (docs/decisions/0100-processes-are-forked.md). What a nursery does is in `forks.py`;
this is the side of the process that has one.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from warpfold.kernels.cpu.memory import give_back
from warpfold.worker import forks
from warpfold.worker.forks import HEAD, PID, Order, Prepare, adopting, exactly, nurse

_ANSWERS_WITHIN_S = 120.0  # its imports take some seconds, and many on a busy machine
_AFRESH = 3
"""The number by which a new interpreter has its end of the connection."""


class NurseryLost(RuntimeError):
    """A nursery that was started anew did not fork either."""


class Forked:
    """A process that a nursery has forked for this one, with the methods of `subprocess.Popen`."""

    def __init__(self, pid: int, tether: int) -> None:
        self.pid = pid
        self._tether: int | None = tether  # the process has the other end, and closes it by ending
        self._code: int | None = None

    @property
    def sentinel(self) -> int:
        """A file number that can be read once the process has ended."""
        assert self._tether is not None, "the process is watched no more"
        return self._tether

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """The exit code, or None while the process runs; a negative code is the number of a signal."""
        if self._code is None:
            with suppress(ChildProcessError):  # another thread looks, too
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once there is one. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self._code is None:
            ended = select.poll()
            ended.register(self.sentinel, select.POLLIN)
            if not ended.poll(None if timeout is None else max(0.0, timeout) * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        while (code := self.poll()) is None:  # Linux closes the files of a process before it reports the exit code
            time.sleep(0.001)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Watch the process no more. It goes on if it has not ended."""
        if self._tether is not None:
            os.close(self._tether)
            self._tether = None

    def __del__(self) -> None:
        self.close()


class Nursery:
    """The nursery of this process, which ends with it. Should the nursery be lost, a new interpreter is the next.

    The object is made while this process has one thread and has opened nothing yet, unless the nursery is to begin
    `afresh`, as a new interpreter.
    """

    def __init__(self, prepare: Prepare, *, afresh: bool = False) -> None:
        """`prepare` imports, in the nursery, what its forks need."""
        self._prepare = prepare
        self._turn = threading.Lock()
        if afresh:
            self._begin_afresh()
        else:
            self._begin_as_fork()

    @property
    def pid(self) -> int:
        """The process id of the nursery."""
        return self._pid

    def start(self, order: Order, files: Sequence[int] = ()) -> Forked:
        """Fork a process of this one. It gets `files`, by the numbers that the order gives them, beside the standard
        files of the nursery. Raises NurseryLost."""
        with self._turn:
            try:
                return self._forked(order, files)
            except OSError:  # it was killed, or it was stopped for long
                self.close()
                self._begin_afresh()
            try:
                return self._forked(order, files)
            except OSError as error:
                raise NurseryLost(f"no process can be forked: {error}") from None

    def close(self) -> None:
        """Fork no more. What was forked goes on."""
        self._end.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _forked(self, order: Order, files: Sequence[int]) -> Forked:
        assert len(order.files) == len(files), "as many numbers as files"
        request = pickle.dumps((order, os.getpid()))
        tether, theirs = socket.socketpair()
        with theirs, adopting():
            try:
                socket.send_fds(self._end, [HEAD.pack(len(request))], [theirs.fileno(), *files])
                self._end.sendall(request)
                (pid,) = PID.unpack(exactly(self._end, PID.size))
                tether.send(b"!")  # a process that nobody knows does not get this, and ends
            except OSError:
                tether.close()
                raise
        return Forked(pid, tether.detach())

    def _begin_as_fork(self) -> None:
        assert threading.active_count() == 1, "a process of several threads cannot be forked"
        self._end, theirs = socket.socketpair()
        parent = os.getpid()
        give_back()
        self._pid = os.fork()
        if self._pid == 0:
            self._end.close()
            nurse(theirs.detach(), parent, self._prepare)
        theirs.close()
        self._end.settimeout(_ANSWERS_WITHIN_S)

    def _begin_afresh(self) -> None:
        self._end, theirs = socket.socketpair()
        with theirs:
            arguments = [sys.executable, "-P", "-m", forks.__name__, str(_AFRESH), str(os.getpid())]
            passed = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), _AFRESH)]
            self._pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=passed)
        self._end.settimeout(_ANSWERS_WITHIN_S)
        request = pickle.dumps(self._prepare)
        self._end.sendall(HEAD.pack(len(request)) + request)
