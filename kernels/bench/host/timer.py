"""The clock of a CPU."""

import time

import numpy as np

from warpfold.kernels.bench.axes import Cache
from warpfold.kernels.bench.measurement import Replay
from warpfold.kernels.bench.workload import Runnable

_FLUSH = 2  # times the cache


class HostTimer:
    """Times runs that compute on the calling thread, and on threads that it waits for, by the wall clock."""

    def __init__(self, cache_bytes: int) -> None:
        self.resolution_s = time.get_clock_info("perf_counter").resolution
        self._sweep = np.ones(max(1, _FLUSH * cache_bytes // 8), dtype=np.int64)

    def method(self, workload: Runnable) -> str:
        return "wall clock"

    def device(self, workload: Runnable, cache: Cache, runs: int) -> list[float]:
        return [self._once(workload, cold=cache is Cache.COLD) for _ in range(runs)]

    def host(self, workload: Runnable, runs: int) -> list[float]:
        return self.device(workload, Cache.HOT, runs)

    def issue(self, workload: Runnable, runs: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(runs):
            workload.run()
        return (time.perf_counter_ns() - started) / 1e9 / runs

    def replay(self, workload: Runnable) -> Replay | None:
        return None

    def _once(self, workload: Runnable, *, cold: bool) -> float:
        if cold:
            self.flush()
        started = time.perf_counter_ns()
        workload.run()
        return (time.perf_counter_ns() - started) / 1e9

    def flush(self) -> None:
        """Displace all data from the caches: write a buffer larger than the last of them, then read it again, so that
        little of what was written is still on its way to memory when the clock starts."""
        self._sweep += 1
        self._sweep.max()
