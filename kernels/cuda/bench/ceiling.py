"""Measures how fast a GPU reads its memory."""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.bench.conditions import Conditions
from warpfold.kernels.bench.flags import contended, throttled
from warpfold.kernels.cuda.bench.observer import NvmlObserver
from warpfold.kernels.cuda.bench.reader import SHAPES, patternless, reading
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared

_SHARE = 4  # the array takes one part in so many of the free memory
_MOST_BYTES = 8 << 30
_PASSES = 9
_DIFFER = 0.05
"""The share by which the median of passes may lie above the fastest pass; on a quiet GPU it is below 0.01."""
_L2_BYTES_A_CLOCK = 64
"""How many bytes a multiprocessor takes from the level-2 cache each clock, Volta to Hopper (NVIDIA's H100 white paper
and Z. Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, table 3.1)."""


def measure_ceiling(gpu: Gpu, observer: NvmlObserver, cache_bytes: int) -> Ceiling:
    """The best median of several shapes of a plain reading loop over up to 8 GiB, at least 16 times the cache.

    It is trusted unless clocks were held down, or there was another process on the device and the passes of the best
    shape differed: a process that is listed may well be idle, as the other slot of this GPU is.

    To be called while `gpu.active()`."""
    import cupy

    with cuda_errors("measuring the ceiling"):
        free = int(cupy.cuda.runtime.memGetInfo()[0])
        array = patternless(gpu, max(min(_MOST_BYTES, free // _SHARE), min(16 * cache_bytes, free // 2)))
        looks, runs = list[Conditions](), list[list[float]]()
        for shape in SHAPES:
            runs.append(_passes(gpu, reading(gpu, array, shape)))
            looks.append(observer.after())  # not before the first: an idle GPU's clocks are low
        passes = min(runs, key=statistics.median)
        measured = array.nbytes / statistics.median(passes)
        del array
        cupy.get_default_memory_pool().free_all_blocks()
    clock_hz = 1e6 * (observer.max_clock_mhz or 3000.0)  # no GPU clocks higher
    cached = gpu.multiprocessors * _L2_BYTES_A_CLOCK * clock_hz
    trusted = undisturbed(looks, passes, observer.max_clock_mhz)
    return Ceiling(measured, observer.memory_peak, cached, cache_bytes, trusted)


def undisturbed(looks: Sequence[Conditions], passes: Sequence[float], max_clock_mhz: float | None) -> bool:
    """Whether passes of so many seconds each tell what the GPU can do, by what was observed of the GPU meanwhile."""
    if any(throttled(look, max_clock_mhz) for look in looks):
        return False
    return statistics.median(passes) <= (1 + _DIFFER) * min(passes) or not any(map(contended, looks))


def _passes(gpu: Gpu, read: Prepared) -> list[float]:
    """The seconds that each pass took."""
    import cupy

    events: list[Any] = []
    for _ in range(_PASSES + 1):
        events.append(cupy.cuda.Event())
        events[-1].record(gpu.stream)
        read.start()
    events.append(cupy.cuda.Event())
    events[-1].record(gpu.stream)
    events[-1].synchronize()
    return [cupy.cuda.get_elapsed_time(a, b) / 1e3 for a, b in pairwise(events[1:])]
