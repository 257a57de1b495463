"""Processes of the service as tests start, watch and kill them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from app.config import Settings


def environment(settings: Settings) -> dict[str, str]:
    """What makes a process read these settings."""
    given = settings.model_dump(mode="json", exclude_none=True)
    given["data_roots"] = os.pathsep.join(str(root) for root in settings.data_roots)
    return {**os.environ, **{f"WARPFOLD_{name.upper()}": str(value) for name, value in given.items()}}


def start(settings: Settings, log: Path, *module: str) -> "subprocess.Popen[bytes]":
    """`python -m module …` with these settings, its output appended to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *module], env=environment(settings), stdout=output, stderr=output
        )


def end(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Stop them in an orderly way; an error if one does not follow."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(10)


def child_of(process: "subprocess.Popen[bytes]") -> psutil.Process:
    """The computing child of a worker: the one that is not multiprocessing's resource tracker."""
    give_up = time.monotonic() + 20
    while time.monotonic() < give_up:
        for child in psutil.Process(process.pid).children():
            if any("spawn_main" in word for word in child.cmdline()):
                return child
        time.sleep(0.01)
    raise AssertionError("the worker has no child")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
