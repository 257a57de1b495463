"""Children of multiprocessing's method `spawn` that start in hundredths of a second: forks of a warm process.

The child of a slot, the helper of an api and the ranks of a study are spawned: a new interpreter imports for a second
of computing, and the tests start some hundred of them. Within `warm_children` a nursery, a process that has imported
what they need, forks them instead. What a child runs is the same, with the arguments, files and environment that it
would get, and its parent is who asked for it: the process that forks a child ends at once, and Linux gives the child to
the nearest ancestor that adopts orphans.
"""

import ctypes
import fcntl
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import util
from pathlib import Path
from typing import Any

from warpfold.kernels.machine.parent_death import end_with

NAME = "spawned child"
"""The name of a child among processes: its command line is that of the nursery."""

_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36
_HEAD = struct.Struct("!QQ")  # how many bytes of pickle follow, and how many files come with them
_STANDARD = (0, 1, 2)
_libc = ctypes.CDLL(None, use_errno=True)
_spawn: Callable[..., int] = util.spawnv_passfds


class Nursery:
    """A process that forks children for the one that has this object."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._turn = threading.Lock()

    @classmethod
    def forked(cls) -> "Nursery":
        """A fork of this process, which must have a single thread. It ends with this process."""
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            _take((*_STANDARD, theirs.fileno()), (*_STANDARD, 3))  # and no other file, which would never close
            serve(socket.socket(fileno=3), parent=os.getppid())
            os._exit(0)
        theirs.close()
        return cls(ours)

    def start(self, code: str, files: Sequence[int]) -> int:
        """Fork a child of this process that runs `code` with `files` open, by the numbers that they have here; its
        process id."""
        request = pickle.dumps((code, tuple(files), dict(os.environ), Path.cwd(), os.getpid()))
        with self._turn, _adopting():
            socket.send_fds(self._end, [_HEAD.pack(len(request), len(files))], list(files))
            self._end.sendall(request)
            (pid,) = struct.unpack("!q", _exactly(self._end, 8))
        return int(pid)

    def close(self) -> None:
        """Start no more children. Those that were started go on."""
        self._end.close()


@contextmanager
def warm_children(nursery: Callable[[], Nursery]) -> Iterator[None]:
    """Within the block multiprocessing's method `spawn` forks the children of this process. `nursery` makes the nursery
    when the first is wanted."""
    made: list[Nursery] = []

    def spawn(path: str, arguments: Sequence[Any], files: Sequence[int]) -> int:
        if "--multiprocessing-fork" not in arguments:  # a fork server, or a tracker of resources
            return _spawn(path, arguments, files)
        if not made:
            made.append(nursery())
        return made[0].start(arguments[arguments.index("-c") + 1], [*_STANDARD, *files])

    _set_spawn(spawn)
    try:
        yield
    finally:
        _set_spawn(_spawn)
        for each in made:
            each.close()


@contextmanager
def real_children() -> Iterator[None]:
    """Within the block the method `spawn` starts interpreters, whatever is set outside of it."""
    before = util.spawnv_passfds
    _set_spawn(_spawn)
    try:
        yield
    finally:
        _set_spawn(before)


def _set_spawn(function: Callable[..., int]) -> None:
    util.spawnv_passfds = function


@contextmanager
def _adopting() -> Iterator[None]:
    """Within the block an orphan among the descendants of this process becomes its child."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)


def name(process: str) -> None:
    """What this process is called among processes; Linux keeps 15 letters."""
    _libc.prctl(_PR_SET_NAME, process.encode())


# --- in the nursery


def serve(end: socket.socket, parent: int | None = None) -> None:
    """Body of the nursery. It ends when the other end of the connection is closed, and with `parent`."""
    if parent is not None:
        end_with(parent)
    name("nursery")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            head, files, _, _ = socket.recv_fds(end, _HEAD.size, 256)
            length, count = _HEAD.unpack(head + _exactly(end, _HEAD.size - len(head)))
            request = _exactly(end, length)
        except ConnectionError:
            return
        assert len(files) == count, "as many files as were sent"
        end.sendall(struct.pack("!q", _orphan(request, files)))
        for file in files:
            os.close(file)


def _orphan(request: bytes, files: Sequence[int]) -> int:
    """A fork of a fork that has ended already; its process id."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        between = os.getpid()
        child = os.fork()
        if child == 0:
            _become(request, files, between)
        os.write(writing, struct.pack("!q", child))
        os._exit(0)
    os.waitpid(between, 0)
    (child,) = struct.unpack("!q", os.read(reading, 8))
    os.close(reading)
    os.close(writing)
    return int(child)


def _become(request: bytes, files: Sequence[int], between: int) -> None:
    """Body of a child: what a new interpreter does that runs the code. Does not return."""
    code, numbers, environment, folder, parent = pickle.loads(request)  # noqa: S301 (our own parent)
    while os.getppid() == between:
        time.sleep(0.0005)
    if os.getppid() != parent:
        os._exit(1)
    name(NAME)
    exit_code = 1
    try:
        _take(files, numbers)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        util._finalizer_registry.clear()  # type: ignore[attr-defined]
        util._run_after_forkers()  # type: ignore[attr-defined]
        sys.argv = ["-c", "--multiprocessing-fork"]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nursery = Nursery.forked()
        with warm_children(lambda: nursery):
            exec(code, {"__name__": "__main__"})  # noqa: S102 (what multiprocessing would have an interpreter run)
        exit_code = 0
    except SystemExit as end:
        exit_code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _take(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Open the files by these numbers, and close all others."""
    above = max(*files, *numbers, 255) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, above) for file in files]
    os.closerange(0, above)
    for file, number in zip(moved, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)


def _exactly(end: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError at the end of the connection."""
    came = bytearray()
    while len(came) < count:
        piece = end.recv(count - len(came))
        if not piece:
            raise ConnectionResetError("the other end is closed")
        came += piece
    return bytes(came)
