"""What goes on in a nursery (`worker.nursery`) and in the processes that it forks.

A nursery has one thread, and opens no file, no connection and no device, because a fork would inherit half of them.
What it forks belongs to the process that asked for it: the process between the two ends at once, and Linux gives the
orphan to the nearest ancestor that adopts orphans.

`python -m warpfold.worker.forks DESCRIPTOR PARENT` is a nursery in an interpreter of its own.
"""

import atexit
import ctypes
import fcntl
import gc
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from warpfold.kernels.cpu.memory import give_back
from warpfold.kernels.machine.parent_death import end_with
from warpfold.worker.start import imports

HEAD = struct.Struct("!Q")  # the length of the pickle that follows
PID = struct.Struct("!q")

_PR_SET_CHILD_SUBREAPER = 36
_MOST_FILES = 250
_STANDARD = 3
"""The numbers below this one are those of the standard files."""
_ARG_START = 45
"""The place of the address of the command line in /proc/self/stat, counted behind the name in brackets."""
_libc = ctypes.CDLL(None, use_errno=True)

Prepare = Callable[[], None]
"""Imports, in the nursery, what its forks need. It is pickled: a function of a module, or a `partial` of one."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a process is to be.

    `title` is its command line behind `python -m`. `body` is pickled, as `Prepare` is; the exit code is what it
    returns, 0 for None. The files that come with the order get the numbers `files`; the other standard files are those
    of the nursery, and so is the environment if none is given. `dies_by` is the signal that the process gets when its
    parent dies. A process that leads a session gets no signals of the terminal.
    """

    title: str
    body: Callable[[], object]
    files: Sequence[int] = ()
    environment: Mapping[str, str] | None = None
    dies_by: signal.Signals = signal.SIGKILL
    leads_session: bool = False


@contextmanager
def adopting() -> Iterator[None]:
    """Within the block an orphan among the descendants of this process becomes its child."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)


def exactly(end: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError at the end of the connection."""
    came = bytearray()
    while len(came) < count:
        piece = end.recv(count - len(came))
        if not piece:
            raise ConnectionResetError("the other end is closed")
        came += piece
    return bytes(came)


def nurse(descriptor: int, parent: int, prepare: Prepare) -> NoReturn:
    """Body of a nursery, which takes orders from the socket `descriptor` until its `parent` ends."""
    code = 1
    try:
        end_with(parent)
        _take([descriptor], [_STANDARD])  # and no other file, which would never close
        _set_title("warpfold.worker.nursery")
        interrupt = _default_signals()
        with imports():
            prepare()
        give_back()
        gc.disable()  # a collection would copy the pages that the forks share
        assert threading.active_count() == 1, "a process of several threads cannot be forked"
        with socket.socket(fileno=_STANDARD) as end:
            while True:
                request, files = _received(end)
                end.sendall(PID.pack(_orphan(request, files, interrupt)))
                for file in files:
                    os.close(file)
    except ConnectionError:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _default_signals() -> object:
    """Undo what the parent handles before it forks its nursery. An interrupt of the terminal reaches the nursery, too,
    and the parent decides when to end. Returns the handler of interrupts that its forks begin with."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    return before if before is signal.SIG_IGN else signal.default_int_handler


def _received(end: socket.socket) -> tuple[bytes, Sequence[int]]:
    head, files, _, _ = socket.recv_fds(end, HEAD.size, _MOST_FILES)
    (length,) = HEAD.unpack(head + exactly(end, HEAD.size - len(head)))
    return exactly(end, length), files


def _orphan(request: bytes, files: Sequence[int], interrupt: object) -> int:
    """A fork of a fork that has ended already; its process id."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, interrupt)  # type: ignore[arg-type]
            _become(request, files)
        os.write(writing, PID.pack(child))
        os._exit(0)
    os.waitpid(between, 0)
    (child,) = PID.unpack(os.read(reading, PID.size))
    os.close(reading)
    os.close(writing)
    return int(child)


def _become(request: bytes, files: Sequence[int]) -> NoReturn:
    """Body of a process that is forked. The first of its files is its tether, which its parent watches."""
    code = 1
    try:
        gc.enable()
        order: Order
        order, parent = pickle.loads(request)  # noqa: S301 (our own parent)
        if not os.read(files[0], 1):
            os._exit(1)  # the parent never learned of this process
        end_with(parent, order.dies_by)
        if order.leads_session:
            os.setsid()
        _take(files, [max(_STANDARD, *order.files, 0) + 1, *order.files])
        if 2 in order.files:
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        _set_title(order.title)
        if order.environment is not None:
            os.environ.clear()
            os.environ.update(order.environment)
        code = _exit_code(order.body())
    except SystemExit as end:
        code = _exit_code(end.code)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined] # what an interpreter does at its end
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError, AttributeError):  # a full disk, or no such stream
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _exit_code(result: object) -> int:
    if isinstance(result, str):
        print(result, file=sys.stderr)
        return 1
    return result if isinstance(result, int) else 0


def _take(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Open the files by these numbers, and close all others but the standard files."""
    above = max(*files, *numbers, 255) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, above) for file in files]
    os.closerange(_STANDARD, above)
    for file in files:
        os.closerange(file, file + 1)  # it may be a standard file of a process that began without
    for file, number in zip(moved, numbers, strict=True):
        os.dup2(file, number, inheritable=number < _STANDARD)
        os.close(file)


def _set_title(title: str) -> None:
    """Make `python -m` and the title the command line of this process, as far as there is room for it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[_ARG_START : _ARG_START + 2])
    words = f"python -m {title}".encode().replace(b" ", b"\0")[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, words, len(words))


if __name__ == "__main__":
    descriptor = int(sys.argv[1])
    with socket.socket(fileno=descriptor) as first:
        preparing: Prepare = pickle.loads(_received(first)[0])  # noqa: S301 (our own parent)
        first.detach()
    nurse(descriptor, int(sys.argv[2]), preparing)
