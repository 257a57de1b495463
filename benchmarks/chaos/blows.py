"""Blows against a running service: signals to its processes, and the loss of all that Redis holds."""

import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType

import psutil
from redis import Redis, RedisError

_SERVERS: Mapping[str, str] = MappingProxyType({"bin/postgres": "postgres", "valkey-server": "redis"})
"""What is in the name of a server's program, and what it is."""

_MODULES: Mapping[str, str] = MappingProxyType(
    {"warpfold.app": "api", "warpfold.worker.dispatcher": "dispatcher", "warpfold.worker": "worker"}
)
"""The modules that processes of `serve` run, and what they are."""


@dataclass(frozen=True)
class Target:
    """A service that runs with its data in `data_dir`, below a `warpfold serve` of this process."""

    data_dir: Path

    def processes(self) -> Mapping[str, Sequence[psutil.Process]]:
        """The processes of the service by what they are. Those that a worker has started are children. `serve` itself,
        with which its service ends, is none of them."""
        by_role: dict[str, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                role = self._role(process)
                if role is not None:
                    by_role.setdefault(role, []).append(process)
                if role == "worker":
                    by_role.setdefault("child", []).extend(process.children(recursive=True))
        return {role: processes for role, processes in by_role.items() if processes}

    def _role(self, process: psutil.Process) -> str | None:
        program, *words = process.cmdline() or [""]
        if any(str(self.data_dir) in word for word in (program, *words)):
            return next((role for name, role in _SERVERS.items() if name in program), None)
        # A fork has the environment of `serve` in /proc.
        if not Path(f"/proc/{process.pid}/fd/2").readlink().is_relative_to(self.data_dir / "logs"):
            return None
        return next((_MODULES[word] for word in words if word in _MODULES), None)

    def flush(self) -> None:
        """Take from Redis all that it holds."""
        socket = self.data_dir / "redis" / "redis.sock"
        with suppress(RedisError, OSError), Redis(unix_socket_path=str(socket), socket_timeout=5.0) as redis:
            redis.flushall()


def _kill(target: Target, draw: random.Random) -> str:
    role, process = _drawn(target, draw)
    with suppress(psutil.Error):
        process.send_signal(signal.SIGKILL)
    return f"SIGKILL of the {role}"


def _stop(target: Target, draw: random.Random) -> str:
    role, process = _drawn(target, draw)
    with suppress(psutil.Error):
        process.send_signal(signal.SIGSTOP)
        time.sleep(draw.uniform(1.0, 12.0))
        process.send_signal(signal.SIGCONT)
    return f"SIGSTOP of the {role}"


def _flush(target: Target, draw: random.Random) -> str:
    target.flush()
    return "FLUSHALL"


def _kill_everything(target: Target, draw: random.Random) -> str:
    for processes in target.processes().values():
        for process in processes:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
    return "SIGKILL of everything"


BLOWS: Sequence[tuple[Callable[[Target, random.Random], str], int]] = (
    (_kill, 10),
    (_stop, 5),
    (_flush, 3),
    (_kill_everything, 1),
)
"""What happens to a service, and how often beside the others. Each returns what it did."""


def _drawn(target: Target, draw: random.Random) -> tuple[str, psutil.Process]:
    by_role = target.processes()
    role = draw.choice(sorted(by_role))
    return role, draw.choice(by_role[role])


@dataclass
class Record:
    """What has happened, with the number of times."""

    times: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.times.values())

    def note(self, blow: str) -> None:
        self.times[blow] = self.times.get(blow, 0) + 1


@contextmanager
def blows(target: Target, seed: int, mean_s: float) -> Iterator[Record]:
    """Blows within the block, one after the other, with pauses of `mean_s` seconds on average."""
    record, over, draw = Record(), Event(), random.Random(seed)

    def strike() -> None:
        while not over.wait(draw.uniform(0.5 * mean_s, 1.5 * mean_s)):
            (blow,) = draw.choices([blow for blow, _ in BLOWS], [weight for _, weight in BLOWS])
            record.note(blow(target, draw))

    striking = Thread(target=strike)
    striking.start()
    try:
        yield record
    finally:
        over.set()
        striking.join()
