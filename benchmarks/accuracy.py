"""Measures how fast each method of an accuracy study adds, and what a study costs: `python -m benchmarks.accuracy`.

A row is one method on n elements of normal data: elements a second in the quickest of its runs, the error of its result
and the bound. The targets are 300 million float32 elements a second for the two sequential loops and 4 GB of memory for
the process at 50 million elements, all methods. `--report` runs the report's third task instead: its methods, sizes and
distributions, with the seconds that each distribution took. `--slot cuda:0` adds the GPU's methods. `--out` writes the
figures as JSON.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.kernels.accuracy import AccuracyAxes, StudiedCase, methods_on
from warpfold.kernels.accuracy.study import Repeats, run
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import dtype_named
from warpfold.kernels.open import open_backend
from warpfold.kernels.source import GeneratedSource

N = 50_000_000
LEAST_RATE = 300e6
MOST_BYTES = 4_000_000_000
TARGETS = ("sequential", "reverse")
REPORT_METHODS = ("sequential", "reverse", "tree", "sorted_ascending", "numpy", "torch", "exact")
REPORT_DISTRIBUTIONS = ("mixed", "pathological", "normal")
REPORT_SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, N)


def source(distribution: str, dtype: str, n: int) -> GeneratedSource:
    return GeneratedSource(distribution, n, 42, dtype_named(dtype))


def peak_bytes() -> int:
    """The most memory that this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rate(point: StudiedCase) -> float | None:
    """The elements a second, or None where they were not measured."""
    return None if point.measured is None else point.case.n / point.measured.elapsed_ms * 1e3


def shown(points: Sequence[StudiedCase]) -> Table:
    """A table of the points."""
    table = Table("distribution", "dtype", "n", "method", "M elements/s", "ulps", "distinct", "repeats", "bound", "")
    for point in points:
        case, figures_of, speed = point.case, point.measured, rate(point)
        names = (case.distribution, case.dtype, f"{case.n:,}", case.method)
        if figures_of is None or speed is None:
            table.add_row(*names, *[""] * 5, f"{point.outcome}: {point.reason}")
            continue
        target = ""
        if case.dtype == "float32" and case.method in TARGETS and case.n >= 1_000_000:
            target = "met" if speed >= LEAST_RATE else "missed"
        repeats = {None: "–", True: "yes", False: "no"}[figures_of.repeatable]
        distinct = "–" if figures_of.distinct_results is None else str(figures_of.distinct_results)
        figures = (f"{speed / 1e6:,.0f}", f"{figures_of.ulps:.3g}", distinct, repeats, figures_of.bound_verdict.value)
        table.add_row(*names, *figures, target)
    return table


def measured(
    backend: Backend, axes: AccuracyAxes, repeats: Repeats, console: Console
) -> tuple[list[StudiedCase], float]:
    """All points, and the seconds they took."""
    began = time.perf_counter()
    points = list(run(backend, axes, source, repeats))
    seconds = time.perf_counter() - began
    console.print(f"{len(points)} points in {seconds:.1f} s, {', '.join(axes.distributions)}, {repeats}")
    return points, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=N, help="elements")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "float16", "bfloat16"])
    parser.add_argument("--slot", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--report", action="store_true", help="the report's study, in float32")
    parser.add_argument("--permutations", type=int, default=2, help="random orders of each case")
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    arguments = parser.parse_args()
    console, backend, load = Console(width=130), open_backend(arguments.slot), os.getloadavg()[0]
    repeats = Repeats(arguments.permutations, runs=3)
    points: list[StudiedCase] = []
    seconds: dict[str, float] = {}
    memory = None
    if arguments.report:
        for distribution in REPORT_DISTRIBUTIONS:
            axes = AccuracyAxes(REPORT_METHODS, ("sum",), (distribution,), ("float32",), REPORT_SIZES)
            more, seconds[distribution] = measured(backend, axes, repeats, console)
            points += more
        memory = peak_bytes()
    else:
        for dtype in arguments.dtypes:
            axes = AccuracyAxes(methods_on(backend.device.backend), ("sum",), ("normal",), (dtype,), (arguments.n,))
            more, seconds[dtype] = measured(backend, axes, repeats, console)
            points += more
            if dtype == "float32":
                memory = peak_bytes()
    console.print(shown(points))
    if memory is not None:
        verdict = "met" if memory <= MOST_BYTES else "missed"
        console.print(f"peak memory up to float32: {memory / 1e9:.2f} GB (4 GB: {verdict})")
    console.print(f"all in {sum(seconds.values()):.1f} s")
    if arguments.out:
        made = {
            **of_host(backend.device, load),
            "seconds": seconds,
            "peak_bytes": memory,
            "points": [asdict(point) for point in points],
        }
        arguments.out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
