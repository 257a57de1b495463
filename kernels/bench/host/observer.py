"""The conditions of a CPU, through psutil and /sys."""

import time

from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.host.system import throttle_count

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
