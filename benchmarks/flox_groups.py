"""`warpfold.flox` beside flox's own engines on the same arrays and chunks: `python -m benchmarks.flox_groups`.

All take turns. The time is wall-clock time of Dask's threads, or with `--alone` the processor time of one thread. A
ratio is the median of those of the rounds: an engine's time divided by ours.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import dask
import dask.array as dask_arrays
import flox
import numpy as np

from warpfold.engines import flox as exact

arrays: Any = dask_arrays  # its functions have no types
groupby_reduce: Any = flox.groupby_reduce  # engines and methods are names here

ENGINES = ("flox", "numpy", *(("numbagg",) if find_spec("numbagg") else ()))


@dataclass(frozen=True, slots=True)
class Case:
    """An array of `shape` whose last axis is grouped into `groups`: in cycles, as months of years are, or at random.
    `chunks` is the length of a chunk of the last axis; None for an array in memory."""

    name: str
    shape: tuple[int, ...]
    groups: int
    cyclic: bool
    chunks: int | None

    def labels(self) -> Any:
        """The group of each element of the last axis."""
        length = self.shape[-1]
        if self.cyclic:
            return np.arange(length) % self.groups
        return np.random.default_rng(2).integers(0, self.groups, length)


CASES = (
    Case("2^22 rows, 100 groups, in memory", (1 << 22,), 100, cyclic=False, chunks=None),
    Case("2^22 rows, 100 groups, 16 chunks", (1 << 22,), 100, cyclic=False, chunks=1 << 18),
    Case("2^22 rows, 10,000 groups, 16 chunks", (1 << 22,), 10_000, cyclic=False, chunks=1 << 18),
    Case("10,000 places, 720 steps, 12 groups, in memory", (10_000, 720), 12, cyclic=True, chunks=None),
    Case("10,000 places, 720 steps, 12 groups, 6 chunks", (10_000, 720), 12, cyclic=True, chunks=120),
    Case("10,000 places, 144 steps, 12 groups, 12 chunks", (10_000, 144), 12, cyclic=True, chunks=12),
)


def turns(works: list[Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """Seconds of each work in each round."""
    times: list[list[float]] = []
    for number in range(rounds + 1):
        spent = []
        for work in works:
            began = clock()
            work()
            spent.append(clock() - began)
        if number:  # the first round compiles and loads
            times.append(spent)
    return times


def measured(cases: tuple[Case, ...], rounds: int, *, alone: bool) -> Iterator[str]:
    """A line of the table for each case, dtype and op."""
    clock = time.thread_time if alone else time.perf_counter
    own = {"sum": exact.sum, "mean": exact.mean}
    for case in cases:
        for dtype in ("float64", "float32"):
            elements = np.random.default_rng(1).standard_normal(case.shape).astype(dtype)
            chunks = (*case.shape[:-1], case.chunks)
            x = elements if case.chunks is None else arrays.from_array(elements, chunks=chunks, name=False)
            labels = case.labels()

            def reduced(func: Any, engine: str | None, x: Any = x, labels: Any = labels) -> Any:
                method = {} if isinstance(x, np.ndarray) else {"method": "map-reduce"}
                values = groupby_reduce(x, labels, func=func, engine=engine, **method)[0]
                with dask.config.set(scheduler="synchronous" if alone else "threads"):
                    return np.asarray(values)

            for op, func in own.items():
                works: list[Callable[[], Any]] = [lambda func=func: reduced(func, None)]  # type: ignore[misc]
                works += [lambda op=op, engine=engine: reduced(op, engine) for engine in ENGINES]  # type: ignore[misc]
                times = turns(works, rounds, clock)
                medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
                ratios = [
                    statistics.median(spent[number] / spent[0] for spent in times) for number in range(1, len(works))
                ]
                cells = [
                    f"{medians[0]:.1f}",
                    *(f"{ms:.1f} ({ratio:.2f})" for ms, ratio in zip(medians[1:], ratios, strict=True)),
                ]
                yield f"| {case.name} | {dtype} | `{op}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="processor time of one thread")
    parser.add_argument("--only", default="", help="cases with this in their name")
    arguments = parser.parse_args()
    chosen = tuple(case for case in CASES if arguments.only in case.name)
    print(f"| array | dtype | op | ours, ms | {' | '.join(f'`{engine}`, ms (ratio)' for engine in ENGINES)} |")
    print(f"|---|---|---|---|{'---|' * len(ENGINES)}")
    for line in measured(chosen, arguments.rounds, alone=arguments.alone):
        print(line, flush=True)


if __name__ == "__main__":
    main()
