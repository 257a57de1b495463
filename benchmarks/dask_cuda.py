"""Dask on a GPU: `python -m benchmarks.dask_cuda`.

`warpfold.dask` of chunks that are CuPy arrays beside `dask.array` of the same chunks; and the slot `dask`, whose one
worker has the GPU, beside the GPU's own slot. Both take turns, and the wall-clock time is the median of the rounds.
"""

import argparse
import faulthandler
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.dask import FOLDERS, lease, seconds
from warpfold.worker.dask.options import ClusterOptions
from warpfold.worker.execute import Kernels

_CHUNKS = 16


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Seconds of each, and the median of the ratios of theirs to ours."""
    times: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        spent = []
        for work in (ours, theirs):
            began = time.perf_counter()
            work()
            spent.append(time.perf_counter() - began)
        if number:  # the first round loads
            times.append((spent[0], spent[1]))
    ours_s, theirs_s = (statistics.median(column) for column in zip(*times, strict=True))
    return ours_s, theirs_s, statistics.median(theirs / ours for ours, theirs in times)


def computed(lazy: Any, scheduler: str = "threads") -> None:
    """Have the values computed, and wait for the GPU."""
    import cupy

    lazy.compute(scheduler=scheduler)
    cupy.cuda.runtime.deviceSynchronize()


def of_chunks(sizes: Sequence[int], rounds: int) -> None:
    """Reductions of CuPy chunks, by Dask's threads: 16 chunks of each size of array."""
    import cupy
    import dask.array as dask_arrays

    from warpfold.engines import dask as exact

    arrays: Any = dask_arrays  # its functions have no types
    print("| call | dtype | elements | chunk | ours, ms | dask.array, ms | ratio |\n|---|---|---|---|---|---|---|")
    for dtype in ("float32", "float64"):
        for size in sizes:
            flat, chunk = cupy.random.standard_normal(size, dtype=dtype), size // _CHUNKS
            x = arrays.from_array(flat, chunks=chunk, asarray=False)
            rows = arrays.from_array(flat.reshape(-1, 1 << 12), chunks=(chunk >> 12, 1 << 12), asarray=False)
            long = arrays.from_array(flat.reshape(8, -1), chunks=(8, size // 8 // _CHUNKS), asarray=False)
            steps = arrays.from_array(flat.reshape(8 * _CHUNKS, -1), chunks=(8, -1), asarray=False)
            pairs = {
                "sum": (exact.sum(x), x.sum()),
                "mean": (exact.mean(x), x.mean()),
                "std": (exact.std(x), x.std()),
                "norm2": (exact.norm2(x), arrays.sqrt((x * x).sum())),
                "dot": (exact.dot(x, x), (x * x).sum()),
                "sum, rows of 4,096": (exact.sum(rows, axis=1), rows.sum(axis=1)),
                "sum, 4,096 columns": (exact.sum(rows, axis=0), rows.sum(axis=0)),
                "sum, 8 long rows": (exact.sum(long, axis=1), long.sum(axis=1)),
                "sum, 128 steps": (exact.sum(steps, axis=0), steps.sum(axis=0)),
            }
            for name, lazy in pairs.items():
                for each in lazy:
                    # One thread first: threads that begin together each have CuPy compile its kernels, one thread
                    # after another, which takes minutes for a deviation of dask.array.
                    computed(each, "synchronous")
                ours, theirs, ratio = in_turns(partial(computed, lazy[0]), partial(computed, lazy[1]), rounds)
                row = (
                    f"| {name} | {dtype} | {size:,} | {chunk:,} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} | {ratio:.2f} |"
                )
                print(row, flush=True)
            del flat, x, rows, long, steps, pairs, lazy
            cupy.get_default_memory_pool().free_all_blocks()


def of_a_slot(n: int, partitions: int, rounds: int) -> None:
    """A sum of generated elements."""
    from distributed import LocalCluster

    cluster: Any = LocalCluster  # its package has no types
    with cluster(n_workers=1, threads_per_worker=2, dashboard_address=None, memory_limit=0) as workers:
        slot = Kernels("dask", "here:dask", FOLDERS, cluster=ClusterOptions(workers.scheduler_address))
        alone = Kernels("cuda:0", "here:cuda:0", FOLDERS)
        jobs = lease(n, backend="dask", partitions=partitions), lease(n, backend="cuda")
        states = seconds(slot, jobs[0])[1], seconds(alone, jobs[1])[1]
        assert states[0] == states[1], "the states are the same bytes"
        ours, theirs, ratio = in_turns(lambda: seconds(slot, jobs[0]), lambda: seconds(alone, jobs[1]), rounds)
        print("| generated elements | partitions | slot dask, s | GPU slot, s | of its rate |\n|---|---|---|---|---|")
        print(f"| {n:,} | {partitions} | {ours:.3f} | {theirs:.3f} | {ratio:.2f} |", flush=True)
        slot.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how many times each takes its turn")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1 << 28, 1 << 30], help="elements of arrays in chunks")
    parser.add_argument(
        "--elements", type=int, nargs="*", default=[1 << 36], help="how many elements the slot generates"
    )
    parser.add_argument("--partitions", type=int, nargs="*", default=[16], help="into how many parts it cuts them")
    parser.add_argument("--watch", type=int, default=60, help="seconds after which all threads tell where they are")
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(arguments.watch, repeat=True)
    of_chunks(arguments.sizes, arguments.rounds)
    for elements in arguments.elements:
        for partitions in arguments.partitions:
            of_a_slot(elements, partitions, arguments.rounds)


if __name__ == "__main__":
    main()
