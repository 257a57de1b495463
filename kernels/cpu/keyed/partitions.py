"""Partitions of rows that are reduced by key: the partial result of each partition, and the table that all partitions
make together. Sums are exact states and are rounded once, so that any partitions give the bits of the whole table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warpfold.kernels.aggregates.by_name import op_of_values, selecting
from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.keyed.keys import KeyTable, sorted_order
from warpfold.kernels.cpu.partial_columns import MergedColumn, PartialColumn, among_all, first_place
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.nulls import COUNTED_BY, counted_beside, null_where_counted, with_columns_of_nulls
from warpfold.kernels.machine.extras import required
from warpfold.kernels.ops import NullPolicy, op_named
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import Aggregation, GroupPlan, GroupTable, KeyedBackend, KeyedSource, check_groups
from warpfold.kernels.parts.state_tables import StatesOf, TableOfStates


@dataclass(frozen=True, slots=True)
class PartialTable:
    """The partial result of the rows of one partition, or of several: the keys of each group, the place of its first
    row among all rows, its number of rows, and a column for each aggregation. `labels` are the names of the columns
    of the elements, and `dropped` says how many rows had a null key."""

    key_names: tuple[str, ...]
    keys: tuple[Any, ...]
    firsts: Index
    sizes: Index
    columns: tuple[PartialColumn, ...]
    labels: tuple[str | None, ...]
    dropped: int

    @property
    def nbytes(self) -> int:
        """About how many bytes the table takes in a message."""
        arrays = (self.firsts, self.sizes, *self.keys, *self.columns)
        return sum(int(array.nbytes) for array in arrays)

    @staticmethod
    def merged(parts: "Sequence[PartialTable]", plan: GroupPlan) -> "PartialTable":
        """The merged partial results of `parts`. Raises InvalidInput, StateError and OutOfMemory."""
        merging = MergedTable(plan)
        for part in parts:
            merging.add(part)
        return merging.partial()


def reduce_rows(
    backend: KeyedBackend, source: KeyedSource, plan: GroupPlan, number: int, progress: Progress | None = None,
    *, sort: bool = False,
) -> tuple[GroupTable, PartialTable]:  # fmt: skip
    """Reduce the rows of partition `number`; returns a table that describes the reduction, and the partial result. Its
    groups come in the order of their first rows, or with `sort` in that of their keys, which a GPU finds sooner: then
    their first rows are not known.

    Raises a KernelError, and the errors of `progress`."""
    meaning = next((each for each in source.meanings if each is not None), None)
    if meaning is not None:
        raise InvalidInput(f"groups on a Dask cluster take no {meaning.name} so far; give the backend cpu", "backend")
    if plan.null_policy is NullPolicy.PROPAGATE:
        source, plan = with_columns_of_nulls(source, plan)
    asked = list(plan.aggregations)
    beside: dict[int, int] = {}  # the aggregation by whose values a state is made, where these are not its own
    for at, each in enumerate(plan.aggregations):
        if not each.op.adds and (other := op_of_values(each.op)) != each.op.name:
            beside[at] = len(asked)
            asked.append(Aggregation(op_named(other), each.column, f"{each.name} {at}"))
    keep = any(each.op.adds for each in asked)
    table = backend.group_by(
        source, replace(plan, aggregations=tuple(asked), sort=sort, min_count=0, states=keep), progress
    )
    first = first_place(number)
    columns = []
    for at, each in enumerate(plan.aggregations):
        column, dtype = table.columns[at], source.dtypes[each.column]
        if each.op.adds:
            columns.append(PartialColumn((dtype.name,), column.counts, column.states))
            continue
        elements = table.columns[beside.get(at, at)].values
        state = selecting(each.op, dtype).of_values(
            elements, column.counts, column.values + first if each.op.places else None
        )
        columns.append(PartialColumn((dtype.name,), column.counts, state=state))
    partial = PartialTable(
        key_names=table.key_names,
        keys=table.keys,
        firsts=first + np.arange(table.sizes.size, dtype=np.int64),
        sizes=table.sizes,
        columns=tuple(columns),
        labels=tuple(source.column_names[each.column] for each in plan.aggregations),
        dropped=table.dropped,
    )
    return replace(table, keys=(), sizes=table.sizes[:0], columns=(), described=None), partial


class MergedTable:
    """Partial tables under way to one table."""

    def __init__(self, plan: GroupPlan) -> None:
        self._plan = plan
        self._asked = list(plan.aggregations)
        if plan.null_policy is NullPolicy.PROPAGATE:
            if plan.states:
                raise InvalidInput("a null has no exact state: give states with null_policy omit or raise", "states")
            self._asked += [Aggregation(op_named(COUNTED_BY), 0, "nulls")] * counted_beside(plan)
        self._first: PartialTable | None = None
        self._keys: KeyTable | None = None
        self._columns = [MergedColumn(asked.op) for asked in self._asked]
        self._firsts: Index = np.zeros(0, np.int64)
        self._sizes: Index = np.zeros(0, np.int64)
        self._dropped = 0

    def add(self, part: PartialTable) -> None:
        """Merge a table. Raises InvalidInput naming "max_groups", or where it has other keys or dtypes than the others;
        StateError; OutOfMemory."""
        kinds = [array.type for array in part.keys]
        if self._first is None or self._keys is None:
            self._first, self._keys = part, KeyTable(kinds, keep_nulls=True)
        self._check_like(part, [array.type for array in self._first.keys], kinds)
        before = self._keys.count
        ids = self._keys.number(part.keys).astype(np.int64) - 1
        groups = self._keys.count
        check_groups(groups, self._plan)
        self._sizes, self._firsts = grown(self._sizes, groups), grown(self._firsts, groups)
        self._firsts[before:] = np.iinfo(np.int64).max
        self._sizes[ids] += part.sizes
        self._firsts[ids] = np.minimum(self._firsts[ids], part.firsts)
        self._dropped += part.dropped
        for merged, column in zip(self._columns, part.columns, strict=True):
            merged.add(column, ids, groups)

    def _check_like(self, part: PartialTable, known: list[Any], kinds: list[Any]) -> None:
        assert self._first is not None, "a table came before"
        if kinds != known:
            listed = [", ".join(map(str, each)) for each in (kinds, known)]
            raise InvalidInput(
                f"a partition has keys of {listed[0]}, and another of {listed[1]}: all need one type", "by"
            )
        dtypes, others = ([each.dtypes[0] for each in table.columns] for table in (part, self._first))
        if dtypes != others:
            listed = [", ".join(each) for each in (dtypes, others)]
            raise InvalidInput(
                f"a partition has columns of {listed[0]}, and another of {listed[1]}: all need one dtype",
                "aggregations",
            )

    def partial(self) -> PartialTable:
        """The partial result of all rows that were merged so far."""
        assert self._first is not None, "a table came before"
        assert self._keys is not None, "and it has keys"
        groups = self._keys.count
        return replace(
            self._first,
            keys=tuple(self._keys.keys()),
            firsts=self._firsts[:groups],
            sizes=self._sizes[:groups],
            columns=tuple(column.partial(groups) for column in self._columns),
            dropped=self._dropped,
        )

    def table(self, before: Sequence[int]) -> GroupTable:
        """All groups in their order, each value rounded once. `before` says how many rows lie before each partition.
        Raises InvalidInput."""
        assert self._first is not None, "there is at least one partition"
        assert self._keys is not None, "and it has keys"
        pyarrow, plan, first = required("pyarrow", "tables"), self._plan, self._first
        groups, keys = self._keys.count, self._keys.keys()
        order = np.asarray(sorted_order(keys) if plan.sort else np.argsort(self._firsts[:groups]), np.int64)
        columns, described = [], []
        for at, (asked, merged) in enumerate(zip(self._asked, self._columns, strict=True)):
            dtype, label = DTYPES[first.columns[at].dtypes[0]], first.labels[at]
            column = merged.column(asked, groups, plan.min_count, label, keep=plan.states)
            if asked.op.places:
                places = np.where(column.missing, 0, column.values)
                column = replace(column, values=among_all(places, before))
            columns.append(column.taken(order))
            result = asked.op.result_dtype(dtype)
            described.append(StatesOf(asked.name, asked.op.name, (dtype.name,), result, asked.ddof, column=label))
        if plan.null_policy is NullPolicy.PROPAGATE:
            columns = list(null_where_counted(columns, plan))
        return GroupTable(
            key_names=first.key_names,
            keys=tuple(array.take(pyarrow.array(order)) for array in keys),
            sizes=self._sizes[:groups][order],
            columns=tuple(columns),
            dropped=self._dropped,
            load_ms=0.0,
            kernel_ms=0.0,
            described=TableOfStates.of_groups(first.key_names, described, self._dropped) if plan.states else None,
        )
