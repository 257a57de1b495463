"""Measures exact sums within engines of tables: `python -m benchmarks.engines`.

For each engine the whole column and groups by random int32 keys are added up by our aggregate, by our other ways and by
the engine's own sum, and by DuckDB's compensated one (`fsum`). The contenders of an engine run in turn, several times,
in this one process. A ratio is the median of the rounds' ratios: what else the machine does falls on both. `wrong`
counts the groups whose sum by the engine has other bits. `--out` writes the table as JSON.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import of_host
from warpfold.engines import arrow
from warpfold.engines import datafusion as in_datafusion
from warpfold.engines import duckdb as in_duckdb
from warpfold.engines import pandas as in_pandas
from warpfold.engines import polars as in_polars  # noqa: F401 - adds the namespace
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.machine.cores import usable_cores

GROUPS = (0, 100, 10_000, 1_000_000)
"""Groups of a table; 0 stands for the whole column."""

_PATIENCE = 1_000
"""Calls in Python once a group are left out where the groups are more."""

Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One way to add up a table of so many groups: nanoseconds a row, the time of the engine's own sum ÷ this one's,
    the same of its compensated sum where it has one, and the groups whose sums have other bits than ours."""

    engine: str
    variant: str
    groups: int
    ns: float
    of_own: float
    of_compensated: float | None
    wrong: int


def duckdb_runs(table: pa.Table, groups: int) -> dict[str, Run]:
    aggregates, macros = in_duckdb.connect(), in_duckdb.register_macros(duckdb.connect())
    for connection in (aggregates, macros):
        connection.from_arrow(table).create("t")

    def query(connection: Any, call: str) -> Run:
        if groups:
            return lambda: connection.execute(f"SELECT k, {call} AS s FROM t GROUP BY k").to_arrow_table()  # noqa: S608
        return lambda: connection.execute(f"SELECT {call} AS s FROM t").to_arrow_table()  # noqa: S608

    runs = {
        "own sum": query(aggregates, "sum(x)"),
        "own fsum": query(aggregates, "fsum(x)"),
        "warpfold_sum": query(aggregates, "warpfold_sum(x)"),
        "macro over lists": query(macros, "warpfold_sum(x)"),
    }
    return {**runs, **_streamed(lambda: aggregates.sql("SELECT k, x FROM t"), groups)}


def datafusion_runs(table: pa.Table, groups: int) -> dict[str, Run]:
    context = in_datafusion.register(datafusion.SessionContext())
    cut = table.num_rows // usable_cores() + 1
    context.register_record_batches(
        "t", [table.slice(at, cut).to_batches(8192) for at in range(0, table.num_rows, cut)]
    )

    def query(call: str) -> Run:
        if groups:
            return lambda: context.sql(f"SELECT k, {call} AS s FROM t GROUP BY k").to_arrow_table()  # noqa: S608
        return lambda: context.sql(f"SELECT {call} AS s FROM t").to_arrow_table()  # noqa: S608

    runs = {"own sum": query("sum(x)"), "warpfold_list_sum": query("warpfold_list_sum(struct(array_agg(x)))")}
    if groups <= _PATIENCE:
        runs["warpfold_sum"] = query("warpfold_sum(struct(x))")
    return {**runs, **_streamed(lambda: context.sql("SELECT k, x FROM t"), groups)}


def polars_runs(table: pa.Table, groups: int) -> dict[str, Run]:
    frame: Any = pl.from_arrow(table)
    x: Any = pl.col("x")
    if not groups:
        return {"own sum": lambda: frame.select(s=x.sum()), "exact.sum": lambda: frame.select(s=x.exact.sum())}
    return {
        "own sum": lambda: frame.group_by("k").agg(s=x.sum()),
        "exact.sum": lambda: frame.group_by("k").agg(s=x.exact.sum()),
        "exact.sum, lazy, streaming": lambda: (
            frame.lazy().group_by("k").agg(s=x.exact.sum()).collect(engine="streaming")
        ),
        **_streamed(lambda: frame, groups),
    }


def pandas_runs(table: pa.Table, groups: int) -> dict[str, Run]:
    frame = table.to_pandas()
    if not groups:
        return {"own sum": frame.x.sum, "exact.sum": frame.x.exact.sum}
    runs: dict[str, Run] = {
        "own sum": lambda: frame.groupby("k").x.sum(),  # noqa: PLW0108 - groups anew
        "exact.sum": lambda: in_pandas.sum(frame.groupby("k").x),
    }
    if groups <= _PATIENCE:
        runs["agg(exact.sum)"] = lambda: frame.groupby("k").x.agg(in_pandas.sum)
    return {**runs, **_streamed(lambda: frame, groups)}


