"""Partitions: the partial values of parts of one array, each of which may be reduced on another machine, and the value
that they make together.

What an op adds up travels as exact states (docs/exact-state.md), so that any partitions in any order give the bits of
the whole array, and the value is rounded once. Ops that select or count elements never round.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

import numpy as np

from warpfold.kernels.aggregates.aggregate import Folded
from warpfold.kernels.aggregates.by_name import aggregate_of, op_of_values, selecting
from warpfold.kernels.backend import Backend, Progress, Reduction, Stages
from warpfold.kernels.cpu.partial_columns import PartialColumn, PartialValues, among_all, first_place
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import NoElements, Unavailable
from warpfold.kernels.exact import ExactState, deviation, value_of, variance
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Finish, NanPolicy, Op, Terms, Value, empty_value, op_named
from warpfold.kernels.ops.operands import check_freedom, result_dtype
from warpfold.kernels.sources.sequential import Elements, counted

Open = Callable[[], tuple[Elements, Elements | None]]
"""Opens the elements of a partition from the first one on; of an op of two sources those of both."""

_ADDED: Mapping[Terms, tuple[str, ...]] = MappingProxyType(
    {Terms.VALUES: ("sum",), Terms.PRODUCTS: ("sum_squares",), Terms.MOMENTS: ("sum", "sum_squares")}
)
"""The ops whose states an op needs."""


def merged_value(
    op: Op, parts: Sequence[PartialColumn], ddof: int, before: Sequence[int]
) -> tuple[Value, int, tuple[ExactState, ...]]:
    """The value of all partitions together, rounded once, the count of its elements and the states of an op that adds.
    Part i has the row of partition i, and `before` says how many elements lie before each partition. Raises
    InvalidInput where the op has no value for the elements, or where partitions have other dtypes, and StateError
    where the bytes of a state are of another version or damaged."""
    first, dtypes = parts[0], [DTYPES[name] for name in parts[0].dtypes]
    for part in parts:
        part.check_like(first)
    count = sum(int(part.counts[0]) for part in parts)
    states = tuple(
        reduce(ExactState.merge, (ExactState.from_bytes(part.states[at][0]) for part in parts))
        for at in range(len(first.states))
    )
    if not count:
        return empty_value(op, dtypes[0]), count, states
    result = result_dtype(op, *dtypes)
    if op.terms is Terms.MOMENTS:
        check_freedom(op, count, ddof)
        finish = variance if op.finish is Finish.VARIANCE else deviation
        return finish(states[0], states[1], ddof, DTYPES[result]), count, states
    if op.adds:
        return value_of(op, states[0], result), count, states
    aggregate = aggregate_of(op, dtypes[0])
    folded = Folded(aggregate, 1)
    for part in parts:
        folded.merge(part.state)
    value: Value = aggregate.finish(folded.state, np.array([count])).tolist()[0]
    return int(among_all(np.array(value), before)) if op.places else value, count, states


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced partition: its share in the value, how many elements it had, and how long it took, in milliseconds and
    by stages, as a `Reduction` has it."""

    partial: PartialValues
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

    def passed(name: str) -> Reduction | None:
        source, other = begin()
        opened.append((source, other))
        try:
            passes.append(backend.reduce(source, name, nan_policy=nan_policy, other=other, progress=progress))
        except NoElements:
            return None
        return passes[-1]

    reductions: list[Reduction | None] = []
    if op.adds:
        names = (op.name,) if op.magnitudes or op.sources > 1 else _ADDED[op.terms]
    else:
        names = (op.name, op_of_values(op)) if op.places else (op_of_values(op),)
    for name in names:
        reductions.append(passed(name))
    dtypes = tuple(each.dtype for each in opened[0] if each is not None)
    counts = np.array([0 if reductions[0] is None else reductions[0].count])
    column = PartialColumn(tuple(dtype.name for dtype in dtypes), counts)
    if op.adds:
        states = (_state(backend, name, reduction) for name, reduction in zip(names, reductions, strict=True))
        column = replace(column, states=tuple(StateColumn.of_bytes([state]) for state in states))
    else:
        first, last = (0 if each is None else each.value for each in (reductions[0], reductions[-1]))
        places = np.array([first_place(number) + int(first)]) if op.places else None
        state = selecting(op, dtypes[0]).of_values(np.array([last]), counts, places)
        column = replace(column, state=state)
    return Reduced(
        PartialValues(np.zeros(1, np.int64), column),
        counted(opened[0][0]),
        passes[0].strategy if passes else "exact",
        sum(each.load_ms for each in passes),
        sum(each.kernel_ms for each in passes),
        sum(each.prepare_ms for each in passes),
        _together([each.stages for each in passes]),
    )


def _state(backend: Backend, name: str, reduction: Reduction | None) -> bytes:
    """The bytes of the exact state of a reduction, or of no elements."""
    if reduction is None:
        return ExactState.empty(op_named(name).terms).to_bytes()
    if reduction.state is None:
        raise Unavailable(f"{reduction.strategy} on {backend.device.name} gives no exact state of {name}")
    return reduction.state


def _together(stages: Sequence[Stages | None]) -> Stages | None:
    known = [each for each in stages if each is not None]
    return reduce(added, known) if known and len(known) == len(stages) else None


def added(left: Stages, right: Stages) -> Stages:
    """The time of both, stage by stage."""

    def both(a: float | None, b: float | None) -> float | None:
        return b if a is None else a if b is None else a + b

    return Stages(
        both(left.read_s, right.read_s),
        both(left.decode_s, right.decode_s),
        both(left.copy_s, right.copy_s),
        both(left.reduce_s, right.reduce_s),
    )
