"""How fast a device can read at all: measured, by its data sheet, and by what no chip can exceed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Bytes a second.

    `measured` is what the best plain reading loop got from memory on this device; `peak` is memory clock times bus
    width, None where the device does not tell them; `cached` bounds what the cores can take from their caches.
    `cache_bytes` is the size of the last cache before memory.
    """

    measured: float
    peak: float | None
    cached: float
    cache_bytes: int

    def limit(self, read_bytes: int, *, cold: bool) -> float:
        """The fastest reading of so much that physics allows: from memory at its peak; from the cache if it is hot
        and a good part of the data fits there, or if the memory's peak is not known."""
        from_memory = cold or read_bytes > 4 * self.cache_bytes
        return self.peak if from_memory and self.peak is not None else self.cached


def memory_peak(clock_mhz: float, bus_bits: int) -> float:
    """Bytes a second of double-data-rate memory: two transfers a clock, each as wide as the bus."""
    return 2 * clock_mhz * 1e6 * bus_bits / 8