def _streamed(batches: Callable[[], Any], groups: int) -> dict[str, Run]:
    if not groups:
        return {}
    return {"arrow.group_by": lambda: arrow.group_by(batches(), "k", {"s": ("sum", "x")}, max_groups=1 << 30)}


ENGINES: dict[str, Callable[[pa.Table, int], dict[str, Run]]] = {
    "DuckDB": duckdb_runs,
    "DataFusion": datafusion_runs,
    "Polars": polars_runs,
    "pandas": pandas_runs,
}


def sums_of(made: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The sums of an engine's answer, in the order of their keys."""
    if isinstance(made, float | np.floating):
        return np.array([made])
    if isinstance(made, pd.Series):
        return np.asarray(made.sort_index().to_numpy())
    table = made.to_arrow() if isinstance(made, pl.DataFrame) else made
    table = table.sort_by("k") if "k" in table.column_names else table
    return np.asarray(table["s"].to_numpy())


def measure(engine: str, groups: int, *, rows: int, rounds: int) -> list[EngineRow]:
    """All ways of an engine on one table."""
    rng = np.random.default_rng(groups)
    columns = {"k": rng.integers(0, max(groups, 1), rows, dtype=np.int32), "x": rng.standard_normal(rows)}
    runs = ENGINES[engine](pa.table(columns), groups)
    sums = {label: sums_of(run()) for label, run in runs.items()}  # compiles, too
    ours = [label for label in runs if not label.startswith("own ")]
    for label in ours:
        assert np.array_equal(sums[label], sums[ours[0]]), f"{engine}: {label} has other bits"
    times: dict[str, list[float]] = {label: [] for label in runs}
    for _ in range(rounds):
        for label, run in runs.items():
            began = time.perf_counter()
            run()
            times[label].append(time.perf_counter() - began)

    def ratio(peer: str, label: str) -> float:
        return statistics.median(theirs / mine for theirs, mine in zip(times[peer], times[label], strict=True))

    return [
        EngineRow(
            engine,
            label,
            groups,
            statistics.median(taken) / rows * 1e9,
            ratio("own sum", label),
            ratio("own fsum", label) if "own fsum" in runs else None,
            int(np.count_nonzero(sums[label] != sums[ours[0]])),
        )
        for label, taken in times.items()
    ]


def markdown(rows: Sequence[EngineRow]) -> str:
    """The table of docs/tables.md: how many times as fast as the engine's own sum each way is, by the groups."""
    groups = sorted({row.groups for row in rows})
    names = [f"{count:,} groups" if count else "whole column" for count in groups]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(groups)]
    for engine, label in dict.fromkeys((row.engine, row.variant) for row in rows):
        by_groups = {row.groups: row for row in rows if (row.engine, row.variant) == (engine, label)}
        cells = [f"{by_groups[count].of_own:.2f}" if count in by_groups else "" for count in groups]
        lines.append(f"| {engine}: {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact sums within DuckDB, DataFusion, Polars and pandas.")
    parser.add_argument("--out", type=Path, help="a file for the table as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/tables.md, too")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of a table")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way runs")
    parser.add_argument("--engines", nargs="*", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--groups", nargs="*", type=int, default=list(GROUPS), help="0 is the whole column")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [
        row
        for engine in chosen.engines
        for groups in chosen.groups
        for row in measure(engine, groups, rows=chosen.rows, rounds=chosen.rounds)
    ]
    table = Table(title=f"{chosen.rows:,} rows of float64, {usable_cores()} cores, load {load:.1f}")
    for name in ("engine", "groups", "variant", "ns a row", "× own sum", "× fsum", "other bits"):
        table.add_column(name, justify="left" if name in ("engine", "variant") else "right")
    for row in rows:
        compensated = "" if row.of_compensated is None else f"{row.of_compensated:.2f}"
        speeds = f"{row.ns:.1f}", f"{row.of_own:.2f}", compensated
        table.add_row(row.engine, f"{row.groups:,}", row.variant, *speeds, f"{row.wrong:,}")
    Console(width=120).print(table)
    if chosen.markdown:
        print(markdown(rows))
    if chosen.out is not None:
        versions = {module.__name__: module.__version__ for module in (duckdb, datafusion, pl, pd)}
        document = {
            "provenance": of_host(CpuBackend().device, load),
            "versions": versions,
            "rows": [asdict(row) for row in rows],
        }
        chosen.out.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
