"""Checks the machine: Python and its packages, memory, folders and the space in them, and what is compiled."""

import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from warpfold.app.config import Settings
from warpfold.contract.wording import number_of
from warpfold.kernels.machine.extras import install
from warpfold.worker.doctor.finding import Finding, absent, broken, poor, well

_PACKAGES = ("fastapi", "sqlalchemy", "psycopg", "rq", "numpy", "numba")
_LITTLE_DISK, _TOO_LITTLE_DISK = 10 << 30, 1 << 30
_LITTLE_MEMORY = 2 << 30
_OF_A_STATE = re.compile(r"_[0-9a-f]{24}$")
"""How the name of a folder ends that is for one state of the sources (`kernels/machine/jit.py`)."""


def look_at_machine(settings: Settings) -> Iterator[Finding]:
    """The findings about Python, packages, memory, folders and compiled functions."""
    yield _python()
    yield _packages()
    yield _memory()
    yield _data_dir(settings.data_dir)
    yield _datasets(settings.datasets_dir())
    for root in settings.data_roots:
        yield _data_root(root)
    yield _compiled(settings)


def _python() -> Finding:
    detail = f"Python {platform.python_version()} at {sys.executable}, {platform.system()} {platform.machine()}"
    return well("python", detail)


def _packages() -> Finding:
    versions, missing = [], []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return broken("packages", f"missing: {', '.join(missing)}", install("server"))
    return well("packages", f"warpfold {version('warpfold')}; {', '.join(versions)}")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    detail = f"{_gib(memory.available)} of {_gib(memory.total)} available, {os.cpu_count()} logical cores"
    if memory.available < _LITTLE_MEMORY:
        return poor("memory", detail, "large files and generated arrays may not fit")
    return well("memory", detail)


def _data_dir(path: Path) -> Finding:
    if not path.exists():
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if not os.access(above, os.W_OK):
            return broken("data folder", f"{path} cannot be made in {above}", "set WARPFOLD_DATA_DIR to another")
        return _space("data folder", above, f"{path} is made on the first start")
    if not _writable(path):
        return broken("data folder", f"{path} cannot be written to", "make it belong to the user of the service")
    if stat.S_IMODE(path.stat().st_mode) & 0o066:  # others may pass through: an embedded Postgres has a user of its own
        return poor(
            "data folder", f"{path} is open to other users, and holds tokens and a database", f"chmod go-rw {path}"
        )
    return _space("data folder", path, str(path))


def _datasets(path: Path) -> Finding:
    if not path.exists():
        return well("dataset folder", f"{path} is made with the first upload")
    if not _writable(path):
        return broken("dataset folder", f"{path} cannot be written to", "make it belong to the user of the service")
    return _space("dataset folder", path, str(path))


def _data_root(path: Path) -> Finding:
    if not path.is_dir():
        return broken("data root", f"{path} is no folder", "correct WARPFOLD_DATA_ROOTS")
    if not os.access(path, os.R_OK | os.X_OK):
        return broken("data root", f"{path} cannot be read", "let the user of the workers read it")
    return well("data root", str(path))


def _compiled(settings: Settings) -> Finding:
    """Where compiled functions are kept, how many bytes they have, and how many of them this version uses."""
    from numba import config

    from warpfold.kernels.machine.jit import folders_in_use

    folder = Path(getattr(config, "CACHE_DIR", "") or settings.data_dir / "cache" / "numba")
    if not folder.is_dir():
        return absent(
            "compiled loops", f"{folder} is made on the first start; the first job of each kind takes seconds"
        )
    sizes = {path: path.stat().st_size for path in folder.rglob("*.nbc")}
    used = folders_in_use()
    others = [path for path in sizes if _OF_A_STATE.search(path.parent.name) and path.parent.name not in used]
    current = len(sizes) - len(others)
    detail = (
        f"{folder}; {sum(sizes.values()) / 2**20:.1f} MiB, {number_of('function', current)} of this version and "
        f"{len(others)} of others"
    )
    if not current:
        return absent("compiled loops", f"{detail}; the first job of each kind takes seconds")
    return well("compiled loops", detail)


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _space(part: str, folder: Path, detail: str) -> Finding:
    free = shutil.disk_usage(folder).free
    detail = f"{detail}; {_gib(free)} free"
    if free < _TOO_LITTLE_DISK:
        return broken(part, detail, "make room: servers stop when their disk is full")
    if free < _LITTLE_DISK:
        return poor(part, detail, "make room, or lower WARPFOLD_DATASET_QUOTA_BYTES and WARPFOLD_RETENTION_DAYS")
    return well(part, detail)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
