"""Measures exact sums by key on this machine's CPU, and what is made of two sums: `python -m benchmarks.groups`.

A row is a number of groups and a dtype of values; keys are random int32. The contenders run in turn, several times, in
this one process, and medians are compared: the exact sums, and the sums of Polars, pandas and pyarrow, which round at
every step. `wrong` counts the groups whose sum by Polars has other bits. Variances, deviations, norms and means of
integers have Polars alone beside them. `--out` writes the tables as JSON.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.formats.keyed_arrays import keyed_arrays
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan
from warpfold.kernels.source import ArraySource

GROUPS = (100, 10_000, 1_000_000, 10_000_000)
FINISHED = ("var", "std", "norm2", "mean")
MANY = (10_000, 1_000_000)
SPREADS = (0, 6)
"""Values are normal, and multiplied by exp of so many times another normal."""


@dataclass(frozen=True, slots=True)
class GroupsRow:
    """Nanoseconds a row of the table that is reduced, and how many times as fast the exact sums are as Polars'."""

    groups: int
    dtype: str
    spread: int
    exact: float
    polars: float
    pandas: float
    pyarrow: float
    per_polars: float
    wrong: int


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """Seconds of a whole table, and how many times as fast the exact values are as Polars'."""

    op: str
    groups: int
    dtype: str
    exact: float
    polars: float
    per_polars: float
    wrong: int


def measure_finished(backend: CpuBackend, case: tuple[str, int, str], *, rows: int, rounds: int) -> FinishedRow:
    """One table of so many groups, by an op whose values are finished after sums are known."""
    op, groups, dtype = case
    rng = np.random.default_rng(groups)
    keys = rng.integers(0, groups, rows, dtype=np.int32)
    made = rng.standard_normal(rows) if DTYPES[dtype].is_float else rng.integers(-(1 << 40), 1 << 40, rows)
    values = made.astype(DTYPES[dtype].numpy)
    source = keyed_arrays([("k", ArraySource(keys), "by")], [("v", ArraySource(values), "column")])
    plan = GroupPlan((Aggregation(OPS[op], 0, "v"),))
    in_polars, column = pl.DataFrame({"k": keys, "v": values}), pl.col("v")
    asked = {
        "var": column.var(ddof=0),
        "std": column.std(ddof=0),
        "norm2": (column.cast(pl.Float64) ** 2).sum().sqrt(),
        "mean": column.mean(),
    }[op]
    contenders: list[Callable[[], object]] = [
        lambda: backend.group_by(source, plan),
        lambda: in_polars.group_by("k").agg(asked),
    ]
    times = _in_turn(contenders, rounds)
    ours = backend.group_by(source, plan).columns[0].values
    theirs = in_polars.group_by("k").agg(asked).sort("k")["v"].to_numpy()
    kind = DTYPES[OPS[op].result_dtype(DTYPES[dtype])].numpy
    wrong = int(np.count_nonzero(ours.astype(kind) != theirs.astype(kind)))
    exact, polars = (statistics.median(taken) for taken in times)
    return FinishedRow(op, groups, dtype, exact, polars, polars / exact, wrong)


