"""Reductions of sources whose stored numbers stand for something else: these are reduced, then the value is made.

Code elsewhere that reads the elements of a source takes them for values: it refuses a source with a meaning.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np

from warpfold.kernels.backend import Reduction
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState
from warpfold.kernels.lowering.complexes import ComplexNumbers, Run, reduce_complex
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Meaning, Total, is_plain
from warpfold.kernels.lowering.nulls import GroupBy
from warpfold.kernels.lowering.wide_groups import values_of_groups
from warpfold.kernels.ops import Extreme, Finish, NanPolicy, Op, Value, empty_value, op_named
from warpfold.kernels.ops.operands import check_arity, check_freedom
from warpfold.kernels.parts.keyed import (
    Aggregation,
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedSource,
    needed_count,
    whole_numbers,
)
from warpfold.kernels.sources.sequential import Elements, SequentialSource

T = TypeVar("T")


def meaning_of(source: Elements) -> Meaning | None:
    """The meaning of the elements; None where they are values."""
    return source.meaning if isinstance(source, SequentialSource) else None


def refuse_meaning(source: Elements, doing: str, field: str) -> None:
    """Raise InvalidInput that names `field` where elements stand for something else, which `doing` does not take."""
    meaning = meaning_of(source)
    if meaning is not None:
        how = meaning.instead if meaning.numbers_alone else "cast the column to float64 or int64 first"
        if isinstance(meaning, ComplexNumbers):
            how = "reduce the real and the imaginary parts as arrays of floats"
        raise InvalidInput(f"{doing} takes no {meaning.name} so far; {how}", field)


def is_meant(source: Elements, other: Elements | None) -> bool:
    """Whether elements of a source, or of a second one, stand for something else."""
    return meaning_of(source) is not None or (other is not None and meaning_of(other) is not None)


def itemsize_of(source: Elements) -> int:
    """Bytes an element: those of both parts of a complex number."""
    return source.dtype.itemsize * (2 if isinstance(meaning_of(source), ComplexNumbers) else 1)


def reduce_meant(
    op: Op, source: Elements, other: Elements | None, nan_policy: NanPolicy, run: Run, *, ddof: int
) -> Reduction:
    """Reduce the values that the elements of one source or two stand for; `run` reduces plain values on a backend.

    The result has no state, because the state would be that of the integers. Raises InvalidInput naming "op" where `op`
    has no value of such elements.
    """
    check_arity(op, other=other is not None, ddof=ddof)
    for part in (source, other):
        if part is not None and isinstance(meaning_of(part), ComplexNumbers):
            return reduce_complex(op, source, other, nan_policy, run)
    if other is not None:
        refuse_meaning(source, op.name, "op")
        refuse_meaning(other, op.name, "op")
    meaning = meaning_of(source)
    assert meaning is not None, "the elements stand for something"
    assert isinstance(source, SequentialSource), "only those have a meaning"
    meaning.check(op)
    stored, beyond, names = replace(source, meaning=None), Beyond(), meaning.stored_ops(op)
    source.tally.beyond = beyond
    runs = [run(stored, names[0])]
    reduction = replace(runs[0], op=op.name)
    if op.places and beyond:
        return replace(reduction, value=_place_of(op, stored, run))
    if is_plain(op):
        return reduction
    if op.finish in (Finish.MEAN, Finish.VARIANCE, Finish.DEVIATION) and not reduction.count:
        empty_value(op, source.dtype)  # raises
    check_freedom(op, reduction.count, ddof)
    runs += [read_again(stored, beyond, partial(_run_op, run, name)) for name in names[1:]]
    totals = [exact_total(op_named(name), each.value, each.state) for name, each in zip(names, runs, strict=True)]
    if beyond:
        totals = [beyond.whole(op, int(reduction.value), reduction.count)]
    meant = meaning.meant(op, totals, reduction.count, ddof)
    return replace(
        reduction,
        load_ms=sum(each.load_ms for each in runs),
        kernel_ms=sum(each.kernel_ms for each in runs),
        prepare_ms=sum(each.prepare_ms for each in runs),
        stages=reduction.stages if len(runs) == 1 else None,
        value=meant.value,
        dtype=meant.dtype,
        correctly_rounded=True,
        state=None,
        decimal=meant.decimal,
        time=meant.time,
    )


def _run_op(run: Run, op: str, stored: SequentialSource) -> Reduction:
    return run(stored, op)


def exact_total(op: Op, value: Value, state: bytes | None) -> Total:
    """The value that `op` gave of stored numbers, before it was rounded: that of floats which are added is in the exact
    `state`. Raises InvalidInput naming "strategy" where there is none."""
    if not isinstance(value, float):
        return int(value)
    if not op.adds:
        return Fraction(value) if math.isfinite(value) else value
    if state is None:
        raise InvalidInput("packed floats need the strategy exact; set stored to reduce them as they are", "strategy")
    held = ExactState.from_bytes(state)
    special = held.special()
    return Fraction(held.units, 1 << -ORIGIN[held.terms]) if special is None else special


def _place_of(op: Op, integers: SequentialSource, run: Run) -> int:
    """The index of the extreme of integers that do not all fit int64. These are read twice more: for the extreme, and
    for where it is."""
    extreme = op_named("min" if op.extreme is Extreme.LEAST else "max")
    beyond = Beyond()
    reduced = read_again(integers, beyond, lambda source: run(source, extreme.name))
    sought = Beyond(beyond.whole(extreme, int(reduced.value), reduced.count))
    return int(read_again(integers, sought, lambda source: run(source, "argmax")).value)


def read_again(integers: SequentialSource, beyond: Beyond, read: Callable[[SequentialSource], T]) -> T:
    """The result of `read` for elements that were read before; the source counts them only once."""
    tally = integers.tally
    tally.beyond, tally.elements, nulls = beyond, 0, tally.nulls
    made = read(integers)
    tally.nulls = nulls
    return made


def group_meant(group_by: GroupBy, source: KeyedSource, plan: GroupPlan) -> GroupTable:
    """Reduce by key where integers of columns stand for something else: the integers are reduced by `group_by`, then
    the values are made. Raises as `group_by`, and InvalidInput naming "aggregations.….op" or "states"."""
    asked_plainly = []
    for index, asked in enumerate(plan.aggregations):
        meaning = source.meanings[asked.column]
        if meaning is None:
            asked_plainly.append(asked)
            continue
        try:
            meaning.check(asked.op)
        except InvalidInput as error:
            raise InvalidInput(str(error), f"aggregations.{index}.op") from None
        if plan.states:
            raise InvalidInput(f"{meaning.name} have no exact states by key so far", "states")
        asked_plainly.append(replace(asked, op=op_named(meaning.stored_ops(asked.op)[0])))
    for tally in source.tallies:
        tally.beyond = Beyond()
    table = group_by(replace(source, meanings=()), replace(plan, aggregations=tuple(asked_plainly)))
    table = _with_wide_values(source, plan, table)
    columns = []
    for asked, column in zip(plan.aggregations, table.columns, strict=True):
        meaning = source.meanings[asked.column]
        plain = meaning is None or is_plain(asked.op)
        columns.append(column if plain or meaning is None else _meant_column(meaning, asked, column, plan.min_count))
    return replace(table, columns=tuple(columns))


def _with_wide_values(source: KeyedSource, plan: GroupPlan, table: GroupTable) -> GroupTable:
    """The table with the values of columns that have integers beyond int64 in place of those of clamped ones."""
    wide = [
        index
        for index, asked in enumerate(plan.aggregations)
        if source.tallies and source.tallies[asked.column].beyond and (asked.op.places or not is_plain(asked.op))
    ]
    if not wide:
        return table
    columns = list(table.columns)
    for index, values in zip(
        wide, values_of_groups(source, table, [plan.aggregations[index] for index in wide]), strict=True
    ):
        columns[index] = replace(columns[index], values=whole_numbers(values.tolist()))
    return replace(table, columns=tuple(columns))


def _meant_column(meaning: Meaning, asked: Aggregation, column: GroupColumn, min_count: int) -> GroupColumn:
    missing = column.missing | (column.counts < needed_count(asked, min_count))
    meant = [
        None if gone else meaning.meant(asked.op, (int(value),), int(count), 0)
        for value, count, gone in zip(column.values.tolist(), column.counts, missing, strict=True)
    ]
    known = [0 if each is None else each.value for each in meant]
    dtype = meaning.meant(asked.op, (0,), 1, 0).dtype
    words = tuple(None if each is None else each.words for each in meant)
    return replace(
        column,
        op=asked.op.name,
        dtype=dtype,
        values=np.array(known, np.float64) if dtype in DTYPES else whole_numbers([int(value) for value in known]),
        missing=missing,
        words=words if any(word is not None for word in words) or dtype not in DTYPES else None,
    )
