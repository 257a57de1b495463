"""Measures every strategy beside its peers on one device, in one run: `python -m benchmarks.strategies`.

Measures the suites of `benchmarks/suites.py` on the first GPU, or on the CPU without a GPU, prints a table a
suite and writes all points with their provenance as JSON. `--suite` picks some, `--device cpu` the CPU.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.printer import duration, figure, table
from benchmarks.provenance import provenance
from benchmarks.suites import CPU_SUITES, GPU_SUITES, SUITES, Suite
from warpfold.kernels.bench.axes import Axes
from warpfold.kernels.bench.data import Data
from warpfold.kernels.bench.engine import run
from warpfold.kernels.bench.record import Record, record_of
from warpfold.kernels.bench.stopping import Rule
from warpfold.kernels.bench.target import BenchmarkTarget, open_target
from warpfold.kernels.driver import Backend
from warpfold.kernels.errors import KernelError, Unavailable
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.open import open_backend

RESULTS = Path(__file__).parent / "results"


def measure(target: BenchmarkTarget, parts: Iterable[Axes], rule: Rule, console: Console) -> list[Record]:
    """Measure all points of some axes on one device, and print a line for each."""
    records = []
    for axes in parts:
        try:
            for point in run(target, axes, rule, Data().source):
                records.append(record_of(point))
                _say(records[-1], console)
        except KernelError as error:
            console.print(f"[red]the device is lost, and with it the rest of these axes: {error}")
            break
    return records


def write(path: Path, facts: Mapping[str, Any], measured: Mapping[str, Sequence[Record]]) -> None:
    """Write all points so far, with their provenance."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"suite": name, **asdict(record)}) for name, records in measured.items() for record in records]
    # Each point is a line, so that a change of a point is a change of one line.
    path.write_text(f'{{"provenance": {json.dumps(facts, indent=1)},\n"points": [\n' + ",\n".join(lines) + "\n]}\n")


def _say(record: Record, console: Console) -> None:
    outcome = duration(record.kernel_ms) if record.kernel_ms is not None else f"{record.outcome}: {record.reason}"
    case = f"{record.strategy} {record.op} {record.dtype} {record.n:,} {record.cache}"
    console.print(f"{case:60} {outcome} {' '.join(record.flags)}", markup=False, highlight=False)


def pivot(suite: Suite, records: Sequence[Record]) -> Table:
    """A table with a line for each case and a column for each strategy: its median, and its speed as a multiple of the
    baseline's. Suspect figures are in brackets and enter no ratio."""
    strategies = list(dict.fromkeys(record.strategy for record in records))
    drawn = Table(title=f"{suite.title} (× {suite.baseline})", title_justify="left")
    for name in ("op", "dtype", "n", "cache"):
        drawn.add_column(name, justify="right" if name == "n" else "left", no_wrap=True)
    for strategy in strategies:
        drawn.add_column(strategy, justify="right", no_wrap=True)
    cases = dict.fromkeys((record.op, record.dtype, record.n, record.cache) for record in records)
    by_case = {(r.strategy, r.op, r.dtype, r.n, r.cache): r for r in records}
    for op, dtype, n, cache in cases:
        row = {strategy: by_case.get((strategy, op, dtype, n, cache)) for strategy in strategies}
        base = row.get(suite.baseline)
        drawn.add_row(op, dtype, f"{n:,}", cache, *(_cell(row[strategy], base) for strategy in strategies))
    return drawn


def _cell(record: Record | None, base: Record | None) -> str:
    if record is None or record.kernel_ms is None:
        return "–" if record is None else record.outcome
    text = duration(record.kernel_ms)
    if not record.counts:
        return f"({text})"
    if base is not None and base.counts and base.kernel_ms:
        text += f" {base.kernel_ms / record.kernel_ms:.2f}×"
    return text if record.percent_of_ceiling is None else f"{text} {figure(record.percent_of_ceiling, 1)} %"


def prepare(backend: Backend, suites: Iterable[Suite]) -> None:
    """Build what the C++ peers need on all processors at once, for one after the other takes minutes."""
    from warpfold.kernels.cuda.backend import CudaBackend
    from warpfold.kernels.cuda.baselines.cccl import prebuild

    assert isinstance(backend, CudaBackend)
    cases = {(c.strategy, c.op, c.dtype) for suite in suites for axes in suite.axes for c in axes.cases()}
    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(lambda case: prebuild(backend.gpu, *case), sorted(cases)))


def main() -> int:
    """Measure, print and write, and return 0 unless a point failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", nargs="+", choices=sorted(SUITES), help="which; by default all of the device's")
    parser.add_argument("--device", help="cuda:0, …, or cpu; by default the first GPU, or the CPU without a GPU")
    parser.add_argument("--time-limit", type=float, default=2.0, help="seconds a point")
    parser.add_argument("--out", type=Path, help="where to write the points (default: benchmarks/results/…)")
    parser.add_argument("--full", action="store_true", help="print every column of every point as well")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 400)
    backend = _open(arguments.device)
    on_gpu = backend.device.backend == "cuda"
    suites = [SUITES[name] for name in arguments.suite] if arguments.suite else GPU_SUITES if on_gpu else CPU_SUITES
    target = open_target(backend)
    if on_gpu:
        started = time.monotonic()
        prepare(backend, suites)
        console.print(f"peers built in {time.monotonic() - started:.1f} s")
    host = open_backend("cpu") if on_gpu else backend
    host_target = open_target(host)
    facts = provenance(backend, target, host.device)
    rule = Rule(time_limit_s=arguments.time_limit)
    measured: dict[str, list[Record]] = {}
    out = arguments.out or RESULTS / f"strategies-{backend.device.name.lower().replace(' ', '-')}.json"
    for suite in suites:
        measured[suite.name] = measure(target, suite.axes, rule, console)
        if suite.on_host:
            measured[suite.name] += measure(host_target, suite.on_host, rule, console)
        write(out, facts, measured)  # a later suite may end this process
    for suite in suites:
        if arguments.full:
            console.print(table(measured[suite.name], suite.title))
        console.print(pivot(suite, measured[suite.name]))
    console.print(_caption(facts))
    backend.close()
    return int(any(record.outcome == "failed" for records in measured.values() for record in records))


def _caption(facts: dict[str, Any]) -> str:
    device, peak = facts["device"], facts["peak_gbps"]
    software = {**device["versions"], **{k: v for k, v in facts["packages"].items() if v}, "cccl": facts["cccl"]}
    versions = ", ".join(f"{name} {number}" for name, number in software.items() if number)
    return (
        f"{device['name']}, read ceiling {facts['ceiling_gbps']:,.1f} GB/s, peak {figure(peak, 1)} GB/s; {versions}; "
        f"{facts['date']}. Cells: median, multiple of the baseline's speed, % of the ceiling."
    )


def _open(device: str | None) -> Backend:
    if device is not None:
        return open_backend(device)
    try:
        return open_backend("cuda:0")
    except Unavailable:
        return open_backend("cpu")


if __name__ == "__main__":
    sys.exit(main())