def _in_turn(contenders: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """The seconds that each contender takes, `rounds` times. The first of all compiles before that."""
    times: list[list[float]] = [[] for _ in contenders]
    contenders[0]()
    for _ in range(rounds):
        for taken, run in zip(times, contenders, strict=True):
            began = time.perf_counter()
            run()
            taken.append(time.perf_counter() - began)
    return times


def measure(backend: CpuBackend, case: tuple[int, str, int], *, rows: int, rounds: int) -> GroupsRow:
    """One table of so many groups, of a dtype and a spread, by all contenders in turn."""
    groups, dtype, spread = case
    rng = np.random.default_rng(groups)
    keys = rng.integers(0, groups, rows, dtype=np.int32)
    values = rng.standard_normal(rows)
    if spread:
        values *= np.exp(spread * rng.standard_normal(rows))
    values = values.astype(DTYPES[dtype].numpy)
    source = keyed_arrays([("k", ArraySource(keys), "by")], [("v", ArraySource(values), "column")])
    plan = GroupPlan((Aggregation(OPS["sum"], 0, "v"),), max_groups=groups)
    columns = {"k": keys, "v": values}
    in_polars, in_pandas, in_arrow = pl.DataFrame(columns), pd.DataFrame(columns), pa.table(columns)
    contenders: list[Callable[[], object]] = [
        lambda: backend.group_by(source, plan),
        lambda: in_polars.group_by("k").agg(pl.col("v").sum()),
        in_pandas.groupby("k")["v"].sum,
        lambda: in_arrow.group_by("k").aggregate([("v", "sum")]),
    ]
    times = _in_turn(contenders, rounds)
    exact, polars, pandas, pyarrow = (statistics.median(taken) / rows * 1e9 for taken in times)
    sums = backend.group_by(source, plan).columns[0].values.astype(values.dtype)
    theirs = in_polars.group_by("k").agg(pl.col("v").sum()).sort("k")["v"].to_numpy()
    wrong = int(np.count_nonzero(sums != theirs))
    return GroupsRow(groups, dtype, spread, exact, polars, pandas, pyarrow, polars / exact, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums by key on the CPU, beside Polars, pandas and pyarrow.")
    parser.add_argument("--out", type=Path, help="a file for the table as JSON")
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of a table")
    parser.add_argument("--rounds", type=int, default=5, help="how often each contender runs")
    parser.add_argument("--groups", type=int, nargs="+", help="only tables of so many groups")
    parser.add_argument("--suite", choices=("sums", "finished"), help="one of the two tables")
    chosen = parser.parse_args()
    backend = CpuBackend()
    load = os.getloadavg()[0]
    sizes = {"rows": chosen.rows, "rounds": chosen.rounds}
    summed, finishing = (
        [groups for groups in known if groups in (chosen.groups or known)] if chosen.suite != other else []
        for known, other in ((GROUPS, "finished"), (MANY, "sums"))
    )
    measured = [
        measure(backend, (groups, dtype, spread), **sizes)
        for spread in SPREADS
        for dtype in ("float32", "float64")
        for groups in summed
    ]
    finished = [
        measure_finished(backend, (op, groups, dtype), **sizes)
        for op in FINISHED
        for dtype in ("float64", "float32", "int64")
        for groups in (finishing if op != "mean" or dtype == "int64" else ())
    ]
    _print(measured, finished, chosen.rows, load)
    if chosen.out is not None:
        document = {
            "provenance": {**of_host(backend.device, load), "polars": pl.__version__},
            "rows": [asdict(row) for row in measured],
            "finished": [asdict(row) for row in finished],
        }
        chosen.out.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")


def _print(measured: Sequence[GroupsRow], finished: Sequence[FinishedRow], rows: int, load: float) -> None:
    where = f"{rows:,} rows, {usable_cores()} cores, load {load:.1f}"
    if measured:
        table = Table(title=f"{where}: ns a row")
        for name in (
            "groups",
            "dtype",
            "spread",
            "exact",
            "Polars",
            "pandas",
            "pyarrow",
            "× Polars",
            "wrong in Polars",
        ):
            table.add_column(name, justify="right")
        for row in measured:
            speeds = (f"{speed:.2f}" for speed in (row.exact, row.polars, row.pandas, row.pyarrow, row.per_polars))
            table.add_row(f"{row.groups:,}", row.dtype, str(row.spread), *speeds, f"{row.wrong:,}")
        Console(width=120).print(table)
    if finished:
        table = Table(title=f"{where}: seconds a table")
        for name in ("op", "dtype", "groups", "exact", "Polars", "× Polars", "wrong in Polars"):
            table.add_column(name, justify="right")
        for each in finished:
            speeds = (f"{speed:.2f}" for speed in (each.exact, each.polars, each.per_polars))
            table.add_row(each.op, each.dtype, f"{each.groups:,}", *speeds, f"{each.wrong:,}")
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
