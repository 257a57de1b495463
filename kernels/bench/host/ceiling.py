"""How fast a CPU reads its memory."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Observer
from warpfold.kernels.bench.flags import contended
from warpfold.kernels.bench.host.system import cache_bytes
from warpfold.kernels.cores import usable_cores

_LOAD_BYTES = 128  # two loads of 64 bytes a clock: the most that a core of today sustains
_CLOCK_HZ = 8e9  # which none of them reaches
_MEASURE_S = 0.3


def measure_ceiling(observer: Observer) -> Ceiling:
    """What all cores together read from memory: the best of many passes of a plain maximum over integers. It is trusted
    if `observer` saw no other process at work meanwhile.

    The system does not tell how fast its memory is, so `peak` is None.
    """
    cores, cache = usable_cores(), cache_bytes()
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
