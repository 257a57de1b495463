"""Merging of tables of exact states: what is asked for, and the tables as they are read. Rows with equal keys are added
up table after table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import numpy as np

from warpfold.kernels.backend import Progress
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import StateError
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.formats.frames import Frame, check_key
from warpfold.kernels.machine.extras import required
from warpfold.kernels.machine.preparation import of_process, working_s
from warpfold.kernels.ops import OPS
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import MOST_GROUPS, Aggregation, GroupColumn, GroupTable
from warpfold.kernels.parts.merged import Merged, in_order
from warpfold.kernels.parts.partial import KeyedGroups, PartialColumn, PartialTable
from warpfold.kernels.parts.state_tables import TableOfStates


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What to make of the tables. Groups come sorted by their keys, nulls last, or in the order in which the tables
    have them; the values of an array come in C order. A value of fewer than `min_count` elements is missing."""

    sort: bool = True
    min_count: int = 0
    max_groups: int = MOST_GROUPS


@dataclass(frozen=True, slots=True)
class StatesTable:
    """A table of states that can be read: what its columns are, the types of its keys as pyarrow has them, and a
    function that begins to read the named columns in record batches. `field` is the part of the request that names it,
    and `likely` is how many rows there may be."""

    field: str
    described: TableOfStates
    key_types: tuple[Any, ...]
    begin: Callable[[Sequence[str]], Iterator[Any]]
    likely: int

    @classmethod
    def of(cls, frame: Frame, field: str) -> Self:
        """The table whose columns are `frame`. Raises InvalidInput naming `field`."""
        try:
            described = TableOfStates.of_schema(frame.schema)
        except InvalidInput as error:
            raise InvalidInput(str(error), field) from None
        kinds = tuple(frame.schema.field(name).type for name in described.keys)
        for name, kind in zip(described.keys, kinds, strict=True):
            check_key(name, kind, field)
        return cls(field, described, kinds, frame.make, frame.likely)

    def check_like(self, first: "StatesTable") -> None:
        """Raise InvalidInput naming the field of this table unless it has the ops, dtypes and keys of the first one."""
        mine, theirs = self.described, first.described
        parts: list[tuple[str, object, object]] = [
            ("keys", mine.keys, theirs.keys),
            ("values", [each.name for each in mine.values], [each.name for each in theirs.values]),
            ("a shape", mine.shape, theirs.shape),
        ]
        for what, here, wanted in parts:
            if here != wanted:
                raise InvalidInput(f"has {what} {_shown(here)}, and {first.field} {_shown(wanted)}", self.field)
        for name, kind, other in zip(mine.keys, self.key_types, first.key_types, strict=True):
            if not (kind.equals(other) or (is_text(kind) and is_text(other))):
                raise InvalidInput(f"has the key {name!r} as {kind}, and {first.field} as {other}", self.field)
        for own, others in zip(mine.values, theirs.values, strict=True):
            compared: list[tuple[str, object, object]] = [
                ("op", own.op, others.op),
                ("dtype", ", ".join(own.dtypes), ", ".join(others.dtypes)),
                ("ddof", own.ddof, others.ddof),
            ]
            for what, here, wanted in compared:
                if here != wanted:
                    raise InvalidInput(
                        f"has {own.name!r} with the {what} {here}, and {first.field} {wanted}", self.field
                    )


def is_text(kind: Any) -> bool:
    """Whether keys of this type of pyarrow are strings, or a dictionary of strings."""
    types = required("pyarrow", "tables").types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner))


def _shown(part: Any) -> str:
    return "none" if part is None else f"({', '.join(map(str, part))})"[:200]


def merge_tables(tables: Sequence[StatesTable], plan: MergePlan, progress: Progress | None = None) -> GroupTable:
    """Add up the states of equal keys in all tables, and round each sum once; the states stand in the table. Raises
    InvalidInput with the field of the table that is at fault or "max_groups", the errors of reading, and
    OutOfMemory."""
    began, before_ms = working_s(), of_process().total_ms
    for table in tables[1:]:
        table.check_like(tables[0])
    first = tables[0].described
    ops = [OPS[each.op] for each in first.values]
    count = 0 if first.shape is None else prod(first.shape)
    merged = Merged(ops, groups=count, max_groups=plan.max_groups)
    merged.add(_nothing_of(tables[0]))
    total, rows = sum(table.likely for table in tables), 0
    for table in tables:
        before = rows
        for size, part in _parts(table, tables[0], before):
            try:
                merged.add(part)
            except StateError as error:
                raise InvalidInput(
                    f"holds from row {rows - before:,} on bytes that are not an exact state: {error}", table.field
                ) from None
            rows += size
        if first.shape is not None and rows - before != count:
            raise InvalidInput(
                f"has {rows - before:,} rows, and an array of the shape it describes {count:,} values", table.field
            )
        if progress is not None:
            progress(min(rows, total), total)
    loaded = working_s()
    asked = [Aggregation(op, 0, each.name, each.ddof) for op, each in zip(ops, first.values, strict=True)]
    columns = tuple(merged.columns(asked, min_count=plan.min_count, states=True))
    described, is_array = [table.described for table in tables], first.shape is not None
    made = _of_array(first, columns) if is_array else _of_groups(merged.keys(), columns, described, plan)
    return replace(
        made,
        load_ms=(loaded - began) * 1e3,
        kernel_ms=(working_s() - loaded) * 1e3,
        prepare_ms=of_process().total_ms - before_ms,
    )


