"""Reduces by key in ranges of keys: all threads bring the rows in the order of the ranges, and then each thread reduces
one range after another. No two threads have groups in common, so that nothing is merged."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np

from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.keyed.ranges import KeyRanges
from warpfold.kernels.cpu.keyed.scattered import BatchOfRows, RangesInTurn, ScatteredRows
from warpfold.kernels.cpu.memory import available_bytes
from warpfold.kernels.cpu.stream import Folding, stream
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import (
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedRows,
    WholeColumns,
    check_groups,
    whole_numbers,
)

_MOST_BYTES = 1 << 28
"""The most bytes of rows that are held at a time."""

_SHARE_OF_FREE = 4
"""Rows that are held take one in so many of the free bytes at most."""

_LEAST_BATCH = 1 << 20
"""The fewest rows that are held at a time, so that each range has some."""


class Groups(Protocol):
    """The groups of one range."""

    @property
    def count(self) -> int: ...

    def add(self, start: int, rows: KeyedRows, /) -> None: ...

    def table(self, load_ms: float, /) -> GroupTable: ...


def group_in_ranges(
    whole: WholeColumns, plan: GroupPlan, ranges: KeyRanges, make: Callable[[], Groups], progress: Progress | None
) -> GroupTable:
    """Reduce the rows of each group; `make` makes the groups of a range. The rows are read one batch after another, of
    which each is as large as memory allows. Raises InvalidInput naming "max_groups", what reading raises, and
    OutOfMemory."""
    tables = _RangeTables(plan, ranges.count, make)
    load_ms = kernel_ms = reduce_s = read_s = 0.0
    stops = _batches(whole)
    for start, stop in pairwise(stops):
        tables.are_last = stop == stops[-1]
        rows = BatchOfRows(whole, start, stop)
        scattered = stream(rows, partial(ScatteredRows, ranges), _half_of(progress, start, stops[-1]))
        parts = RangesInTurn(scattered.fold, stop - start)
        reduced = stream(parts, lambda: _Reducing(tables), _half_of(progress, stop, stops[-1], left=stop - start))
        load_ms, kernel_ms = load_ms + scattered.load_ms, kernel_ms + scattered.kernel_ms + reduced.kernel_ms
        read_s += scattered.stages.read_s or 0.0
        reduce_s += (scattered.stages.reduce_s or 0.0) + (reduced.stages.reduce_s or 0.0)
    table = _concatenated([each for each in tables.made if each is not None])
    stages = replace(scattered.stages, read_s=read_s, reduce_s=reduce_s)
    return replace(table, load_ms=load_ms, kernel_ms=kernel_ms, stages=stages)


def _batches(whole: WholeColumns) -> list[int]:
    """Where batches of rows begin, and where the last one ends."""
    row = whole.key.dtype.itemsize + sum(column.dtype.itemsize for column in whole.columns)
    most = max(_LEAST_BATCH, min(_MOST_BYTES, available_bytes() // _SHARE_OF_FREE) // row)
    count = -(-whole.key.count // most)
    return [whole.key.count * number // count for number in range(count + 1)]


def _half_of(progress: Progress | None, at: int, total: int, left: int = 0) -> Progress | None:
    """What reports one half of the work on the rows of a batch, which is to order them or to reduce them. With no row
    of this half done, at − left / 2 of `total` rows count as done."""
    if progress is None:
        return None
    return lambda done, _: progress(at + (done - left) // 2, total)


class _RangeTables:
    """The groups of all ranges. While `are_last` is set, rows are the last of their ranges, whose tables are then
    `made`."""

    def __init__(self, plan: GroupPlan, count: int, make: Callable[[], Groups]) -> None:
        self._plan, self._make = plan, make
        self._groups: list[Groups | None] = [None] * count
        self._counts = [0] * count
        self.made: list[GroupTable | None] = [None] * count
        self.are_last = False

    def add(self, number: int, rows: KeyedRows) -> None:
        """Add rows to the groups of a range. Raises InvalidInput."""
        groups = self._groups[number] or self._make()
        groups.add(0, rows)
        self._groups[number], self._counts[number] = groups, groups.count
        check_groups(sum(self._counts), self._plan.max_groups)
        if self.are_last:
            self.made[number], self._groups[number] = groups.table(0.0), None


@dataclass(frozen=True, slots=True)
class _Reducing(Folding):
    """One of the threads that reduce ranges: their tables lie beside each other."""

    tables: _RangeTables

    def add(self, start: int, part: tuple[int, KeyedRows], /) -> None:
        self.tables.add(*part)

    def merge(self, other: object, /) -> None:
        """Do nothing: no two threads have groups in common."""


def _concatenated(tables: list[GroupTable]) -> GroupTable:
    """The tables of all ranges, one behind another."""
    pyarrow, first = required("pyarrow", "tables"), tables[0]
    columns = tuple(_concatenated_column(columns) for columns in zip(*(table.columns for table in tables), strict=True))
    return replace(
        first,
        keys=tuple(pyarrow.concat_arrays(keys) for keys in zip(*(table.keys for table in tables), strict=True)),
        sizes=np.concatenate([table.sizes for table in tables]),
        columns=columns,
    )


def _concatenated_column(parts: tuple[GroupColumn, ...]) -> GroupColumn:
    if len({part.values.dtype for part in parts}) > 1:  # integers that 64 bits may not hold
        values = whole_numbers([number for part in parts for number in part.values.tolist()])
    else:
        values = np.concatenate([part.values for part in parts])
    states = zip(*(part.states for part in parts), strict=True)
    return replace(
        parts[0],
        values=values,
        missing=np.concatenate([part.missing for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        states=tuple(StateColumn.beside(columns) for columns in states),
    )
