"""Measures how fast exact sums are on this machine's CPU: `python -m benchmarks.exact_cpu`.

A row is one kind of data, larger than the caches; the contenders run in turn, several times, in this one process, and
medians are compared. The targets are multiples of `math.fsum(array)`, the exact sum that Python has, and a fraction of
`numpy.sum(array)`. What fsum does with a ready list of Python floats is shown beside it: most of its time on an array
goes into making them. var and dot go through the backend, dot of the array with itself. `--out` writes the table as
JSON.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import Terms
from warpfold.kernels.source import ArraySource, GeneratedSource

FSUM_N = 1_000_000
FSUM_BELOW = 2.0**1000  # beyond it fsum overflows on the way, and gives up
ROUNDS = 7
DATA: tuple[tuple[str, dict[str, float]], ...] = (
    ("normal", {}),
    ("uniform", {}),
    ("mixed", {}),
    ("lognormal", {"sigma": 3.0}),
    ("pathological", {}),
    ("all_exponents", {}),
)
TARGETS = {"float32": (100.0, 0.5), "float64": (50.0, 0.0)}
"""The least multiples of math.fsum and of numpy.sum, for data that has a target."""


@dataclass(frozen=True, slots=True)
class Row:
    """Speeds in GB/s of input, and the ratios between them."""

    dtype: str
    data: str
    exact: float
    exact_one_thread: float
    exact_squares: float
    exact_variance: float
    exact_dot: float
    numpy: float
    fsum: float
    fsum_of_list: float
    over_fsum: float
    over_numpy: float
    met: bool | None


def speeds(size: int, contenders: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """The median GB/s of each contender. They take turns, so that other load on the machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return {name: size / statistics.median(taken[1:]) / 1e9 for name, taken in times.items()}


def exactly(array: NDArray[Any], dtype: DType, terms: Terms, pool: ThreadPoolExecutor | None, threads: int) -> object:
    """Reduce an array exactly, by several threads as `kernels.cpu.stream` does."""

    def part(piece: NDArray[Any]) -> object:
        added = accumulator([dtype], terms)
        added.add(piece)
        return added.state()

    return part(array) if pool is None else list(pool.map(part, np.array_split(array, threads)))


def measure(backend: CpuBackend, source: GeneratedSource, pool: ThreadPoolExecutor) -> Row:
    """Measure one row of the table."""
    dtype, name, n = source.dtype, source.distribution, source.count
    array = source.read(0, n)
    threads = usable_cores()
    rates = speeds(
        array.nbytes,
        {
            "exact": lambda: exactly(array, dtype, Terms.VALUES, pool, threads),
            "one": lambda: exactly(array, dtype, Terms.VALUES, None, 1),
            "squares": lambda: exactly(array, dtype, Terms.PRODUCTS, pool, threads),
            "variance": lambda: backend.reduce(ArraySource(array), "var").value,
            "dot": lambda: backend.reduce(ArraySource(array), "dot", other=ArraySource(array)).value,
            "numpy": lambda: np.sum(array),
        },
    )
    part = array[:FSUM_N]
    if name == "all_exponents" and dtype.name == "float64":
        part = part[np.abs(part) < FSUM_BELOW]
    listed = part.astype(np.float64).tolist()
    slow = speeds(part.nbytes, {"array": lambda: math.fsum(part), "list": lambda: math.fsum(listed)}, rounds=3)
    fsum, fsum_of_list = slow["array"], slow["list"]
    over_fsum = rates["exact"] / fsum
    over_numpy = rates["exact"] / rates["numpy"]
    target = TARGETS.get(dtype.name)
    met = None
    if target is not None and name == "normal":
        met = over_fsum >= target[0] and over_numpy >= target[1]
    return Row(
        dtype=dtype.name,
        data=name,
        exact=rates["exact"],
        exact_one_thread=rates["one"],
        exact_squares=rates["squares"],
        exact_variance=rates["variance"],
        exact_dot=2 * rates["dot"],  # two arrays are read
        numpy=rates["numpy"],
        fsum=fsum,
        fsum_of_list=fsum_of_list,
        over_fsum=over_fsum,
        over_numpy=over_numpy,
        met=met,
    )


def shown(rows: list[Row]) -> Table:
    """A table of the rows."""
    table = Table(
        *("dtype", "data", "exact", "1 thread", "squares", "var", "dot"),
        *("numpy.sum", "fsum", "(list)", "× fsum", "× numpy", "target"),
    )
    for row in rows:
        numbers = [row.exact, row.exact_one_thread, row.exact_squares]
        numbers += [row.exact_variance, row.exact_dot, row.numpy]
        table.add_row(
            row.dtype,
            row.data,
            *(f"{number:.1f}" for number in numbers),
            f"{row.fsum:.2f}",
            f"{row.fsum_of_list:.2f}",
            f"{row.over_fsum:.0f}",
            f"{row.over_numpy:.2f}",
            "" if row.met is None else "met" if row.met else "missed",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=30_000_000, help="elements")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "bfloat16", "float16"])
    parser.add_argument("--out", type=Path, help="also write the table here, as JSON")
    arguments = parser.parse_args()
    rows = []
    backend, console, load = CpuBackend(), Console(width=130), os.getloadavg()[0]
    with ThreadPoolExecutor(usable_cores()) as pool, np.errstate(all="ignore"):
        for name in arguments.dtypes:
            dtype = DTYPES[name]
            for data, parameters in DATA:
                if name == "float16" and data not in ("normal", "uniform", "all_exponents"):
                    continue
                rows.append(measure(backend, GeneratedSource(data, arguments.n, 1, dtype, parameters), pool))
    console.print(f"GB/s of input, n = {arguments.n:,}, {usable_cores()} threads, medians of {ROUNDS}")
    console.print(shown(rows))
    if arguments.out:
        made = {"n": arguments.n, **of_host(backend.device, load), "rows": [asdict(row) for row in rows]}
        arguments.out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
