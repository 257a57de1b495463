"""The CUDA compiler of this machine, and the newest CCCL headers that it can be given."""

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from warpfold.kernels.errors import Unavailable

_VERSION_HEADER = "cuda/std/__cccl/version.h"


@dataclass(frozen=True, slots=True, order=True)
class Cccl:
    """A copy of CCCL (CUB, Thrust and libcu++): its version (3, 6, 0) and the folder to include from."""

    version: tuple[int, int, int]
    include: Path

    @property
    def release(self) -> str:
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What C++ peers are built with."""

    nvcc: Path
    cccl: Cccl


@cache
def find_toolkit() -> Toolkit:
    """nvcc on PATH or where the toolkit is installed, and CCCL from the `cuda-cccl` package or the toolkit, whichever
    is newer. Raises Unavailable saying what is missing. Looked up once a process."""
    nvcc = _nvcc()
    if nvcc is None:
        raise Unavailable("CUB and Thrust are built with nvcc, and there is none on this machine")
    if shutil.which("g++") is None and shutil.which("c++") is None:
        raise Unavailable("CUB and Thrust are built with nvcc, which needs a C++ compiler, and there is none")
    found = [copy for copy in map(_read, _includes(nvcc)) if copy is not None]
    if not found:
        raise Unavailable(f"there are no CCCL headers (CUB, Thrust) beside {nvcc.name}; install cuda-cccl")
    return Toolkit(nvcc, max(found))


def _nvcc() -> Path | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        found = shutil.which("nvcc")
    else:
        found = find_nvidia_binary_utility("nvcc") or shutil.which("nvcc")
    return Path(found) if found else None


def _includes(nvcc: Path) -> list[Path]:
    root = nvcc.resolve().parent.parent
    places = [root / "include" / "cccl", root / "include"]
    with suppress(PackageNotFoundError):
        places.append(Path(str(distribution("cuda-cccl").locate_file("cuda/cccl/headers/include"))))
    return places


def _read(include: Path) -> Cccl | None:
    try:
        text = (include / _VERSION_HEADER).read_text()
    except OSError:
        return None
    match = re.search(r"#\s*define\s+CCCL_VERSION\s+(\d+)", text)
    if match is None:
        return None
    number = int(match[1])
    return Cccl((number // 1_000_000, number // 1000 % 1000, number % 1000), include)
