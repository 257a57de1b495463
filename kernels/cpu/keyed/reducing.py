"""Reduces by key. Rows are read once, part by part on all cores. Each thread numbers the keys that it meets, and adds
elements to its own groups. At the end the groups of all threads are merged as exact integers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.keyed.column import ColumnFold, ops_by_fold
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cpu.keyed.range_groups import group_in_ranges
from warpfold.kernels.cpu.keyed.ranges import KeyRanges, can_be_scattered, ranges_for
from warpfold.kernels.cpu.keyed.scattered import ScatteredRows
from warpfold.kernels.cpu.keyed.sums import LevelOrigin
from warpfold.kernels.cpu.pieces import Piece, Pieces
from warpfold.kernels.cpu.stream import stream
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.machine.extras import required
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import (
    PART_ROWS,
    Cells,
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedRows,
    KeyedSource,
    check_groups,
)
from warpfold.kernels.parts.state_tables import StatesOf, TableOfStates

_DAY_MS = 86_400_000
_MANY = 33
"""How often three rows are repeated, so that few groups have many elements each and a few are left over."""


def group_by(source: KeyedSource, plan: GroupPlan, progress: Progress | None, *, compiled: bool = True) -> GroupTable:
    """Reduce the rows of each group. Keys and sums need no compiler unless they are to be `compiled`. Raises
    InvalidInput naming "max_groups" or "nan_policy", what reading raises, and OutOfMemory where the states of all
    groups do not fit."""
    if compiled and (ranges := ranges_for(source, plan)) is not None:
        assert source.whole is not None, "only rows by position have ranges"
        return group_in_ranges(source.whole, plan, ranges, partial(_groups, source, plan), progress)
    make = partial(_Groups, source, plan, _places(source, plan), compiled=compiled)
    streamed = stream(_Pieces(source), make, progress)
    began = working_s()
    groups = streamed.fold
    table = groups.table(streamed.load_ms)
    finished_s = working_s() - began
    return replace(
        table,
        kernel_ms=streamed.kernel_ms + finished_s * 1e3,
        stages=replace(streamed.stages, reduce_s=(streamed.stages.reduce_s or 0.0) + finished_s),
    )


def _groups(source: KeyedSource, plan: GroupPlan) -> "_Groups":
    """Groups that are merged with no others."""
    return _Groups(source, plan, _places(source, plan))


def needs(source: KeyedSource, plan: GroupPlan) -> list[tuple[str, ...]]:
    """What reductions like this one need compiled: the numbers of keys, and the ops of dtypes."""
    types = required("pyarrow", "tables").types
    wide = len(source.key_types) > 1 or any(
        types.is_primitive(kind) and kind.bit_width == 64 for kind in source.key_types
    )
    ops = {(asked.op.name, source.dtypes[asked.column].name) for asked in plan.aggregations}
    keys = ("keys", "int64" if wide else "int32")
    return [keys, *(("by key", *each, str(plan.states)) for each in sorted(ops))]


def compile_for(source: KeyedSource, plan: GroupPlan) -> None:
    """Compile or load every function that reductions like this one call. To do so, rows over few exponents and rows
    over many are reduced, each in two parts: a short part, and a part that has many rows of each group."""
    pyarrow = required("pyarrow", "tables")
    keys = [_sample(pyarrow, kind) for kind in source.key_types]
    spreads = {dtype: [1e-30, 1.0, 1e30] for dtype in source.dtypes if dtype.is_float and dtype.max_exponent > 100}
    for wide in (False, True) if spreads else (False,):
        columns = [
            np.array(spreads[dtype] if wide and dtype in spreads else [1, 1, 0]).astype(dtype.numpy)
            for dtype in source.dtypes
        ]
        parts = []
        for start, times in ((0, 1), (3, _MANY)):
            tiled = tuple(pyarrow.concat_arrays([key] * times) for key in keys)
            cells = tuple(Cells(np.tile(column, times)) for column in columns)
            parts.append(KeyedPart(start, start + 3 * times, partial(KeyedRows, start, tiled, cells)))
        _reduce_sample(source, plan, parts)


def _reduce_sample(source: KeyedSource, plan: GroupPlan, parts: list[KeyedPart]) -> None:
    sample = replace(source, begin=lambda: iter(parts), likely=parts[-1].stop, decodes=False)
    folds = [_Groups(sample, plan, _places(source, plan)) for _ in range(2)]
    for fold in folds:
        for part in parts:
            fold.add(part.start, part.read())
    folds[0].merge(folds[1])
    folds[0].table(0.0)
    if can_be_scattered(source, plan):
        scattered = ScatteredRows(KeyRanges.of_sample(parts[-1].read().keys[0].to_numpy(), 1))
        scattered.add(0, parts[-1].read())


def _sample(pyarrow: Any, kind: Any) -> Any:
    if pyarrow.types.is_dictionary(kind):
        return pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([0, 1, 0], kind.index_type), _sample(pyarrow, kind.value_type)[:2]
        )
    if pyarrow.types.is_primitive(kind):
        stored = pyarrow.int32() if kind == pyarrow.date32() else pyarrow.int64()
        other = _DAY_MS if kind == pyarrow.date64() else 1
        return pyarrow.array([other, 0, other], stored).cast(kind)
    return pyarrow.array(["1", "0", "1"], kind)


Places = tuple[dict[str, LevelOrigin], ...]


def _places(source: KeyedSource, plan: GroupPlan) -> Places:
    """The places of the levels that all threads share, for each column and fold."""
    return tuple({name: LevelOrigin() for name in ops} for ops in _ops(source, plan))


def _ops(source: KeyedSource, plan: GroupPlan) -> list[Any]:
    return [
        ops_by_fold(asked.op for asked in plan.aggregations if asked.column == number)
        for number in range(len(source.dtypes))
    ]


@dataclass(frozen=True, slots=True)
class _Pieces(Pieces[KeyedRows]):
    """The rows of a source as a stream takes them."""

    source: KeyedSource

    @property
    def likely(self) -> int:
        return self.source.likely

    @property
    def ahead_s(self) -> float | None:
        return 0.0 if self.source.decodes else None

    def threads(self) -> int:
        if self.source.decodes:
            return usable_cores()
        return min(usable_cores(), -(-self.source.likely // PART_ROWS))

    def begin(self) -> Iterator[Piece[KeyedRows]]:
        for part in self.source.begin():
            yield Piece(part.start, part.stop, part.read)


def described_states(source: KeyedSource, plan: GroupPlan, dropped: int) -> TableOfStates:
    """The description of the columns of a table of states by `plan`."""
    values = []
    for asked in plan.aggregations:
        dtype = source.dtypes[asked.column]
        result = asked.op.result_dtype(dtype)
        column = source.column_names[asked.column]
        values.append(StatesOf(asked.name, asked.op.name, (dtype.name,), result, asked.ddof, column=column))
    return TableOfStates.of_groups(source.key_names, values, dropped)


class _Groups:
    """The groups of one thread."""

    def __init__(self, source: KeyedSource, plan: GroupPlan, places: Places, *, compiled: bool = True) -> None:
        self._source = source
        self._plan = plan
        self._keys = KeyTable(source.key_types, keep_nulls=plan.keep_nulls, any_order=True, compiled=compiled)
        named = zip(source.column_names, source.dtypes, _ops(source, plan), places, strict=True)
        self._columns = [ColumnFold(*column, plan.nan_policy, compiled=compiled) for column in named]
        self._firsts: Index = np.zeros(0, np.int64)
        self._rows = 0

    @property
    def count(self) -> int:
        """How many groups there are."""
        return self._keys.count

    def add(self, start: int, rows: KeyedRows) -> None:
        """Take in rows from number `start` on. Raises InvalidInput."""
        before = self._keys.count
        ids = self._keys.number(rows.keys)
        self._rows += ids.size
        self._check()
        groups = self._keys.count
        if not self._plan.sort and groups > before:
            self._hold_firsts(groups)
            new = np.flatnonzero(self._firsts[ids] < 0)[::-1]
            self._firsts[ids[new]] = start + new  # of equal numbers the last is kept, which is the first row
        for column, cells in zip(self._columns, rows.columns, strict=True):
            column.add(start, cells, ids, groups)

    def _check(self) -> None:
        check_groups(self._keys.count, self._plan.max_groups)

    def _hold_firsts(self, groups: int) -> None:
        known = self._firsts.size
        self._firsts = grown(self._firsts, groups + 1)
        self._firsts[known:] = -1

    def merge(self, other: "_Groups") -> None:
        """Take in all rows that `other` took in. Raises InvalidInput."""
        ids = np.zeros(other._keys.count + 1, np.int32)
        ids[1:] = self._keys.number(other._keys.keys())
        self._check()
        groups = self._keys.count
        self._rows += other._rows
        if not self._plan.sort:
            self._hold_firsts(groups)
            other._hold_firsts(other._keys.count)
            theirs, mine = other._firsts[1 : ids.size], self._firsts[ids[1:]]
            self._firsts[ids[1:]] = np.where(mine < 0, theirs, np.minimum(mine, theirs))
        for column, others in zip(self._columns, other._columns, strict=True):
            column.merge(others, ids, groups)

    def table(self, load_ms: float) -> GroupTable:
        """The groups in their order."""
        groups, keys = self._keys.count, self._keys.keys()
        order = self._order(keys)
        columns = []
        for asked in self._plan.aggregations:
            column = self._columns[asked.column].column(asked, groups, self._plan.min_count, keep=self._plan.states)
            columns.append(column.taken(order))
        sizes = self._columns[0].sizes(groups)[order]
        dropped = self._rows - int(sizes.sum())
        return GroupTable(
            key_names=self._source.key_names,
            keys=tuple(array.take(required("pyarrow", "tables").array(order)) for array in keys),
            sizes=sizes,
            columns=tuple(columns),
            dropped=dropped,
            load_ms=load_ms,
            kernel_ms=0.0,
            described=described_states(self._source, self._plan, dropped) if self._plan.states else None,
        )

    def _order(self, keys: list[Any]) -> Index:
        if self._plan.sort:
            return sorted_order(keys)
        self._hold_firsts(self._keys.count)
        return np.argsort(self._firsts[1 : self._keys.count + 1], kind="stable")
