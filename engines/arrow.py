"""Exact sums by key of any object that hands out batches of Arrow: relations of DuckDB, frames of DataFusion, pandas
and Polars, LazyFrames, tables, readers and datasets of pyarrow.

Batches are taken one after another and are reduced on all cores while the next are made, so that no table need fit
in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

import pyarrow

from warpfold.kernels.cpu.keyed import reducing
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.formats.frames import Frame, Wanted, keyed_frame
from warpfold.kernels.ops import op_named
from warpfold.kernels.parts.keyed import MOST_GROUPS, PART_ROWS, Aggregation, GroupPlan

Batches = Any
"""Anything with `__arrow_c_stream__`, a LazyFrame of Polars, or a dataset of pyarrow."""

Values = Mapping[str, tuple[str, str]]
"""The op and the column of each value, by the name that the value gets: `{"total": ("sum", "price")}`."""


def group_by(
    batches: Batches,
    by: str | Sequence[str],
    values: Values,
    *,
    sort: bool = True,
    dropna: bool = True,
    min_count: int = 0,
    ddof: int = 0,
    max_groups: int = MOST_GROUPS,
    states: bool = False,
) -> "pyarrow.Table":
    """A row for each group: its keys and its values, each rounded once.

    Keys are integers, truth values or strings; with `dropna` rows with a null key are left out. Nulls among the
    elements are left out, a NaN makes its value NaN, and the value of fewer than `min_count` elements is null. With
    `states` the table is one of exact states (docs/exact-state.md), which `POST /v1/states/merge` and the client add
    up with others. A relation of DuckDB is executed first, and DuckDB holds its rows meanwhile. Raises InvalidInput
    that names the column, key or op that cannot be taken, and for more groups than `max_groups`.
    """
    names = [by] if isinstance(by, str) else list(by)
    columns = list(dict.fromkeys(column for _, column in values.values()))
    aggregations = []
    for name, (op, column) in values.items():
        row = op_named(op)
        aggregations.append(Aggregation(row, columns.index(column), name, ddof if row.ddof else 0))
    frame = _frame(batches, [*names, *columns])
    keys = [Wanted(name, name, "by") for name in names]
    source = keyed_frame(frame, keys, [Wanted(name, name, "values") for name in columns], refuse_nulls=False)
    for asked in aggregations:
        if asked.op.multiplies and source.dtypes[asked.column].is_float:
            raise InvalidInput(f"{asked.op.name} of floats rounds at every step, so that it has no exact value", "op")
    plan = GroupPlan(
        tuple(aggregations),
        keep_nulls=not dropna,
        sort=sort,
        min_count=min_count,
        max_groups=max_groups,
        states=states,
    )
    return reducing.group_by(source, plan, None).table()


def _frame(batches: Batches, columns: Sequence[str]) -> Frame:
    """The columns as they are read. A name that is not among them is left to be refused by name."""
    schema, reader = _opened(batches, columns)

    def make(names: Sequence[str]) -> Iterator[Any]:
        for batch in _joined(reader):
            yield batch.select(list(names))

    likely = getattr(batches, "num_rows", None) or getattr(batches, "height", None)
    return Frame(schema, make, likely if isinstance(likely, int) else 0)


def _joined(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows of the batches. Short batches are joined, because the Python code takes the same time for a part however
    few its rows are."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PART_ROWS // 2:
            yield pyarrow.concat_batches(waiting) if len(waiting) > 1 else batch
            waiting, rows = [], 0
    if rows:
        yield pyarrow.concat_batches(waiting)


def _opened(batches: Batches, columns: Sequence[str]) -> tuple[Any, Iterator[Any]]:
    """The schema, and the record batches. An engine that makes them one by one has not made a batch yet."""
    if hasattr(batches, "collect_batches"):  # a LazyFrame of Polars
        names = batches.collect_schema().names()
        lazy = batches.select([name for name in columns if name in names])
        schema = lazy.collect_schema().to_frame(eager=True).to_arrow().schema
        return schema, (
            batch for frame in lazy.collect_batches(maintain_order=False) for batch in frame.to_arrow().to_batches()
        )
    if hasattr(batches, "scanner"):  # a dataset of pyarrow
        scanner = batches.scanner(columns=[name for name in columns if name in batches.schema.names])
        return scanner.projected_schema, scanner.to_batches()
    if not hasattr(batches, "__arrow_c_stream__"):
        raise TypeError(f"{type(batches).__name__} hands out no batches of Arrow: it has no __arrow_c_stream__")
    reader = _executed(batches) if _is_relation(batches) else pyarrow.RecordBatchReader.from_stream(batches)
    return reader.schema, reader


def _is_relation(batches: Batches) -> bool:
    return type(batches).__module__.partition(".")[0] in ("duckdb", "_duckdb")


def _executed(relation: Any) -> "pyarrow.RecordBatchReader":
    """The batches of a relation of DuckDB whose rows are all there.

    A stream that DuckDB makes row by row ends early, and without an error, as soon as its connection does anything
    else; and two threads that begin streams of one connection may get each other's.
    """
    with _turn():
        relation.execute()
        return pyarrow.RecordBatchReader.from_stream(relation)


@cache
def _turn() -> Lock:
    """The lock under which a relation is executed. All relations share one lock, because a relation does not tell its
    connection."""
    return Lock()
