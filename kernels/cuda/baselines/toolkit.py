"""The CUDA compiler of this machine, and the C++ peers that it builds. Each library is built once and kept in the
cache."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from warpfold.kernels.cuda.compile import default_cache
from warpfold.kernels.errors import KernelError, Unavailable

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
    """The compiler and the headers that C++ peers are built with."""

    nvcc: Path
    cccl: Cccl


@cache
def find_toolkit() -> Toolkit:
    """nvcc on PATH or where the toolkit is installed, and CCCL from the `cuda-cccl` package or the toolkit, whichever
    is newer. Raises Unavailable saying what is missing. Looked up once a process."""
    nvcc = _nvcc()
    if nvcc is None:
        raise Unavailable("CUB and Thrust are built with nvcc, which this machine does not have")
    if shutil.which("g++") is None and shutil.which("c++") is None:
        raise Unavailable("CUB and Thrust are built with nvcc, which needs a C++ compiler; this machine has none")
    copies = [copy for copy in map(_read, _includes(nvcc)) if copy is not None]
    if not copies:
        raise Unavailable(f"there are no CCCL headers (CUB, Thrust) beside {nvcc.name}; install cuda-cccl")
    return Toolkit(nvcc, max(copies))


def _nvcc() -> Path | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        path = shutil.which("nvcc")
    else:
        path = find_nvidia_binary_utility("nvcc") or shutil.which("nvcc")
    return Path(path) if path else None


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


SOURCE = Path(__file__).parent / "peers.cu"
_BUILD_S = 600.0
_LOG_LINES = 30


class BuildError(KernelError):
    """nvcc refused a peer; the message holds the end of its log."""


def build(defines: Mapping[str, str], arch: str, cache: Path | None = None, source: Path = SOURCE) -> Path:
    """The shared library of `source` with these macros, for `arch` ("sm_90"); built in 6 to 30 s if it is missing.

    Several processes may ask at once: one builds. Raises Unavailable without a compiler, BuildError when it fails.
    """
    from filelock import FileLock  # a client that reads the catalogue lacks it

    toolkit = find_toolkit()
    folder = (default_cache() if cache is None else cache) / "peers"
    options = [f"-D{name}={value}" if value else f"-D{name}" for name, value in defines.items()]
    library = folder / f"{'-'.join(_words(defines))}-{arch}-{_key(toolkit, arch, options, source)}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(library.with_suffix(".lock")):
        if not library.exists():
            _run_nvcc(toolkit, arch, options, library, source)
    return library


def _words(defines: Mapping[str, str]) -> list[str]:
    return [value or name.lower() for name, value in defines.items()]


def _run_nvcc(toolkit: Toolkit, arch: str, options: list[str], library: Path, source: Path) -> None:
    partial = library.with_suffix(".partial")
    command = [
        *(str(toolkit.nvcc), "-std=c++17", "-O3", f"-arch={arch}", f"-I{toolkit.cccl.include}", *options),
        *("-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden", "-o", str(partial), str(source)),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"nvcc took longer than {_BUILD_S:g} s for {source.name}") from error
    if done.returncode != 0:
        log = "\n".join((done.stdout + done.stderr).strip().splitlines()[:_LOG_LINES])
        raise BuildError(f"nvcc does not build {source.name} with {' '.join(options)}:\n{log}")
    partial.replace(library)


def _key(toolkit: Toolkit, arch: str, options: list[str], source: Path) -> str:
    parts = (str(toolkit.nvcc), toolkit.cccl.release, arch, *options)
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(source.read_bytes())
    return digest.hexdigest()[:24]
