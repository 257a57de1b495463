"""Partitions: the partial values of parts of one array, each of which may be reduced on another machine, and the value
that they make together.

What an op adds up travels as exact states (docs/exact-state.md), so that any partitions in any order give the bits of
the whole array, and the value is rounded once. Ops that select or count elements never round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from warpfold.kernels.backend import Progress, Reduction, Stages
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import NoElements, Unavailable
from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.lowering.reducing import refuse_meaning
from warpfold.kernels.lowering.totals import states_of_whole
from warpfold.kernels.ops import NanPolicy, Op, Terms, Value, empty_value, op_named
from warpfold.kernels.ops.operands import check_freedom
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn
from warpfold.kernels.parts.merged import Merged
from warpfold.kernels.parts.partial import PartialColumn, PartialTable, first_place, ops_of_parts, values_array
from warpfold.kernels.query import Whole
from warpfold.kernels.sources.sequential import Elements, counted

Open = Callable[[], tuple[Elements, Elements | None]]
"""Opens the elements of a partition from the first one on; of an op of two sources those of both."""


def merged_value(merged: Merged, op: Op, ddof: int, before: Sequence[int]) -> tuple[Value, GroupColumn]:
    """The value of all partitions together, rounded once, and the column that has it, with its states. `before` says
    how many elements lie before each partition. Raises InvalidInput where the op has no value for the elements."""
    asked = [Aggregation(op, 0, op.name, ddof)]
    (column,), (described,) = merged.columns(asked, states=True, before=before), merged.described(asked)
    (count,) = column.counts.tolist()
    if not count:
        return empty_value(op, DTYPES[described.dtypes[0]]), column
    check_freedom(op, count, ddof)
    return column.values.tolist()[0], column


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced partition: its share in the value, how many elements it had, and how long it took, in milliseconds and
    by stages, as a `Reduction` has it."""

    partial: PartialTable
    read: int
    strategy: str
    load_ms: float
    kernel_ms: float
    prepare_ms: float
    stages: Stages | None


def reduce_partition(
    backend: Backend, begin: Open, op: Op, number: int, *, nan_policy: NanPolicy, progress: Progress | None = None
) -> Reduced:
    """Reduce partition `number` on an open backend. `begin` is called once for each read: the elements of a variance
    and of an index are read twice. Raises a KernelError, and what `progress` raises."""
    passes: list[Reduction] = []
    opened: list[tuple[Elements, Elements | None]] = []

    def asked(name: str) -> Whole:
        source, other = begin()
        opened.append((source, other))
        for part in (source, other):
            if part is not None:
                refuse_meaning(part, "a partition", "backend")
        return Whole(source=source, op=op_named(name), other=other, nan_policy=nan_policy)

    def passed(name: str) -> Reduction | None:
        try:
            passes.append(backend.aggregate(asked(name), progress))
        except NoElements:
            return None
        return passes[-1]

    if op.terms is Terms.TOTALS:
        made, answers = states_of_whole(asked(op.name), backend.aggregate, progress)
        passes += answers
        column = PartialColumn(_dtypes(opened), tuple(StateColumn.of_bytes([state.to_bytes()]) for state in made))
    elif op.adds:
        states = [_state(backend, name, passed(name)) for name in ops_of_parts(op)]
        column = PartialColumn(_dtypes(opened), tuple(StateColumn.of_bytes([state]) for state in states))
    else:
        reductions = [passed(name) for name in ops_of_parts(op)]
        first, last = reductions[0], reductions[-1]
        counts = np.array([0 if first is None else first.count])
        values = np.zeros(1) if last is None else values_array([last.value], last.dtype)
        places = np.array([first_place(number) + (0 if first is None else int(first.value))]) if op.places else None
        column = PartialColumn.selected(op, _dtypes(opened), counts, values, places)
    stages = [each.stages for each in passes]
    return Reduced(
        PartialTable(np.zeros(1, np.int64), (column,)),
        counted(opened[0][0]),
        passes[0].strategy if passes else "exact",
        sum(each.load_ms for each in passes),
        sum(each.kernel_ms for each in passes),
        sum(each.prepare_ms for each in passes),
        None if not passes or None in stages else reduce(add, filter(None, stages)),
    )


def _dtypes(opened: Sequence[tuple[Elements, Elements | None]]) -> tuple[str, ...]:
    return tuple(each.dtype.name for each in opened[0] if each is not None)


def _state(backend: Backend, name: str, reduction: Reduction | None) -> bytes:
    """The bytes of the exact state of a reduction, or of no elements."""
    if reduction is None:
        return ExactState.empty(op_named(name).terms).to_bytes()
    if reduction.state is None:
        raise Unavailable(f"{reduction.strategy} on {backend.device.name} gives no exact state of {name}")
    return reduction.state
