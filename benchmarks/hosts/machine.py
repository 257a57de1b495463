"""The processes of the drill's machines. `python -m benchmarks.hosts.machine NUMBER` is the fork server: it imports the
service once, and each machine is a fork of it with namespaces of its own, and each process of the service a fork of the
first process of its machine.

Orders come through the Unix socket of that file number, as JSON. A machine ends with the process that gives it orders.
"""

import ctypes
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.hosts import calls
from benchmarks.hosts.lab import has_ended
from benchmarks.hosts.wire import Wire

_MOST = 1 << 20
_IMPORTED = ("warpfold.app.__main__", "warpfold.worker.dispatcher", "warpfold.worker.boot")


def fork_server(number: int) -> None:
    """Make what is asked for until nobody asks any more: machines, and the wire between them."""
    for name in _IMPORTED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for machines
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls.unshare(calls.NEWNS)
    calls.keep_mounts_private()
    disks: set[str] = set()
    orders = socket.socket(fileno=number)
    orders.send(b"{}")
    while True:
        message, files, _, _ = socket.recv_fds(orders, _MOST, 1)
        if not message:
            return
        order = json.loads(message)
        control = socket.socket(fileno=files[0])
        if order.get("disk_bytes") is not None and order["folder"] not in disks:
            # Mounted here, so that the disk outlasts its machine.
            Path(order["folder"]).mkdir(parents=True, exist_ok=True)
            calls.mount("tmpfs", Path(order["folder"]), f"size={order['disk_bytes']},mode=700")
            disks.add(order["folder"])
        if os.fork() == 0:
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = 1
            try:
                if "machine" in order:
                    _make(order, control)
                else:
                    Wire(control).run()
                code = 0
            finally:
                os._exit(code)
        control.close()


def _make(order: Mapping[str, Any], control: socket.socket) -> None:
    """Fork the first process of a machine: it has number 1 in its namespace of processes, so that all of them end with
    it, at once, by SIGKILL."""
    calls.unshare(calls.NEWNET | calls.NEWNS | calls.NEWUTS | calls.NEWPID)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _First(order, control).run()
            code = 0
        finally:
            os._exit(code)
    control.send(json.dumps({"pid": pid}).encode())


class _First:
    """The first process of a machine: it starts and ends the others."""

    def __init__(self, order: Mapping[str, Any], control: socket.socket) -> None:
        os.setsid()
        calls.keep_mounts_private()
        calls.mount("proc", Path("/proc"))
        socket.sethostname(order["machine"])
        self._folder = Path(order["folder"])
        self._folder.mkdir(parents=True, exist_ok=True)
        if order["clock"] is not None:
            # The library that is loaded before all others answers for the kernel (benchmarks/hosts/clock.py).
            assert ctypes.CDLL(None).warpfold_clock_from(order["clock"].encode()) == 0
        self._control = control
        wire = calls.make_wire(order["address"])
        socket.send_fds(control, [b"{}"], [wire])
        os.close(wire)

    def run(self) -> None:
        """Obey until nobody gives orders any more."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            if not poll.poll(500):
                self._reap()
                continue
            message = self._control.recv(_MOST)
            if not message:
                return
            try:
                answer = self._obey(json.loads(message))
            except OSError as error:
                answer = {"error": str(error)}
            self._reap()
            self._control.send(json.dumps(answer).encode())

    def _obey(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        match order["do"]:
            case "start":
                return {"pid": self._start(order)}
            case "kill":
                os.kill(order["pid"], order["signal"])
            case "alive":
                return {"alive": not has_ended(order["pid"])}
            case "fill":
                self._fill()
            case "empty":
                (self._folder / "filler").unlink(missing_ok=True)
        return {}

    def _start(self, order: Mapping[str, Any]) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            self._control.close()
            os.setsid()
            log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for descriptor, replaced in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(descriptor, replaced)
            _become(order["words"], order["environment"], order["user"])
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _fill(self) -> None:
        """Leave no byte of the disk free."""
        with (self._folder / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            for size in (1 << 20, 1 << 12):
                with suppress(OSError):
                    while filler.write(b"\0" * size):
                        pass

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _become(words: Sequence[str], environment: Mapping[str, str], user: int | None) -> None:
    """Be the program that `words` name or, where the first word is `-m`, what Python does with the module."""
    if words[0] != "-m":
        if user is not None:
            os.setgid(user)
            os.setuid(user)
        os.execve(words[0], list(words), dict(environment))  # noqa: S606
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(words[1:])
    warnings.filterwarnings("ignore", ".* found in sys.modules after import of package")
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    fork_server(int(sys.argv[1]))
    os._exit(0)  # without tidying up all that was imported
