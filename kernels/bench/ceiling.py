"""Ceilings: how fast a device can read at all, as measured, by its data sheet, and by what no chip can exceed."""

from collections.abc import Callable
from dataclasses import dataclass

MOST_TRIES = 8
"""Measurements of a ceiling that other work disturbs, before the device counts as a busy one."""

_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Bytes a second.

    `measured` is what the best plain reading loop got from memory on this device; `trusted` says that the loop had the
    device to itself: if not, it may have got much less than the device can, and nothing is a share of it. `peak` is
    memory clock times bus width, None where the device does not report them; `cached` bounds what the cores can take
    from their caches. `cache_bytes` is the size of the last cache before memory.
    """

    measured: float
    peak: float | None
    cached: float
    cache_bytes: int
    trusted: bool = True

    def bounds(self, read_bytes: int, *, cold: bool) -> bool:
        """Whether reading so much is bound by the memory: not if it is hot and a good part of it fits the cache."""
        return cold or read_bytes > 4 * self.cache_bytes

    def limit(self, read_bytes: int, *, cold: bool) -> float:
        """The fastest reading of so much that physics allows: from memory at its peak; from the cache if `bounds` says
        so, or if the memory's peak is not known."""
        return self.peak if self.bounds(read_bytes, cold=cold) and self.peak is not None else self.cached


def memory_peak(clock_mhz: float, bus_bits: int) -> float:
    """Bytes a second of double-data-rate memory: two transfers a clock, each as wide as the bus."""
    return 2 * clock_mhz * 1e6 * bus_bits / 8


class CeilingGauge:
    """The ceiling of a device, taken by `measure` when it is first read. As long as no measurement is trusted it is
    taken again, twice at once and then at each reading, MOST_TRIES times in all; the fastest is kept."""

    def __init__(self, measure: Callable[[], Ceiling]) -> None:
        self._measure = measure
        self._best: Ceiling | None = None
        self._tries = 0

    def read(self) -> Ceiling:
        best = self._best or self._measure()
        for _ in range(_AT_ONCE if self._best is None else 1):
            if best.trusted or self._tries == MOST_TRIES - 1:
                break
            self._tries += 1
            again = self._measure()
            best = again if again.trusted or again.measured > best.measured else best
        self._best = best
        return best
