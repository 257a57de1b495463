"""`warpfold.dask.sum` beside `dask.array.sum` of the same chunks of NumPy arrays: `python -m benchmarks.dask_arrays`.

Both take turns. The time is wall-clock time of Dask's threads, or with `--alone` the processor time of one thread,
which does not depend on what else the machine does. The ratio is the median of those of the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as dask_arrays
import numpy as np

from warpfold.engines import dask as exact

arrays: Any = dask_arrays  # its functions have no types


@dataclass(frozen=True, slots=True)
class Case:
    """An array of `shape`, cut into `chunks`, which is summed along `axis`."""

    name: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    axis: int | None


CASES = (
    Case("whole, chunks of 2^14", (1 << 22,), (1 << 14,), None),
    Case("whole, chunks of 2^18", (1 << 25,), (1 << 18,), None),
    Case("whole, chunks of 2^20", (1 << 25,), (1 << 20,), None),
    Case("whole, chunks of 2^22", (1 << 26,), (1 << 22,), None),
    Case("8 rows of 2^22, cut along the rows", (8, 1 << 22), (8, 1 << 18), 1),
    Case("8 rows of 2^22, cut along the rows", (8, 1 << 22), (8, 1 << 20), 1),
    Case("8 rows of 2^22, each a chunk", (8, 1 << 22), (1, 1 << 22), 1),
    Case("2^17 rows of 512, cut in two", (1 << 17, 512), (1 << 13, 256), 1),
    Case("2^17 rows of 512, whole", (1 << 17, 512), (1 << 13, 512), 1),
    Case("512 columns of 2^16", (1 << 16, 512), (1 << 12, 512), 0),
    Case("50 steps of 518,400, 10 at a time", (50, 518400), (10, 518400), 0),
    Case("50 steps of 518,400, 25 at a time", (50, 518400), (25, 518400), 0),
    Case("50 steps of 518,400, in tiles", (50, 518400), (50, 1 << 16), 0),
)


def turns(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, clock: Callable[[], float]) -> list[float]:
    """Milliseconds of each, and the median of the ratios of theirs to ours."""
    times: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        spent = []
        for work in (ours, theirs):
            began = clock()
            work()
            spent.append(clock() - began)
        if number:  # the first round compiles and loads
            times.append((spent[0], spent[1]))
    medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
    return [*medians, statistics.median(other / own for own, other in times)]


def measured(cases: tuple[Case, ...], rounds: int, *, alone: bool) -> Iterator[str]:
    """A line of the table for each case and dtype."""
    scheduler = "synchronous" if alone else "threads"
    clock = time.thread_time if alone else time.perf_counter
    for dtype in ("float64", "float32"):
        for case in cases:
            elements = np.random.default_rng(1).standard_normal(case.shape).astype(dtype)
            x = arrays.from_array(elements, chunks=case.chunks, name=False)
            ours, theirs = exact.sum(x, axis=case.axis), x.sum(axis=case.axis)
            computed = [partial(lazy.compute, scheduler=scheduler) for lazy in (ours, theirs)]
            own, other, ratio = turns(computed[0], computed[1], rounds, clock)
            yield f"| {case.name} | {dtype} | {x.npartitions} | {own:.1f} | {other:.1f} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--alone", action="store_true", help="processor time of one thread")
    parser.add_argument("--only", default="", help="cases with this in their name")
    arguments = parser.parse_args()
    chosen = tuple(case for case in CASES if arguments.only in case.name)
    print("| array | dtype | chunks | ours, ms | dask.array, ms | ratio |\n|---|---|---|---|---|---|")
    for line in measured(chosen, arguments.rounds, alone=arguments.alone):
        print(line, flush=True)


if __name__ == "__main__":
    main()
