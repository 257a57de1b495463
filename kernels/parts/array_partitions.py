"""Partitions of an array that is reduced to many values, along axes or by segments: what each part adds to which
values, and the values that all parts make together.

Where a part has all elements of its values, it gives the values themselves. Otherwise it gives their exact states,
or the values of an op that never rounds, so that any partitions give the bits of the whole array.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from warpfold.kernels.backend import LISTED, GroupedReduction, Progress
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.lowering.fractions import has_fraction, means_of_column
from warpfold.kernels.ops import op_named
from warpfold.kernels.parts.array_parts import ArrayPart
from warpfold.kernels.parts.grouping import AlongAxes, Index
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.over_devices import together
from warpfold.kernels.parts.partial import PartialColumn, PartialTable, ops_of_parts, values_array
from warpfold.kernels.query import Shaped


@dataclass(frozen=True, slots=True)
class ReducedPart:
    """A reduced part: its values, or without values what it adds to them, and how long that took."""

    reduction: GroupedReduction
    partial: PartialTable | None


def reduce_part(backend: Backend, query: Shaped, part: ArrayPart, progress: Progress | None = None) -> ReducedPart:
    """Reduce the elements of `part`, which `query` asks about. Raises a KernelError, and what `progress` raises."""
    op = query.op

    def reduced(name: str, *, states: bool) -> GroupedReduction:
        return together(list(backend.in_blocks(replace(query, op=op_named(name), states=states), progress)))

    if part.values is None or op.adds:
        reduction = reduced(op.name, states=op.adds and (query.states or not part.whole))
        if part.values is None:
            return ReducedPart(reduction, None)
    dtypes = tuple(source.dtype.name for source in query.sources)
    if op.adds:
        column = PartialColumn(dtypes, reduction.states)
    else:
        reductions = [reduced(name, states=False) for name in ops_of_parts(op)]
        reduction = replace(reductions[0], op=op.name)
        places = _placed(part, values_array(reduction.values, reduction.dtype)) if op.places else None
        values = values_array(reductions[-1].values, reductions[-1].dtype)
        column = PartialColumn.selected(op, dtypes, np.asarray(reduction.counts, np.int64), values, places)
    bare = replace(reduction, values=(), counts=(), states=())
    return ReducedPart(bare, PartialTable(part.values.numbers(), (column,)))


def _placed(part: ArrayPart, places: Index) -> Index:
    """The places of the values of `part` among all elements of each."""
    assert part.places is not None, "the part has not all elements of its values"
    if isinstance(part.grouping, AlongAxes):
        return part.places.placed(places)
    moved = places.copy()
    moved[:1] += part.places.origin[0]
    return moved


def joined(
    parts: Sequence[ArrayPart], reductions: Sequence[GroupedReduction], merged: Merged, asked: Aggregation,
    *, states: bool,
) -> GroupedReduction:  # fmt: skip
    """The values of all parts, in their order: those of whole parts as they are, and those of `merged`, rounded once,
    beside which means of integers are fractions, unless they are very many. Raises InvalidInput."""
    pieces: list[GroupedReduction] = []
    row = 0
    shared: GroupColumn | None = None
    for whole, run in groupby(zip(parts, reductions, strict=True), key=lambda pair: pair[0].whole):
        if whole:
            pieces += [reduction for _, reduction in run]
            continue
        run_parts = list(run)
        shared = shared or _merged_column(merged, asked, states=states)
        stop = max(part.values.rows for part, _ in run_parts if part.values is not None)
        column = shared if stop - row == shared.counts.size else shared.taken(np.arange(row, stop))
        row = stop
        kernels = ", ".join(dict.fromkeys(reduction.kernel for _, reduction in run_parts))
        pieces.append(
            replace(
                run_parts[0][1],
                values=tuple(column.listed())
                if column.missing.any() or column.values.dtype != np.float64
                else column.values,
                counts=column.counts,
                states=column.states if states else (),
                fractions=column.fractions,
                kernel=kernels,
                dtype=column.dtype,
            )
        )
    return together(pieces)


def _merged_column(merged: Merged, asked: Aggregation, *, states: bool) -> GroupColumn:
    dtype = DTYPES[merged.described([asked])[0].dtypes[0]]
    divided = has_fraction(asked.op, dtype) and merged.count <= LISTED
    (column,) = merged.columns([asked], states=states or divided)
    return replace(column, fractions=means_of_column(column)) if divided else column
