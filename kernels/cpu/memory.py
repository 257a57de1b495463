"""Whether an array fits in the free memory."""

from pathlib import Path

from warpfold.kernels.errors import OutOfMemory

_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")


def available_bytes() -> int:
    """Memory that can be had without swapping: the machine's, or what is left of this container's limit if less."""
    import psutil  # of the server's installation; the catalogue of strategies is also read without it

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
