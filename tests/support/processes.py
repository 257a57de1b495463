"""Processes of the service as tests start, watch and kill them."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import httpx
import psutil

from tests.support import warm_children
from tests.support.waiting import until
from tests.support.warm import fork
from warpfold.app.config import Settings
from warpfold.worker.child_process import CHILD


def environment(settings: Settings) -> dict[str, str]:
    """What makes a process read these settings."""
    set_fields = settings.model_dump(mode="json", exclude_none=True)
    for name in {"compile_ahead", "spare_child", "measure_rates"} - settings.model_fields_set:
        set_fields[name] = False  # tests of other things need no second process for each worker
    set_fields["data_roots"] = os.pathsep.join(str(root) for root in settings.data_roots)
    set_fields["dataset_urls"] = " ".join(settings.dataset_urls)
    set_fields["oidc_roles"] = ", ".join(f"{group}={role}" for group, role in settings.oidc_roles.items())
    return {**os.environ, **{f"WARPFOLD_{name.upper()}": str(value) for name, value in set_fields.items()}}


class Process(Protocol):
    """The operations of tests on a process, however it was started."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


def start(settings: Settings, log: Path, *module: str) -> Process:
    """What `python -m module …` does with these settings, its output appended to `log`, in a fork of a process that has
    imported the service."""
    return fork(module, environment(settings), log)


def start_afresh(settings: Settings, log: Path, *module: str) -> Process:
    """The same by a new interpreter, for tests of what a start loads."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *module], env=environment(settings), stdout=output, stderr=output
        )


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(http: httpx.Client) -> bool:
    """Whether the api takes requests. It logs the end of its start before it listens."""
    try:
        return http.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def end(processes: Sequence[Process]) -> None:
    """Stop them in an orderly way; an error if one does not follow. None is left behind."""
    for process in processes:
        process.terminate()
    try:
        for process in processes:
            process.wait(60)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def spawned(pid: int) -> list[psutil.Process]:
    """The children of process `pid` that compute: the child of a slot, and what multiprocessing spawned, but not its
    resource tracker."""
    try:
        return [child for child in psutil.Process(pid).children() if is_spawned(child)]
    except psutil.NoSuchProcess:
        return []


def is_spawned(process: psutil.Process) -> bool:
    """Whether the process is the child of a slot, or multiprocessing spawned it, or a nursery forked it in place of
    that."""
    try:
        words = process.cmdline()
        return bool({CHILD, warm_children.NAME} & set(words)) or any("spawn_main" in word for word in words)
    except psutil.Error:  # it ended while it was looked at
        return False


def child_of(process: Process) -> psutil.Process:
    """The computing child of a worker, once there is one."""
    return until(lambda: spawned(process.pid), describe=lambda: "the worker has no child")[0]


def wait_for_ends(processes: Sequence[psutil.Process], within_s: float = 60.0) -> None:
    """Wait until all of them have ended. A process that ended stays as a zombie where nobody waits for orphans."""
    until(
        lambda: not any(map(_works, processes)),
        within_s,
        describe=lambda: f"still there: {[process for process in processes if _works(process)]}",
    )


def _works(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
