"""How long the first reduction of each kind takes on a machine that has compiled nothing: `python -m
benchmarks.first_answers`.

Each case is a process of its own with an empty folder for machine code: it opens the CPU as a slot does, reduces 10^6
elements in memory or in a CSV file, and does so again. `first` and `again` are seconds of the wall clock, and `cpu` the
processor's seconds of the first reduction. `--whole` compiles before it answers, as larger sources do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.provenance import of_host
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats.dialect import TextOptions
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.formats.plain_text import compile_now
from warpfold.kernels.formats.tables import ColumnWanted, open_column
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource

SHAPE = (1000, 1000)
LAYOUTS = {"whole": None, "columns": AlongAxes((0,)), "rows": AlongAxes((1,))}
TEXT = "text"
"""The layout of elements that are a column of a CSV file, of 7 MB."""

KEYS = "keys"
"""The layout of elements that belong to one of 1,000 keys each."""


@dataclass(frozen=True, slots=True)
class First:
    """Seconds of a reduction: the first time, the processor's share of that, and the second time."""

    op: str
    dtype: str
    layout: str
    first_s: float
    cpu_s: float
    again_s: float


def measured(op: str, dtype: str, layout: str, *, at_once: bool) -> First:
    """One case, in this process."""
    backend, grouping = CpuBackend(at_once=at_once), LAYOUTS.get(layout)
    drawn = 100 * np.random.default_rng(0).standard_normal(SHAPE)
    array = drawn.astype(DTYPES[dtype].numpy) if DTYPES[dtype].is_float else np.abs(drawn).astype(DTYPES[dtype].numpy)
    source = ArraySource(array)
    other = ArraySource(array[::-1].copy()) if OPS[op].sources == 2 else None
    times = []
    for _ in range(2):
        began, used = time.perf_counter(), time.process_time()
        if layout == KEYS:
            keys = ArraySource(np.random.default_rng(1).integers(0, 1000, array.size))
            rows = keyed_arrays([("k", keys, "by")], [("x", ArraySource(array.reshape(-1)), "column")])
            backend.group_by(rows, GroupPlan((Aggregation(OPS[op], 0, op),)))
        elif grouping is None:
            backend.reduce(source, op, other=other)
        else:
            backend.reduce_groups(source, SHAPE, grouping, op, other=other)
        times.append((time.perf_counter() - began, time.process_time() - used))
    return First(op, dtype, layout, times[0][0], times[0][1], times[1][0])


def measured_text(op: str, dtype: str, *, at_once: bool) -> First:
    """One case of a column of text, in this process. Opening the file is a part of it."""
    drawn = np.random.default_rng(0).integers(-9999, 9999, SHAPE[0] * SHAPE[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        words = (str(number / 100 if DTYPES[dtype].is_float else number) for number in drawn.tolist())
        path.write_text("\n".join(["x", *words]))
        backend, times = CpuBackend(at_once=at_once), []
        for _ in range(2):
            began, used = time.perf_counter(), time.process_time()
            if not at_once:
                compile_now()
            with path.open("rb") as file:
                backend.reduce(open_column(file, ColumnWanted("x", text=TextOptions())), op)
            times.append((time.perf_counter() - began, time.process_time() - used))
    return First(op, dtype, TEXT, times[0][0], times[0][1], times[1][0])


def cases() -> Iterator[tuple[str, str, str]]:
    """All ops that have an exact value, of the commonest dtypes, in each layout."""
    for op in OPS.values():
        for dtype in ("float64", "float32", "float16", "int64", "uint8"):
            if op.name == "prod":
                continue  # a product of 10^6 integers has too many digits, and one of floats is rounded at each step
            yield from ((op.name, dtype, layout) for layout in (*LAYOUTS, *([KEYS] if op.sources == 1 else [])))
    yield from (("sum", dtype, TEXT) for dtype in ("float64", "int64"))


def afresh(case: tuple[str, str, str], *, at_once: bool) -> First:
    """One case, in a new process with an empty folder for machine code."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.first_answers", "--case", *case, *([] if at_once else ["--whole"])]
        run = subprocess.run(
            command, env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=True, capture_output=True, text=True
        )
    return First(**json.loads(run.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs=3, metavar=("OP", "DTYPE", "LAYOUT"), help="measure one, in this process")
    parser.add_argument("--every", type=int, default=1, help="measure each so many-th case alone")
    parser.add_argument("--whole", action="store_true", help="compile first")
    parser.add_argument("--out", type=Path, help="write the rows to this JSON file")
    options = parser.parse_args()
    if options.case:
        op, dtype, layout = options.case
        at_once = not options.whole
        row = measured_text(op, dtype, at_once=at_once) if layout == TEXT else measured(*options.case, at_once=at_once)
        print(json.dumps(asdict(row)))
        return
    load, rows = os.getloadavg()[0], []
    print(f"{'op':14}{'dtype':9}{'layout':9}{'first s':>9}{'cpu s':>8}{'again s':>9}")
    for case in list(cases())[:: options.every]:
        row = afresh(case, at_once=not options.whole)
        rows.append(row)
        print(f"{row.op:14}{row.dtype:9}{row.layout:9}{row.first_s:9.2f}{row.cpu_s:8.2f}{row.again_s:9.3f}", flush=True)
    for name in ("first_s", "cpu_s"):
        half, most = np.quantile([getattr(row, name) for row in rows], [0.5, 0.95])
        print(f"{name} of {len(rows)} cases: median {half:.2f}, p95 {most:.2f}")
    if options.out:
        provenance = of_host(CpuBackend().device, load)
        made = {"provenance": provenance, "rows": [asdict(row) for row in rows]}
        options.out.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