def _of_array(described: TableOfStates, columns: tuple[GroupColumn, ...]) -> GroupTable:
    """The values of an array, whose keys are the indices on its axes."""
    pyarrow, shape, counts = required("pyarrow", "tables"), described.shape, columns[0].counts
    axes = np.unravel_index(np.arange(counts.size), shape) if shape else ()
    keys = tuple(pyarrow.array(axis) for axis in axes)
    return GroupTable(described.keys, keys, counts, columns, described.dropped, 0.0, 0.0, described=described)


def _of_groups(
    keys: KeyedGroups, columns: tuple[GroupColumn, ...], described: Sequence[TableOfStates], plan: MergePlan
) -> GroupTable:
    """All groups in their order."""
    dropped = sum(table.dropped for table in described)
    keys, columns = in_order(keys, columns, sort=plan.sort)
    sizes = keys.sizes if all(table.sizes is not None for table in described) else columns[0].counts
    own = TableOfStates.of_groups(keys.names, described[0].values, dropped)
    return GroupTable(keys.names, keys.arrays, sizes, columns, dropped, 0.0, 0.0, described=own)


def _nothing_of(first: StatesTable) -> PartialTable:
    """A part without rows, because tables may have none."""
    pyarrow, none = required("pyarrow", "tables"), np.zeros(0, np.int64)
    arrays = tuple(pyarrow.array([], kind) for kind in first.key_types)
    groups = none if first.described.shape is not None else KeyedGroups(first.described.keys, arrays, none, none)
    return PartialTable(groups, _columns(first, {name: StateColumn.of_bytes([]) for name in _states(first)}))


def _states(table: StatesTable) -> list[str]:
    return [name for each in table.described.values for name in each.states]


def _columns(table: StatesTable, states: dict[str, StateColumn]) -> tuple[PartialColumn, ...]:
    return tuple(
        PartialColumn(each.dtypes, tuple(states[name] for name in each.states), label=each.column)
        for each in table.described.values
    )


def _parts(table: StatesTable, first: StatesTable, start: int) -> Iterator[tuple[int, PartialTable]]:
    """The rows of a table batch by batch, and how many rows each has; they are counted from `start` on."""
    described, names = table.described, _states(table)
    sizes = [described.sizes] if described.sizes is not None else []
    for batch in table.begin([*described.keys, *names, *sizes]):
        keys = [batch.column(name) for name in described.keys]
        groups: Index | KeyedGroups
        if described.shape is not None:
            groups = _places(table, described.shape, keys, batch.num_rows)
        else:
            arrays = tuple(_as_first(key, kind) for key, kind in zip(keys, first.key_types, strict=True))
            firsts = start + np.arange(batch.num_rows)
            groups = KeyedGroups(described.keys, arrays, firsts, _sizes(table, batch))
        yield (
            batch.num_rows,
            PartialTable(groups, _columns(table, {name: _column(table, batch, name) for name in names})),
        )
        start += batch.num_rows


def _places(table: StatesTable, shape: tuple[int, ...], keys: Sequence[Any], rows: int) -> Index:
    """The places of the values with these indices in the array."""
    if any(key.null_count for key in keys):
        raise InvalidInput("has a null for an index", table.field)
    indices = [key.to_numpy(zero_copy_only=False) for key in keys]
    try:
        return np.asarray(np.ravel_multi_index(indices, shape) if keys else np.zeros(rows), np.int64)
    except ValueError:
        raise InvalidInput("has an index outside of the array that it describes", table.field) from None


def _column(table: StatesTable, batch: Any, name: str) -> StateColumn:
    column, types = batch.column(name), required("pyarrow", "tables").types
    if not (types.is_binary(column.type) or types.is_large_binary(column.type)) or column.null_count:
        raise InvalidInput(f"holds in {name!r} {column.type} with nulls or without bytes, and no states", table.field)
    try:
        return StateColumn.of_arrow(column)
    except StateError as error:
        raise InvalidInput(f"holds no states in {name!r}: {error}", table.field) from None


def _sizes(table: StatesTable, batch: Any) -> Index:
    """How many rows each group has; 0 where the table does not say."""
    if table.described.sizes is None:
        return np.zeros(batch.num_rows, np.int64)
    column = batch.column(table.described.sizes)
    if not required("pyarrow", "tables").types.is_integer(column.type) or column.null_count:
        raise InvalidInput(f"has no numbers of rows in {table.described.sizes!r}", table.field)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _as_first(key: Any, kind: Any) -> Any:
    """A column of keys in the type of the first table, because strings may come as another type of strings."""
    types = required("pyarrow", "tables").types
    if key.type.equals(kind):
        return key
    assert is_text(kind), "other types are equal"
    key = key.dictionary_decode() if types.is_dictionary(key.type) else key
    return key.cast(kind.value_type if types.is_dictionary(kind) else kind)
