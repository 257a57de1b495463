"""Memory of this machine and of this process: whether an array fits in what is free, how much a process may take, and
the cache that stands before it."""

import ctypes
import gc
import resource
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
_OWN = Path("/proc/self/statm")
_RESIDENT, _OF_DATA = 1, 5
"""Where `_OWN` says how many pages the process has in memory, and how many of data: those that RLIMIT_DATA bounds."""


def total_bytes() -> int:
    """The bytes of memory of the machine, or those of this container's limit if these are fewer."""
    import psutil  # a package of the server's installation; the catalogue of strategies is also read without it

    total = int(psutil.virtual_memory().total)
    try:
        limit = _LIMIT.read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def share_of_memory(slots: int) -> int:
    """The bytes of memory that each of so many slots may take, so that a quarter is left for all else."""
    return total_bytes() * 3 // 4 // slots


def available_bytes() -> int:
    """The bytes of memory that are free without swapping: those of the machine, or those below the limit of this
    container or of this process if these are fewer."""
    import psutil

    free = int(psutil.virtual_memory().available)
    try:
        limit, used = _LIMIT.read_text(), _USED.read_text()
        free = free if limit.strip() == "max" else min(free, int(limit) - int(used))
    except OSError:
        pass
    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return max(0, free if most == resource.RLIM_INFINITY else min(free, most - _own_bytes(_OF_DATA)))


def require(needed: int, what: str) -> None:
    """Raise OutOfMemory, saying both numbers, unless `needed` bytes are available for `what`."""
    if needed <= available_bytes():
        return
    give_back()
    available = available_bytes()
    if needed > available:
        raise OutOfMemory(f"{what} needs {needed:,} bytes of memory, and {available:,} are available")


def limit_memory(more: int) -> None:
    """From now on let this process take `more` bytes beside what it has. What asks for more gets an error of its own,
    and the process goes on. Files that are mapped and read do not count. Does nothing where the system counts no
    data."""
    taken = _own_bytes(_OF_DATA)
    if taken:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = taken + more
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def give_back() -> None:
    """Give memory that nothing uses any more back to the system: the C library and Arrow keep it otherwise."""
    gc.collect()
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """The bytes of this process that are in memory; 0 where the system does not tell."""
    return _own_bytes(_RESIDENT)


def _own_bytes(place: int) -> int:
    try:
        return int(_OWN.read_text().split()[place]) * resource.getpagesize()
    except OSError:
        return 0


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
