"""Nulls that propagate: a value of elements with a null among them is null, as in SQL's arithmetic and unlike its sums.

A source that keeps its nulls has zeros in their places, so that every element is where it was, and its `nulls` tell
which places these are. A reduction of such a source replaces the values that have a null.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction, Reduction
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NullPolicy, op_named
from warpfold.kernels.parts.keyed import (
    Aggregation,
    Cells,
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedPart,
    KeyedRows,
    KeyedSource,
)
from warpfold.kernels.query import ByKey
from warpfold.kernels.sources.sequential import (
    Elements,
    SequentialSource,
    in_order,
    likely_count,
    shape_of,
    side_by_side,
)

T = TypeVar("T")

_PIECE = 1 << 17

COUNTED_BY = "count_nonzero"
"""The op that counts the nulls of a value."""


def keeps_nulls(source: Elements) -> bool:
    """Whether nulls stand in their places as zeros."""
    return isinstance(source, SequentialSource) and source.nulls is not None


def nulls_met(sources: Sequence[Elements]) -> int:
    """How many nulls the sources that keep theirs have met so far."""
    return sum(source.tally.nulls for source in sources if isinstance(source, SequentialSource) and keeps_nulls(source))


def truths_of(*sources: Elements) -> SequentialSource:
    """Whether each element is a null: of one source, or in one of several that stand side by side."""
    if len(sources) > 1:
        first, parts = sources[0], [truths_of(source) for source in sources]

        def of_all() -> Iterator[NDArray[Any]]:
            return (np.logical_or.reduce(arrays) for arrays in side_by_side(parts, _PIECE))

        return SequentialSource(DTYPES["bool"], of_all, first.count, likely_count(first), shape=shape_of(first))
    (source,) = sources
    if isinstance(source, SequentialSource) and source.nulls is not None:
        return source.nulls()

    def none() -> Iterator[NDArray[Any]]:
        return (np.zeros(piece.size, np.bool_) for piece in in_order(source, _PIECE))

    return SequentialSource(DTYPES["bool"], none, source.count, likely_count(source), shape=shape_of(source))


def with_nulls(reduction: Reduction, sources: Sequence[Elements]) -> Reduction:
    """The reduction of all elements of `sources`, which have nulls: it has no state, and its count is that of the
    elements, or pairs of elements, that are values."""
    nulls = nulls_met(sources)
    if len(sources) > 1:  # a pair may have two
        nulls = sum(int(np.count_nonzero(piece)) for piece in in_order(truths_of(*sources), _PIECE))
    count = max(0, reduction.count - nulls)
    return replace(reduction, null=True, count=count, state=None, decimal=None, time=None, fraction=None)


def without_values_of_nulls(reduction: GroupedReduction, nulls: NDArray[np.int64]) -> GroupedReduction:
    """The reduction, with null for each value that has nulls among its elements. Counts leave out these nulls, and the
    NaNs that were omitted."""
    values = tuple(None if null else value for value, null in zip(reduction.listed(), nulls.tolist(), strict=True))
    return replace(
        reduction,
        values=values,
        counts=np.maximum(0, np.asarray(reduction.counts, np.int64) - nulls),
        decimals=_without(reduction.decimals, nulls),
        times=_without(reduction.times, nulls),
        fractions=_without(reduction.fractions, nulls),
    )


def _without(words: tuple[T | None, ...] | None, nulls: NDArray[np.int64]) -> tuple[T | None, ...] | None:
    if words is None:
        return None
    return tuple(None if null else word for word, null in zip(words, nulls.tolist(), strict=True))


def group_with_nulls(query: ByKey, run: Callable[[ByKey], GroupTable]) -> GroupTable:
    """The groups where nulls propagate; `run` reduces by key where they do not. Raises as `run`, and InvalidInput
    naming "states" where states are asked for."""
    table = run(ByKey(*with_columns_of_nulls(query.source, query.plan)))
    return replace(table, columns=null_where_counted(table.columns, query.plan))


def with_columns_of_nulls(source: KeyedSource, plan: GroupPlan) -> tuple[KeyedSource, GroupPlan]:
    """The rows with a column of truth values for each that is reduced, which says where its nulls are; and a plan that
    counts these by the same keys, behind its other aggregations."""
    read = _columns_read(plan)
    beside = replace(
        source,
        column_names=(*source.column_names, *(f"{source.column_names[column]} is null" for column in read)),
        dtypes=(*source.dtypes, *(DTYPES["bool"] for _ in read)),
        begin=lambda: (_with_truths(part, read) for part in source.begin()),
        whole=None,
    )
    return beside, counting_nulls(plan, len(source.dtypes))


def counting_nulls(plan: GroupPlan, columns: int) -> GroupPlan:
    """The plan with a count of the nulls of each column that it reduces, behind its other aggregations: the truth
    values that are counted stand behind so many `columns`. Raises InvalidInput naming "states" where states are asked
    for."""
    if plan.states:
        raise InvalidInput("a null has no exact state: give states with null_policy omit or raise", "states")
    counts = [
        Aggregation(op_named(COUNTED_BY), columns + place, f"nulls of {column}")
        for place, column in enumerate(_columns_read(plan))
    ]
    return replace(plan, aggregations=(*plan.aggregations, *counts), null_policy=NullPolicy.OMIT)


def null_where_counted(columns: Sequence[GroupColumn], plan: GroupPlan) -> tuple[GroupColumn, ...]:
    """The columns of the plan, which counts of nulls follow, with nulls where any were counted."""
    asked_for = len(plan.aggregations)
    nulls = {column: columns[asked_for + place].values for place, column in enumerate(_columns_read(plan))}
    named = zip(plan.aggregations, columns, strict=False)
    return tuple(_null_where(column, nulls[asked.column] > 0) for asked, column in named)


def _columns_read(plan: GroupPlan) -> list[int]:
    return sorted({asked.column for asked in plan.aggregations})


def _with_truths(part: KeyedPart, columns: Sequence[int]) -> KeyedPart:
    return KeyedPart(part.start, part.stop, partial(_rows_with_truths, part, columns))


def _rows_with_truths(part: KeyedPart, columns: Sequence[int]) -> KeyedRows:
    rows = part.read()
    truths = (
        Cells(
            np.zeros(part.stop - part.start, np.bool_) if (missing := rows.columns[column].missing) is None else missing
        )
        for column in columns
    )
    return replace(rows, columns=(*rows.columns, *truths))


def _null_where(column: GroupColumn, null: NDArray[np.bool_]) -> GroupColumn:
    return replace(column, missing=column.missing | null)
