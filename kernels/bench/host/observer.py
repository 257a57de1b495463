"""What this machine tells of its CPU: the conditions that it works under, and how fast it reads its memory."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Conditions, Observer
from warpfold.kernels.bench.flags import contended
from warpfold.kernels.cpu.memory import CPUS, texts
from warpfold.kernels.machine.cores import usable_cores


def throttle_count() -> int:
    """How often heat has held down a core since the start of the system."""
    counts = texts(CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    return sum(int(text) for text in counts if text.isdigit())


_SHORTEST_S = 0.1  # the system counts in steps of 10 ms: over less than this they tell nothing


class HostObserver:
    """Looks at this machine's CPU."""

    max_clock_mhz = None  # boost clocks depend on how many cores work: a low one is no sign of throttling

    def __init__(self) -> None:
        import psutil

        self._psutil = psutil
        self._process = psutil.Process()
        self._throttles = 0
        self._busy = self._own = self._at = 0.0

    def before(self) -> Conditions:
        self._throttles = throttle_count()
        self._busy, self._own, self._at = self._busy_s(), self._own_s(), time.monotonic()
        return Conditions(clock_mhz=self._clock())

    def after(self) -> Conditions:
        elapsed = time.monotonic() - self._at
        others = max(0.0, self._busy_s() - self._busy - (self._own_s() - self._own)) / elapsed
        return Conditions(
            clock_mhz=self._clock(),
            throttle=("thermal",) if throttle_count() > self._throttles else (),
            others=others if elapsed >= _SHORTEST_S else None,
        )

    def _busy_s(self) -> float:
        times = self._psutil.cpu_times()
        # Guests are counted under user and nice already.
        apart = ("idle", "iowait", "guest", "guest_nice")
        return float(sum(times) - sum(getattr(times, name, 0.0) for name in apart))

    def _own_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _clock(self) -> float | None:
        frequency = self._psutil.cpu_freq()
        return float(frequency.current) if frequency and frequency.current else None


_LOAD_BYTES = 128  # two loads of 64 bytes a clock: the most that a core of today sustains
_CLOCK_HZ = 8e9  # no processor reaches this frequency
_MEASURE_S = 0.3


def measure_ceiling(observer: Observer, cache: int) -> Ceiling:
    """The rate at which all cores together read from memory behind a last cache of `cache` bytes: the best of many
    passes of a plain maximum over integers. It is trusted if `observer` saw no other process at work meanwhile.

    The system does not report how fast its memory is, so `peak` is None.
    """
    cores = usable_cores()
    data = np.ones(max(4 * cache, 64 << 20) // 8, dtype=np.int64)
    parts = np.array_split(data, cores)
    passes: list[float] = []
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(_read, parts))  # the first pass meets the memory's pages
        observer.before()
        give_up = time.monotonic() + _MEASURE_S
        while time.monotonic() < give_up or len(passes) < 3:
            started = time.perf_counter_ns()
            list(pool.map(_read, parts))
            passes.append((time.perf_counter_ns() - started) / 1e9)
        quiet = not contended(observer.after())
    return Ceiling(data.nbytes / min(passes), None, cores * _LOAD_BYTES * _CLOCK_HZ, cache, quiet)


def _read(part: NDArray[Any]) -> int:
    return int(part.max())
