"""The machines of a drill as the drill handles them: it starts and kills processes there, cuts machines off, and fills
their disks."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.hosts import clock
from benchmarks.hosts.calls import ROOT
from benchmarks.hosts.clock import Clock

_MOST = 1 << 16


def until(condition: Callable[[], bool], within_s: float, what: str, every_s: float = 0.05) -> float:
    """Wait for a condition; the seconds that it took. Raises TimeoutError, which says `what` did not happen."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            raise TimeoutError(f"{what}: not within {within_s:g} s")
        time.sleep(every_s)
    return time.monotonic() - began


def has_ended(pid: int) -> bool:
    """Whether a process runs no more. It may still be a zombie, for whom nobody has waited."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Channel:
    """Orders to a process of the lab, each with its answer."""

    def __init__(self) -> None:
        self.end, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.end.settimeout(120)

    def ask(self, order: Mapping[str, Any], file: int | None = None) -> dict[str, Any]:
        socket.send_fds(self.end, [json.dumps(order).encode()], [] if file is None else [file])
        answer: dict[str, Any] = json.loads(self.end.recv(_MOST))
        if "error" in answer:
            raise OSError(answer["error"])
        return answer

    def close(self) -> None:
        self.end.close()


@dataclass
class Machine:
    """One machine: a name, an address, a folder of its own, and a tree of processes."""

    lab: "Lab"
    name: str
    address: str
    folder: Path
    disk_bytes: int | None = None
    clock: Clock | None = None
    pid: int = 0
    _channel: Channel | None = None

    def boot(self) -> None:
        """Turn the machine on. Its disk has what it had before."""
        channel = Channel()
        order = {
            "machine": self.name,
            "address": self.address,
            "folder": str(self.folder),
            "disk_bytes": self.disk_bytes,
            "clock": None if self.clock is None else str(self.clock.path),
        }
        self.lab.fork_server.send_file(order, channel.theirs)
        wire: int | None = None
        for _ in range(2):  # the number of its first process, and the file of its interface, whichever comes first
            message, files, _, _ = socket.recv_fds(channel.end, _MOST, 1)
            if not message:
                raise OSError(f"machine {self.name} did not boot; see {self.lab.log}")
            self.pid = json.loads(message).get("pid", self.pid)
            wire = files[0] if files else wire
        assert wire is not None
        self.lab.wire.ask({"join": self.address}, wire)
        os.close(wire)
        self._channel = channel

    def power_off(self) -> None:
        """End all of its processes at once by SIGKILL. What they had sent is sent; nothing else says farewell."""
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: has_ended(self.pid), 30, f"machine {self.name} is off", every_s=0.01)
        if self._channel is not None:
            self._channel.close()

    def start(self, *words: str, user: int | None = None, environment: Mapping[str, str] = MappingProxyType({})) -> int:
        """Start a process there, with these variables beside those of all processes; its number there."""
        order = {
            "do": "start",
            "words": words,
            "user": user,
            "log": str(self.log),
            "environment": {**self.lab.environment(self), **environment},
        }
        return int(self._ask(order)["pid"])

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        self._ask({"do": "kill", "pid": pid, "signal": number})

    def alive(self, pid: int) -> bool:
        return bool(self._ask({"do": "alive", "pid": pid})["alive"])

    def fill_disk(self) -> None:
        self._ask({"do": "fill"})

    def empty_disk(self) -> None:
        self._ask({"do": "empty"})

    @property
    def log(self) -> Path:
        """What all of its processes print."""
        return self.lab.folder / f"{self.name}.log"

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._channel is not None, "the machine is off"
        return self._channel.ask(order)


class _ForkServer:
    """The process that machines and the wire are forks of."""

    def __init__(self, log: Path, library: Path | None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = dict(os.environ)
        if library is not None:
            environment["LD_PRELOAD"] = str(library)
        with theirs, log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.hosts.machine", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environment,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        self._end = ours
        ours.settimeout(120)
        if not ours.recv(_MOST):
            raise OSError(f"the fork server did not start; see {log}")

    def send_file(self, order: Mapping[str, Any], theirs: socket.socket) -> None:
        """Have something made that takes orders from `theirs`, which is closed here."""
        with theirs:
            socket.send_fds(self._end, [json.dumps(order).encode()], [theirs.fileno()])

    def close(self) -> None:
        self._end.close()
        self._process.wait(30)


@dataclass
class Lab:
    """All machines of a drill, and the wire between them."""

    folder: Path
    fork_server: _ForkServer
    wire: Channel
    skews: bool
    """Whether each machine has a clock of its own."""
    settings: Mapping[str, str]
    """What is in the environment of every process."""
    machines: list[Machine] = field(default_factory=list)
    _cut: set[str] = field(default_factory=set)

    @property
    def log(self) -> Path:
        """What the fork server and the wire print."""
        return self.folder / "lab.log"

    def machine(self, name: str, address: str, disk_bytes: int | None = None) -> Machine:
        """A new machine, turned on."""
        own = Clock(self.folder / f"{name}.clock") if self.skews else None
        machine = Machine(self, name, address, self.folder / name, disk_bytes, own)
        machine.boot()
        self.machines.append(machine)
        return machine

    def shape(self, delay_s: float, loss: float) -> None:
        """How late packets are from now on, and what share of them is lost."""
        self.wire.ask({"delay_s": delay_s, "loss": loss})

    def cut(self, *machines: Machine) -> None:
        """Carry no packet from or to these machines. Nobody is told, as when a switch has failed."""
        self._cut |= {machine.address for machine in machines}
        self.wire.ask({"cut": sorted(self._cut)})

    def heal(self, *machines: Machine) -> None:
        """Carry their packets again."""
        self._cut -= {machine.address for machine in machines}
        self.wire.ask({"cut": sorted(self._cut)})

    def packets(self) -> tuple[int, int]:
        """How many packets were carried, and how many were lost."""
        answer = self.wire.ask({})
        return answer["carried"], answer["lost"]

    def environment(self, machine: Machine) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WARPFOLD_")}
        own = {} if machine.clock is None else {"DRILL_CLOCK": str(machine.clock.path)}
        preload = {} if machine.clock is None else {"LD_PRELOAD": str(self.folder / "clock.so")}
        return {**inherited, **self.settings, **own, **preload, "WARPFOLD_DATA_DIR": str(machine.folder / "data")}


@contextmanager
def lab(folder: Path, settings: Mapping[str, str]) -> Iterator[Lab]:
    """A lab without machines, which all end with the block. Its files are in `folder`."""
    library = clock.compiled(folder)
    fork_server = _ForkServer(folder / "lab.log", library)
    wire = Channel()
    fork_server.send_file({}, wire.theirs)
    built = Lab(folder, fork_server, wire, library is not None, settings)
    try:
        yield built
    finally:
        for machine in built.machines:
            with suppress(ProcessLookupError, TimeoutError):
                machine.power_off()
        wire.close()
        fork_server.close()


def words_of(module: Sequence[str]) -> tuple[str, ...]:
    """The words of `python -m module …`, for `Machine.start`."""
    return "-m", *module
