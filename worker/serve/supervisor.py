"""Starts the service's processes, keeps them alive, and stops them in order."""

import errno
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
import structlog
from structlog.typing import FilteringBoundLogger

from warpfold.app.config import Settings
from warpfold.contract.backoff import Backoff
from warpfold.kernels.cpu.memory import share_of_memory
from warpfold.worker.nursery import Nursery
from warpfold.worker.serve.bootstrap import Servers
from warpfold.worker.serve.hangs import HangDetector
from warpfold.worker.serve.process import Process, rotate, stop_all
from warpfold.worker.stop import Stop

_READY_WITHIN_S = 120.0  # a first start may compile kernels
_ROTATE_EVERY_S = 5.0
_REVIVE_EVERY_S = 0.5
_LOOK_EVERY_S = 0.25
_ASK_EVERY_S = 0.1  # each question takes processor time from the processes that start
_MOST_ENDS = 3
"""A process that ends by itself so often before everything is ready will not start."""
_STOP_WITHIN_S = 3.0  # leaves the servers 2 s of the promised 5 s

log: FilteringBoundLogger = structlog.get_logger()


class NotReady(RuntimeError):
    """The service did not become ready; the message names the part at fault and its log."""


def service_processes(
    servers: Servers, settings: Settings, host: str, port: int, slots: Sequence[str], *, nursery: Nursery
) -> list[Process]:
    """The api, the dispatcher and one worker a slot, all with the same settings."""
    root = settings.data_dir
    environment = _environment(servers, root, settings.slot_memory_bytes or share_of_memory(len(slots)))

    def process(name: str, *arguments: str) -> Process:
        log_file = root / "logs" / f"{name.replace(':', '-')}.log"
        return Process(name, arguments, environment, log_file, nursery)

    return [
        process("api", "warpfold.app", "--host", host, "--port", str(port)),
        process("dispatcher", "warpfold.worker.dispatcher"),
        *(process(f"worker-{slot}", "warpfold.worker", "--slot", slot) for slot in slots),
    ]


def _environment(servers: Servers, root: Path, slot_memory_bytes: int) -> Mapping[str, str]:
    return {
        "NUMBA_CACHE_DIR": str(root / "cache" / "numba"),
        # The processes get the user's settings, except for the addresses of servers, folders and shares of memory,
        # which this process knows. They read the file of settings themselves.
        **os.environ,
        "WARPFOLD_SLOT_MEMORY_BYTES": str(slot_memory_bytes),
        "WARPFOLD_DATABASE_URL": servers.database_url,
        "WARPFOLD_REDIS_URL": servers.redis_url,
        "WARPFOLD_DATA_DIR": str(root),
    }


class Keeper:
    """Starts again what died, processes and embedded servers, and says so in the log."""

    def __init__(self, processes: Sequence[Process], servers: Servers) -> None:
        self._processes = processes
        self._servers = servers
        self._pause = Backoff(longest=10.0)
        self._next_revival = 0.0

    def look(self) -> Sequence[Process]:
        """Look once, and return the processes that ended by themselves since the last look. To be called often."""
        if time.monotonic() >= self._next_revival:
            try:
                for name in self._servers.revive():
                    log.warning("restarted", process=name)
                self._pause.reset()
                self._next_revival = time.monotonic() + _REVIVE_EVERY_S
            except RuntimeError as error:  # for instance a full disk; processes that need no such server go on
                log.error("cannot be restarted; trying on", error=str(error))
                self._next_revival = time.monotonic() + self._pause.next()
        gave_up = []
        for process in self._processes:
            before = process.restarts
            code = process.watch()
            if code is not None:
                log.warning("died", process=process.name, exit_code=code, log=str(process.log))
                if code >= 0:  # no signal killed it
                    gave_up.append(process)
            if process.restarts > before:
                log.warning("restarted", process=process.name, pid=process.pid, restarts=process.restarts)
        return gave_up


def wait_until_ready(
    processes: Sequence[Process], servers: Servers, url: str, stop: Stop, note: Callable[[str], None]
) -> bool:
    """Wait until the api, both servers and a live worker answer, and `note` what is waited for; False if the user asked
    to stop before that. What dies meanwhile is started again; a process that ends by itself several times is a reason
    to give up."""
    give_up = time.monotonic() + _READY_WITHIN_S
    noted = None
    keeper, ends = Keeper(processes, servers), Counter[str]()
    # Without a proxy of the environment, because the api is on this machine.
    with httpx.Client(timeout=2.0, trust_env=False) as http:
        while not stop.requested:
            for process in keeper.look():
                ends[process.name] += 1
                if ends[process.name] == _MOST_ENDS:
                    raise NotReady(f"{process.name} ended {_MOST_ENDS} times; {_last_words(process.log)}")
            missing = _missing(http, url)
            if missing is None:
                return True
            if time.monotonic() > give_up:
                raise NotReady(f"not ready after {_READY_WITHIN_S:.0f} s: {missing} See {processes[0].log.parent}")
            if missing != noted:
                note(missing)
                noted = missing
            stop.wait(_ASK_EVERY_S)
    return False


def _missing(http: httpx.Client, url: str) -> str | None:
    """A sentence about a part that does not answer yet; None if all parts answer, or if nothing is missing but workers
    that an admin has drained: jobs wait until they are resumed."""
    try:
        answer = http.get(f"{url}/readyz")
        if answer.status_code == 200:
            return None
        problem = answer.json()
        return None if problem.get("all_drained") else str(problem["detail"])
    except (httpx.TransportError, ValueError, KeyError):
        return "the api does not answer yet."


def _last_words(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return f"{path} ends with: {lines[-1]}" if lines else f"{path} is empty"


def keep_alive(
    processes: Sequence[Process], servers: Servers, stop: Stop, hangs: HangDetector, most_log_bytes: int
) -> None:
    """Watch until the user asks to stop. A process that dies or hangs is started again, and the log says so. No log
    grows far beyond `most_log_bytes`."""
    logs = [*(process.log for process in processes), *servers.logs()]
    next_rotation = 0.0
    keeper = Keeper(processes, servers)
    while not stop.requested:
        if time.monotonic() >= next_rotation:
            rotate(logs, most_log_bytes)
            next_rotation = time.monotonic() + _ROTATE_EVERY_S
        for process in hangs.find(processes):
            log.warning("hangs: killed", process=process.name, pid=process.pid)
            process.signal(signal.SIGKILL)  # a process that is stopped hears this signal, too
        keeper.look()
        stop.wait(_LOOK_EVERY_S)


def shut_down(processes: Sequence[Process], servers: Servers) -> None:
    """Stop everything within five seconds: first the service's processes, so that running jobs are queued again."""
    for name in stop_all(processes, _STOP_WITHIN_S):
        log.warning("killed", process=name)
    servers.stop()


def why_not_listen(host: str, port: int) -> str | None:
    """Why an api could not listen on `host` and `port`; None if it could."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be listened at ({error.strerror})"
    return None
