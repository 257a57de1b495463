"""How fast a GPU reads its memory."""

import statistics
from itertools import pairwise
from typing import Any

from warpfold.kernels.bench.ceiling import Ceiling
from warpfold.kernels.cuda.bench.observer import NvmlObserver
from warpfold.kernels.cuda.bench.reader import SHAPES, patternless, reading
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared

_SHARE = 4  # of the free memory, one part
_MOST_BYTES = 8 << 30
_PASSES = 9
_L2_BYTES_A_CLOCK = 64
"""What a multiprocessor takes from the level-2 cache each clock, Volta to Hopper (NVIDIA's H100 white paper and
Z. Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, table 3.1)."""


def measure_ceiling(gpu: Gpu, observer: NvmlObserver, cache_bytes: int) -> Ceiling:
    """The best median of several shapes of a plain reading loop over up to 8 GiB, at least 16 times the cache.

    To be called while `gpu.active()`."""
    import cupy

    with cuda_errors("measuring the ceiling"):
        free = int(cupy.cuda.runtime.memGetInfo()[0])
        array = patternless(gpu, max(min(_MOST_BYTES, free // _SHARE), min(16 * cache_bytes, free // 2)))
        best = min(_median(gpu, reading(gpu, array, shape)) for shape in SHAPES)
        measured = array.nbytes / best
        del array
        cupy.get_default_memory_pool().free_all_blocks()
    clock_hz = 1e6 * (observer.max_clock_mhz or 3000.0)  # no GPU clocks higher
    return Ceiling(measured, observer.memory_peak, gpu.multiprocessors * _L2_BYTES_A_CLOCK * clock_hz, cache_bytes)


def _median(gpu: Gpu, read: Prepared) -> float:
    """Seconds of one pass."""
    import cupy

    events: list[Any] = []
    for _ in range(_PASSES + 1):
        events.append(cupy.cuda.Event())
        events[-1].record(gpu.stream)
        read.start()
    events.append(cupy.cuda.Event())
    events[-1].record(gpu.stream)
    events[-1].synchronize()
    spans = [cupy.cuda.get_elapsed_time(a, b) / 1e3 for a, b in pairwise(events[1:])]
    return float(statistics.median(spans))
