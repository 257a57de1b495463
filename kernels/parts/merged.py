"""Partial results that are merged, group by group, into a table that grows while they come."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from warpfold.kernels.aggregates.aggregate import UnderWay
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.cpu.finishing import column_of_states
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import Op, terms_of
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn, check_groups, column_of
from warpfold.kernels.parts.partial import KeyedGroups, PartialColumn, PartialTable, among_all
from warpfold.kernels.parts.state_tables import StatesOf


class Merged:
    """Partial tables of these ops, which come in any order. Numbers of groups are below `groups`, or what the tables
    have; keys make at most `max_groups`."""

    def __init__(self, ops: Sequence[Op], *, groups: int = 0, max_groups: int | None = None) -> None:
        self._columns = [_MergedColumn(op) for op in ops]
        self._max_groups = max_groups
        self._keys: KeyTable | None = None
        self._names: tuple[str, ...] = ()
        self._kinds: list[Any] = []
        self._firsts: Index = np.zeros(0, np.int64)
        self._sizes: Index = np.zeros(0, np.int64)
        self._dropped = 0
        self.count = groups

    def add(self, part: PartialTable) -> None:
        """Merge a table. Raises InvalidInput naming "max_groups", or where it has other keys or dtypes than the others;
        StateError; OutOfMemory."""
        ids = self._numbered(part.groups) if isinstance(part.groups, KeyedGroups) else part.groups
        self.count = max(self.count, int(ids.max(initial=-1)) + 1)
        for merged, column in zip(self._columns, part.columns, strict=True):
            merged.add(column, ids, self.count)

    def _numbered(self, keys: KeyedGroups) -> Index:
        """The number of each group here."""
        kinds = [array.type for array in keys.arrays]
        if self._keys is None:
            self._keys, self._names, self._kinds = KeyTable(kinds, keep_nulls=True), keys.names, kinds
        if [_plain(kind) for kind in kinds] != [_plain(kind) for kind in self._kinds]:
            listed = [", ".join(map(str, each)) for each in (kinds, self._kinds)]
            raise InvalidInput(
                f"a partition has keys of {listed[0]}, and another of {listed[1]}: all need one type", "by"
            )
        before = self._keys.count
        ids = self._keys.number(keys.arrays).astype(np.int64) - 1
        groups = self._keys.count
        check_groups(groups, self._max_groups)
        self._sizes, self._firsts = grown(self._sizes, groups), grown(self._firsts, groups)
        self._firsts[before:] = np.iinfo(np.int64).max
        np.add.at(self._sizes, ids, keys.sizes)
        np.minimum.at(self._firsts, ids, keys.firsts)
        self._dropped += keys.dropped
        return ids

    def keys(self) -> KeyedGroups:
        """The keys of all groups."""
        assert self._keys is not None, "a table of keys came before"
        firsts, sizes = (grown(each, self.count)[: self.count] for each in (self._firsts, self._sizes))
        return KeyedGroups(self._names, tuple(self._keys.keys()), firsts, sizes, self._dropped)

    def partial(self) -> PartialTable:
        """All that was merged so far, as the table of a single part."""
        groups = np.arange(self.count) if self._keys is None else self.keys()
        return PartialTable(groups, tuple(column.partial(self.count) for column in self._columns))

    def columns(
        self,
        asked: Sequence[Aggregation],
        *,
        min_count: int = 0,
        states: bool = False,
        before: Sequence[int] | None = None,
    ) -> list[GroupColumn]:
        """The values of all groups, each rounded once, and with `states` the exact states of sums. `before` says how
        many rows lie before each partition, where places count through partitions. Raises InvalidInput."""
        columns = []
        for each, merged in zip(asked, self._columns, strict=True):
            column = merged.column(each, self.count, min_count, states=states)
            if each.op.places and before is not None:
                column = replace(column, values=among_all(np.where(column.missing, 0, column.values), before))
            columns.append(column)
        return columns

    def described(self, asked: Sequence[Aggregation]) -> list[StatesOf]:
        """What the states of all columns are states of."""
        return [merged.described(each) for each, merged in zip(asked, self._columns, strict=True)]


def merge(parts: Sequence[PartialTable], merged: Merged) -> PartialTable:
    """All of `parts` together, by way of `merged`, which is empty. Raises as `Merged.add`."""
    numbers = [part.groups for part in parts if not isinstance(part.groups, KeyedGroups)]
    if not numbers:
        for part in parts:
            merged.add(part)
        return merged.partial()
    # Only the groups that these parts have take memory.
    groups, places = np.unique(np.concatenate(numbers), return_inverse=True)
    start = 0
    for part, own in zip(parts, numbers, strict=True):
        merged.add(replace(part, groups=places[start : start + own.size].astype(np.int64)))
        start += own.size
    return replace(merged.partial(), groups=groups)


def in_order(
    keys: KeyedGroups, columns: Sequence[GroupColumn], *, sort: bool
) -> tuple[KeyedGroups, tuple[GroupColumn, ...]]:
    """The groups sorted by their keys, nulls last, or in the order of their first rows."""
    take = required("pyarrow", "tables").array
    order = np.asarray(sorted_order(keys.arrays) if sort else np.argsort(keys.firsts), np.int64)
    arrays = tuple(array.take(take(order)) for array in keys.arrays)
    moved = replace(keys, arrays=arrays, firsts=keys.firsts[order], sizes=keys.sizes[order])
    return moved, tuple(column.taken(order) for column in columns)


def _plain(kind: Any) -> Any:
    """The type of the keys themselves, where a dictionary has them."""
    return kind.value_type if required("pyarrow", "tables").types.is_dictionary(kind) else kind


class _MergedColumn:
    """Partial columns of one op, merged row by row into a growing number of rows."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self._first: PartialColumn | None = None
        self._sums = [MergedStates(terms) for terms in terms_of(op)] if op.adds else []
        self._selected: UnderWay | None = None
        self._counts: Index = np.zeros(0, np.int64)

    def add(self, part: PartialColumn, ids: Index, rows: int) -> None:
        """Merge row i of `part` into row ids[i] of `rows`. Only exact states may have an id twice."""
        self._first = self._first or replace(part, states=())
        part.check_like(self._first)
        columns: Sequence[Any] = part.states
        if self._op.adds:
            for merged, states in zip(self._sums, columns, strict=True):
                merged.add(states, ids, rows)
            return
        self._selected = self._selected or aggregate_of(self._op, DTYPES[part.dtypes[0]]).begun()
        self._selected.merge(tuple(columns[:-1]), ids, rows)
        self._counts = grown(self._counts, rows)
        self._counts[ids] += columns[-1]

    def partial(self, rows: int) -> PartialColumn:
        """The first `rows` rows."""
        if self._selected is None:
            return replace(self._like, states=tuple(sums.encoded(rows) for sums in self._sums))
        return replace(self._like, states=(*self._selected.rows(0, rows), grown(self._counts, rows)[:rows]))

    def column(self, asked: Aggregation, rows: int, min_count: int, *, states: bool) -> GroupColumn:
        """The values of the first `rows` rows. Raises InvalidInput."""
        if self._selected is None:
            return column_of_states(self.described(asked), self._sums, rows, min_count, keep=states)
        dtype, counts = DTYPES[self._like.dtypes[0]], grown(self._counts, rows)[:rows]
        values = aggregate_of(asked.op, dtype).finish(self._selected.rows(0, rows), counts)
        return column_of(asked, dtype, values, counts, min_count)

    def described(self, asked: Aggregation) -> StatesOf:
        """What the states are states of."""
        dtypes = self._like.dtypes
        result = result_dtype(asked.op, *(DTYPES[name] for name in dtypes))
        return StatesOf(asked.name, asked.op.name, dtypes, result, asked.ddof, column=self._like.label)

    @property
    def _like(self) -> PartialColumn:
        """What all parts have in common."""
        assert self._first is not None, "a part came before"
        return self._first
