"""Says where, with what and when figures of kernels were measured, so that a reader can measure them again."""

import platform
import socket
import subprocess
import tomllib
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from warpfold.kernels.backend import Device
from warpfold.kernels.bench.target import BenchmarkTarget
from warpfold.kernels.cuda.baselines.toolkit import find_toolkit
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import Unavailable

_ROOT = Path(__file__).resolve().parents[1]


def provenance(backend: Backend, target: BenchmarkTarget, host: Device) -> dict[str, Any]:
    """The provenance of figures that were measured on `backend`, whose host is `host`."""
    device = backend.device
    ceiling = target.ceiling
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": {**asdict(device), "versions": dict(device.versions), "uuid": None},
        "host": {"name": host.name, "cores": host.cores, "memory_bytes": host.memory_bytes},
        "ceiling_gbps": ceiling.measured / 1e9,
        "peak_gbps": None if ceiling.peak is None else ceiling.peak / 1e9,
        "cache_bytes": ceiling.cache_bytes,
        "warpfold": _version("warpfold") or _source_version(),
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("numpy", "numba", "cupy-cuda13x", "cupy-cuda12x", "torch")},
        "cccl": _cccl(),
    }


def of_host(device: Device, load: float) -> dict[str, Any]:
    """The provenance of figures of a CPU. `load` is the machine's load when the run began, which slows it down."""
    date = datetime.now(UTC).date().isoformat()
    return {"machine": device.name, "cores": device.cores, "date": date, **dict(device.versions), "load": load}


def of_script(script: str) -> dict[str, Any]:
    """The provenance of figures whose points name their device."""
    return {
        "script": script,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": {"name": socket.gethostname(), "python": platform.python_version()},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _source_version() -> str:
    """The version of a source tree that is not installed."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def _commit() -> str | None:
    command = ["git", "-C", str(_ROOT), "rev-parse", "--verify", "--quiet", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None


def _cccl() -> str | None:
    try:
        return find_toolkit().cccl.release
    except Unavailable:
        return None
