"""C++ peers from source to a shared library, once a machine: the library is kept in the cache."""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from warpfold.kernels.cuda.baselines.toolkit import Toolkit, find_toolkit
from warpfold.kernels.cuda.compile import default_cache
from warpfold.kernels.errors import KernelError

SOURCE = Path(__file__).parent / "peers.cu"
_BUILD_S = 600.0
_LOG_LINES = 30


class BuildError(KernelError):
    """nvcc refused a peer; the message holds the end of its log."""


def build(defines: Mapping[str, str], arch: str, cache: Path | None = None) -> Path:
    """The shared library of SOURCE with these macros, for `arch` ("sm_90"); built in 6 to 30 s if it is not there yet.

    Several processes may ask at once: one builds. Raises Unavailable without a compiler, BuildError when it fails.
    """
    from filelock import FileLock  # a client that reads the catalogue has none

    toolkit = find_toolkit()
    folder = (default_cache() if cache is None else cache) / "peers"
    options = [f"-D{name}={value}" if value else f"-D{name}" for name, value in defines.items()]
    library = folder / f"{'-'.join(_words(defines))}-{arch}-{_key(toolkit, arch, options)}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(library.with_suffix(".lock")):
        if not library.exists():
            _run_nvcc(toolkit, arch, options, library)
    return library


def _words(defines: Mapping[str, str]) -> list[str]:
    return [value or name.lower() for name, value in defines.items()]


def _run_nvcc(toolkit: Toolkit, arch: str, options: list[str], library: Path) -> None:
    partial = library.with_suffix(".partial")
    command = [
        *(str(toolkit.nvcc), "-std=c++17", "-O3", f"-arch={arch}", f"-I{toolkit.cccl.include}", *options),
        *("-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden", "-o", str(partial), str(SOURCE)),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"nvcc took longer than {_BUILD_S:g} s for {SOURCE.name}") from error
    if done.returncode != 0:
        log = "\n".join((done.stdout + done.stderr).strip().splitlines()[:_LOG_LINES])
        raise BuildError(f"nvcc does not build {SOURCE.name} with {' '.join(options)}:\n{log}")
    partial.replace(library)


def _key(toolkit: Toolkit, arch: str, options: list[str]) -> str:
    parts = (str(toolkit.nvcc), toolkit.cccl.release, arch, *options)
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(SOURCE.read_bytes())
    return digest.hexdigest()[:24]
