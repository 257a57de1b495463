"""Memory of this machine: whether an array fits in what is free, and the cache that stands before it."""

import ctypes
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from warpfold.kernels.errors import OutOfMemory

CPUS = Path("/sys/devices/system/cpu")
"""Where Linux describes its CPUs."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_CACHE_BYTES = 32 << 20  # assumed where the system does not tell
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")


def available_bytes() -> int:
    """The bytes of memory that are free without swapping: those of the machine, or those below this container's limit
    if these are fewer."""
    import psutil  # a package of the server's installation; the catalogue of strategies is also read without it

    free = int(psutil.virtual_memory().available)
    try:
        limit, used = _LIMIT.read_text(), _USED.read_text()
    except OSError:
        return free
    return free if limit.strip() == "max" else max(0, min(free, int(limit) - int(used)))


def require(needed: int, what: str) -> None:
    """Raise OutOfMemory, saying both numbers, unless `needed` bytes are available for `what`."""
    available = available_bytes()
    if needed > available:
        raise OutOfMemory(f"{what} needs {needed:,} bytes of memory, and {available:,} are available")


def cache_bytes() -> int:
    """The size of the largest cache of the first core, 32 MiB where the system does not tell."""
    return max(map(_size, texts(CPUS.glob("cpu0/cache/index*/size"))), default=0) or _CACHE_BYTES


def keep_freed_memory() -> None:
    """Make the C library keep up to 128 MiB of freed memory, and take arrays of up to 32 MiB from it. Dask sets its
    workers to give freed memory back at once. Then each piece of a source costs page faults, which take as long as
    making its elements. Does nothing where the C library is another than glibc's."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)
        mallopt(_M_TRIM_THRESHOLD, 1 << 27)


def texts(paths: Iterable[Path]) -> Iterator[str]:
    """The texts of those files that can be read: a container may lack some, or forbid reading them."""
    for path in paths:
        try:
            yield path.read_text().strip()
        except OSError:
            continue


def _size(text: str) -> int:
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return int(digits) * unit if digits.isdigit() else 0
