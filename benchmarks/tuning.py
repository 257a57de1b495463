"""Measures the CUDA strategies on one GPU in seconds, for tuning them: `python -m benchmarks.tuning`.

Times are medians of batches between two CUDA events, each batch walking through buffers that together exceed the
caches; for small arrays they are bound by launches from Python, which is what a caller sees.
"""

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.cuda.strategies.registry import own_strategies
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.generate import plan
from warpfold.kernels.ops import OPS
from warpfold.kernels.source import GeneratedSource

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 1 << 30)
ROTATED_BYTES = 1 << 28
BATCHES = 7


def microseconds(gpu: Gpu, call: Callable[[int], Any], size: int) -> float:
    """The median time of `call`, which gets the number of the buffer to use."""
    import cupy

    repeats = 50 if size < 10**7 else 10 if size < 10**9 else 3
    for number in range(3):
        call(number)
    times = []
    for _ in range(BATCHES):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(gpu.stream)
        for number in range(repeats):
            call(number)
        stop.record(gpu.stream)
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / repeats * 1e3)
    return float(statistics.median(times))


def buffers(gpu: Gpu, dtype: DType, size: int) -> list[Any]:
    """Views that start at multiples of 256 bytes, as many as fill ROTATED_BYTES, at least one."""
    import cupy

    room = -(-size * dtype.itemsize // 256) * 256 // dtype.itemsize
    count = max(1, min(64, ROTATED_BYTES // (room * dtype.itemsize)))
    array = cupy.empty(room * count, dtype=carrier(dtype))
    distribution = "normal" if dtype.is_float else "uniform"
    fill(gpu, plan(GeneratedSource(distribution, array.size, 1, dtype)), array, 0)
    return [array[k * room : k * room + size] for k in range(count)]


def own(gpu: Gpu, strategy: str, op: str, dtype: DType, arrays: list[Any]) -> Callable[[int], None]:
    """A call that reduces one of the arrays by a strategy of ours."""
    reducer = own_strategies()[strategy].reducer(gpu, OPS[op], dtype, pieces=1000)
    return lambda number: reducer.add((arrays[number % len(arrays)],), 0)


def print_sizes(gpu: Gpu) -> None:
    """A table of the microseconds of a float32 sum by every strategy, CuPy last."""
    import cupy

    dtype = DTYPES["float32"]
    names = [name for name, row in own_strategies().items() if row.runs_on(gpu.arch)]
    print("float32 sum, µs: " + " ".join(f"{name[:12]:>12}" for name in (*names, "cupy")))
    for size in SIZES:
        arrays = buffers(gpu, dtype, size)
        row = [microseconds(gpu, own(gpu, name, "sum", dtype, arrays), size) for name in names]
        row.append(microseconds(gpu, lambda number, a=arrays: cupy.sum(a[number % len(a)]), size))  # type: ignore[misc]
        print(f"{size:>15,}: " + " ".join(f"{time:12.1f}" for time in row), flush=True)


def print_dtypes(gpu: Gpu) -> None:
    """A table of the GB/s of single_pass on 2³⁰ bytes."""
    ops = ("sum", "min", "argmax", "sum_squares", "count_nonzero")
    print("single_pass, GB/s at 1 GiB: " + " ".join(f"{op:>14}" for op in ops))
    for dtype in DTYPES.values():
        arrays = buffers(gpu, dtype, (1 << 30) // dtype.itemsize)
        times = [microseconds(gpu, own(gpu, "single_pass", op, dtype, arrays), 1 << 28) for op in ops]
        print(f"{dtype.name:>26}: " + " ".join(f"{(1 << 30) / time / 1e3:14.0f}" for time in times), flush=True)


def main() -> int:
    """Print both tables of the first GPU, and return the exit code, which is 2 without a GPU."""
    try:
        gpu = Gpu(0)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{gpu.name}, {gpu.arch}, {gpu.multiprocessors} multiprocessors, NumPy {np.__version__}")
    with gpu.active():
        print_sizes(gpu)
        print_dtypes(gpu)
    gpu.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
