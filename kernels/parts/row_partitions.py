"""Partitions of rows that are reduced by key: the partial results of each, and the table that all make together. Sums
are exact states and are rounded once, so that any partitions give the bits of the whole table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpfold.kernels.backend import LISTED, Progress
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.fractions import has_fraction, in_digits, means_of_column
from warpfold.kernels.lowering.nulls import counting_nulls, null_where_counted, with_columns_of_nulls
from warpfold.kernels.ops import NullPolicy, Op, op_named
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn, GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.merged import Merged, in_order
from warpfold.kernels.parts.partial import KeyedGroups, PartialColumn, PartialTable, first_place, ops_of_parts
from warpfold.kernels.parts.state_tables import TableOfStates


def reduce_rows(
    backend: Backend, source: KeyedSource, plan: GroupPlan, number: int, progress: Progress | None = None,
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
    asked = [replace(each, state_only=True) if each.op.adds else each for each in plan.aggregations]
    beside: dict[int, int] = {}  # the aggregation by whose values a state is made, where these are not its own
    for at, each in enumerate(plan.aggregations):
        if not each.op.adds and (other := ops_of_parts(each.op)[-1]) != each.op.name:
            beside[at] = len(asked)
            asked.append(Aggregation(op_named(other), each.column, f"{each.name} {at}"))
    keep = any(each.op.adds for each in asked)
    table = backend.group_by(
        source, replace(plan, aggregations=tuple(asked), sort=sort, min_count=0, states=keep, digits=None), progress
    )
    first = first_place(number)
    columns = []
    for at, each in enumerate(plan.aggregations):
        column, dtypes = table.columns[at], (source.dtypes[each.column].name,)
        if each.op.adds:
            made = PartialColumn(dtypes, column.states)
        else:
            elements = table.columns[beside.get(at, at)].values
            places = column.values + first if each.op.places else None
            made = PartialColumn.selected(each.op, dtypes, column.counts, elements, places)
        columns.append(replace(made, label=source.column_names[each.column]))
    firsts = first + np.arange(table.sizes.size, dtype=np.int64)
    keys = KeyedGroups(table.key_names, table.keys, firsts, table.sizes, table.dropped)
    bare = replace(table, keys=(), sizes=table.sizes[:0], columns=(), described=None)
    return bare, PartialTable(keys, tuple(columns))


def merged_rows(plan: GroupPlan) -> Merged:
    """A table that takes the partial results of `reduce_rows`."""
    return Merged([asked.op for asked in _counted(plan).aggregations], max_groups=plan.max_groups)


def table_of(merged: Merged, plan: GroupPlan, before: Sequence[int]) -> GroupTable:
    """All groups in their order, each value rounded once; means of integers are fractions, too, unless there are very
    many groups. `before` says how many rows lie before each partition. Raises InvalidInput."""
    asked = _counted(plan).aggregations
    listed = plan.digits is not None or merged.count <= LISTED
    divided = [
        listed and has_fraction(each.op, DTYPES[of.dtypes[0]])
        for each, of in zip(asked, merged.described(asked), strict=True)
    ]
    columns = merged.columns(asked, min_count=plan.min_count, states=plan.states or any(divided), before=before)
    if plan.null_policy is NullPolicy.PROPAGATE:
        columns = list(null_where_counted(columns, plan))
    columns = [
        _finished(each.op, column, plan, divided=is_mean)
        for each, column, is_mean in zip(plan.aggregations, columns, divided, strict=False)
    ]
    keys, columns_in_order = in_order(merged.keys(), columns, sort=plan.sort)
    described = TableOfStates.of_groups(keys.names, merged.described(asked), keys.dropped) if plan.states else None
    return GroupTable(
        keys.names, keys.arrays, keys.sizes, columns_in_order, keys.dropped, 0.0, 0.0, described=described
    )


def _finished(op: Op, column: GroupColumn, plan: GroupPlan, *, divided: bool) -> GroupColumn:
    """The column without states that are not asked for, and where the sums of integers were `divided`, with fractions.
    Raises InvalidInput naming "digits"."""
    means = means_of_column(column) if divided else None
    words = in_digits(means, plan.digits if op.endless else None)
    return replace(column, fractions=means, words=words, states=column.states if plan.states else ())


def _counted(plan: GroupPlan) -> GroupPlan:
    return counting_nulls(plan, 0) if plan.null_policy is NullPolicy.PROPAGATE else plan
