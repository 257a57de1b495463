"""What /sys tells of a CPU on Linux; nothing elsewhere."""

from collections.abc import Iterable, Iterator
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_CACHE_BYTES = 32 << 20  # assumed where the system does not tell
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_bytes() -> int:
    """The size of the largest cache of the first core, 32 MiB where the system does not tell."""
    return max(map(_size, _texts(_CPUS.glob("cpu0/cache/index*/size"))), default=0) or _CACHE_BYTES


def throttle_count() -> int:
    """How often heat has held down a core since the start of the system."""
    counts = _texts(_CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    return sum(int(text) for text in counts if text.isdigit())


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        try:
            yield path.read_text().strip()
        except OSError:  # not everything may be read in a container
            continue


def _size(text: str) -> int:
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return int(digits) * unit if digits.isdigit() else 0
