"""Merges tables of exact states: rows with equal keys are added up as integers, table after table, and each sum is
rounded once at the end."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import StateError
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.machine.extras import required
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.ops import OPS
from warpfold.kernels.ops.empties import with_empties
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import GroupColumn, GroupTable
from warpfold.kernels.parts.merging import MergePlan, StatesTable, is_text
from warpfold.kernels.parts.state_tables import StatesOf, TableOfStates, terms_of


def merge_tables(tables: Sequence[StatesTable], plan: MergePlan, progress: Progress | None) -> GroupTable:
    """Add up the states of equal keys. Raises InvalidInput with the field of the table that is at fault or
    "max_groups", the errors of reading, and OutOfMemory."""
    began = working_s()
    for table in tables[1:]:
        table.check_like(tables[0])
    groups = _Merging(tables[0], plan)
    total = sum(table.likely for table in tables)
    for table in tables:
        groups.add(table)
        if progress is not None:
            progress(min(groups.rows, total), total)
    loaded = working_s()
    return groups.table([table.described for table in tables], (loaded - began) * 1e3)


class _Merging:
    """The sums of all values under way, and the keys they belong to."""

    def __init__(self, first: StatesTable, plan: MergePlan) -> None:
        self._first, self._plan = first, plan
        self._shape = first.described.shape
        self._keys = KeyTable(first.key_types, keep_nulls=True) if self._shape is None else None
        self._sums = [[MergedStates(terms) for terms in terms_of(OPS[each.op])] for each in first.described.values]
        self._sizes: Index = np.zeros(0, np.int64)
        self._groups = 0
        self.rows = 0

    def add(self, table: StatesTable) -> None:
        """Add all rows of a table."""
        described, before = table.described, self.rows
        states = [name for each in described.values for name in each.states]
        sizes = [described.sizes] if described.sizes is not None else []
        for batch in table.begin([*described.keys, *states, *sizes]):
            ids = self._number(table, batch)
            columns = [self._column(table, batch, name) for name in states]
            try:
                for merged, column in zip((sums for value in self._sums for sums in value), columns, strict=True):
                    merged.add(column, ids, self._groups)
            except StateError as error:
                start = self.rows - before
                raise InvalidInput(
                    f"holds from row {start:,} on bytes that are not an exact state: {error}", table.field
                ) from None
            self._add_sizes(table, batch, ids)
            self.rows += batch.num_rows
        if self._shape is not None and self.rows - before != prod(self._shape):
            raise InvalidInput(
                f"has {self.rows - before:,} rows, and an array of the shape it describes {prod(self._shape):,} values",
                table.field,
            )

    def _number(self, table: StatesTable, batch: Any) -> Index:
        """The group of each row, from 0 on."""
        keys = [batch.column(name) for name in table.described.keys]
        if self._keys is None:
            ids = self._place(table, keys, batch.num_rows)
            self._groups = max(self._groups, int(ids.max(initial=-1)) + 1)
            return ids
        kinds = zip(keys, self._first.key_types, strict=True)
        numbers = self._keys.number([_as_first(key, kind) for key, kind in kinds]).astype(np.int64) - 1
        self._groups = self._keys.count
        if self._groups > self._plan.max_groups:
            raise InvalidInput(
                f"the tables make more than {self._plan.max_groups:,} groups: {self._groups:,} were reached; "
                "max_groups may allow more",
                "max_groups",
            )
        return numbers

    def _place(self, table: StatesTable, keys: Sequence[Any], rows: int) -> Index:
        """The places of the values with these indices in the array."""
        assert self._shape is not None, "the values are an array"
        if any(key.null_count for key in keys):
            raise InvalidInput("has a null for an index", table.field)
        indices = [key.to_numpy(zero_copy_only=False) for key in keys]
        try:
            return np.asarray(np.ravel_multi_index(indices, self._shape) if keys else np.zeros(rows), np.int64)
        except ValueError:
            raise InvalidInput("has an index outside of the array that it describes", table.field) from None

    def _column(self, table: StatesTable, batch: Any, name: str) -> StateColumn:
        column, types = batch.column(name), required("pyarrow", "tables").types
        if not (types.is_binary(column.type) or types.is_large_binary(column.type)) or column.null_count:
            raise InvalidInput(
                f"holds in {name!r} {column.type} with nulls or without bytes, and no states", table.field
            )
        try:
            return StateColumn.of_arrow(column)
        except StateError as error:
            raise InvalidInput(f"holds no states in {name!r}: {error}", table.field) from None

    def _add_sizes(self, table: StatesTable, batch: Any, ids: Index) -> None:
        if self._shape is not None or table.described.sizes is None:
            return
        column = batch.column(table.described.sizes)
        if not required("pyarrow", "tables").types.is_integer(column.type) or column.null_count:
            raise InvalidInput(f"has no numbers of rows in {table.described.sizes!r}", table.field)
        self._sizes = grown(self._sizes, self._groups)
        np.add.at(self._sizes, ids, column.to_numpy(zero_copy_only=False).astype(np.int64))

    def table(self, described: Sequence[TableOfStates], load_ms: float) -> GroupTable:
        """All groups in their order, or all values of the array. Raises InvalidInput."""
        began = working_s()
        pyarrow, first = required("pyarrow", "tables"), described[0]
        if self._shape is not None:
            self._groups = prod(self._shape)
        values = zip(first.values, self._sums, strict=True)
        columns = tuple(column_of_states(each, sums, self._groups, self._plan.min_count) for each, sums in values)
        if self._keys is None:
            rows = np.arange(self._groups)
            keys = [pyarrow.array(axis) for axis in np.unravel_index(rows, self._shape)] if self._shape else []
        else:
            keys = self._keys.keys()
            if self._plan.sort:
                order = sorted_order(keys)
                keys = [key.take(pyarrow.array(order)) for key in keys]
                columns = tuple(column.taken(order) for column in columns)
                self._sizes = grown(self._sizes, self._groups)[order]
        sized = self._shape is None and all(table.sizes is not None for table in described)
        sizes = grown(self._sizes, self._groups)[: self._groups] if sized else columns[0].counts
        dropped = sum(table.dropped for table in described)
        if self._shape is None:
            first = TableOfStates.of_groups(first.keys, first.values, dropped)
        return GroupTable(
            key_names=first.keys,
            keys=tuple(keys),
            sizes=sizes,
            columns=columns,
            dropped=dropped,
            load_ms=load_ms,
            kernel_ms=(working_s() - began) * 1e3,
            described=first,
        )


def _as_first(key: Any, kind: Any) -> Any:
    """A column of keys in the type of the first table, because strings may come as another type of strings."""
    types = required("pyarrow", "tables").types
    if key.type.equals(kind):
        return key
    assert is_text(kind), "other types are equal"
    key = key.dictionary_decode() if types.is_dictionary(key.type) else key
    return key.cast(kind.value_type if types.is_dictionary(kind) else kind)


def column_of_states(
    each: StatesOf, sums: Sequence[MergedStates], groups: int, min_count: int, *, keep: bool = True
) -> GroupColumn:
    """The values of all groups, and with `keep` their states. Raises InvalidInput where the states are not those of
    such elements."""
    op = OPS[each.op]
    counts = sums[0].counts(groups).copy()
    if any((other.counts(groups) != counts).any() for other in sums[1:]):
        raise InvalidInput(f"the sums and the sums of squares of {each.name!r} are not of the same elements", "tables")
    states = tuple(merged.encoded(groups) for merged in sums) if keep else ()
    missing = counts < max(min_count, op.least_count(each.ddof))
    try:
        parts = [merged.sums(groups) for merged in sums]
        values = ValueFinish(op, each.result, each.ddof).values(parts, np.where(missing, 0, counts))
    except StateError as error:
        raise InvalidInput(f"the states of {each.name!r} are not those of {each.op}: {error}", "tables") from None
    values = with_empties(op, DTYPES[each.dtypes[0]], values, counts)
    return GroupColumn(each.name, each.op, each.result, values, missing, counts, states)
