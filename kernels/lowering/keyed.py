"""Reductions by key of columns whose stored numbers stand for something else: these are reduced, then the values are
made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from warpfold.kernels.backend import LISTED
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.decimals import Decimals
from warpfold.kernels.lowering.fractions import INTEGERS, has_fraction, quotients
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Meaning, is_plain, joined
from warpfold.kernels.lowering.wide_groups import values_of_groups
from warpfold.kernels.ops.parameters import NO_DIGITS
from warpfold.kernels.parts.keyed import (
    Aggregation,
    GroupColumn,
    GroupPlan,
    GroupTable,
    KeyedSource,
    needed_count,
    whole_numbers,
)
from warpfold.kernels.query import ByKey


def group_meant(query: ByKey, run: Callable[[ByKey], GroupTable]) -> GroupTable:
    """Reduce by key where integers of columns stand for something else, or are divided: the integers are reduced by
    `run`, then the values are made. Raises as `run`, and InvalidInput naming "aggregations.….op" or "states"."""
    source, plan, parts = query.source, query.plan, list[Sequence[Aggregation]]()
    meanings = meanings_by_key(query)
    for index, (asked, meaning) in enumerate(zip(plan.aggregations, meanings, strict=True)):
        if meaning is None:
            parts.append([asked])
            continue
        try:
            meaning.check(asked.op)
        except InvalidInput as error:
            raise InvalidInput(str(error), f"aggregations.{index}.op") from None
        if plan.states:
            raise InvalidInput(f"{meaning.name} have no exact states by key so far", "states")
        parts.append([replace(asked, op=op) for op in meaning.stored_ops(asked.op)])
    for tally in source.tallies:
        tally.beyond = Beyond()
    plainly = replace(plan, aggregations=tuple(chain.from_iterable(parts)))
    table = _with_wide_values(source, plainly, run(ByKey(replace(source, meanings=()), plainly)))
    columns, coming = [], iter(table.columns)
    for asked, part, meaning in zip(plan.aggregations, parts, meanings, strict=True):
        made = list(islice(coming, len(part)))
        plain = meaning is None or is_plain(asked.op)
        columns.append(made[0] if plain or meaning is None else _meant_column(meaning, asked, made, plan.min_count))
    return replace(table, columns=tuple(columns))


def meanings_by_key(query: ByKey) -> list[Meaning | None]:
    """What the numbers stand for that each aggregation reduces. Raises InvalidInput naming "digits"."""
    return [_meaning(query.source, asked, query.plan) for asked in query.plan.aggregations]


def _meaning(source: KeyedSource, asked: Aggregation, plan: GroupPlan) -> Meaning | None:
    """Integers of which a mean or digits are wanted are decimals, so that the value is a fraction, too."""
    meaning, dtype = source.meanings[asked.column] if source.meanings else None, source.dtypes[asked.column]
    if plan.digits is None or not asked.op.endless:
        divided = meaning is None and has_fraction(asked.op, dtype) and not plan.states
        return INTEGERS if divided else meaning
    if isinstance(meaning, Decimals):
        return replace(meaning, digits=plan.digits)
    if meaning is not None or dtype.is_float:
        raise InvalidInput(NO_DIGITS, "digits")
    return replace(INTEGERS, digits=plan.digits)


def _with_wide_values(source: KeyedSource, plan: GroupPlan, table: GroupTable) -> GroupTable:
    """The table with the values of columns that have integers beyond int64 in place of those of clamped ones."""
    wide = [
        index
        for index, asked in enumerate(plan.aggregations)
        if source.tallies
        and source.tallies[asked.column].beyond
        and (asked.op.places or asked.op.keeps or not is_plain(asked.op))
    ]
    if not wide:
        return table
    columns = list(table.columns)
    for index, values in zip(
        wide, values_of_groups(source, table, [plan.aggregations[index] for index in wide]), strict=True
    ):
        columns[index] = replace(columns[index], values=whole_numbers(values.tolist()))
    return replace(table, columns=tuple(columns))


def _meant_column(meaning: Meaning, asked: Aggregation, columns: Sequence[GroupColumn], min_count: int) -> GroupColumn:
    column, totals = columns[0], zip(*(each.values.tolist() for each in columns), strict=True)
    missing = column.missing | (column.counts < needed_count(asked, min_count))
    if meaning == INTEGERS and has_fraction(asked.op, DTYPES["int64"]) and missing.size > LISTED:
        # Nobody reads the fractions of so many groups.
        made = quotients(column.values, column.counts)
        return replace(column, op=asked.op.name, dtype="float64", values=made, missing=missing)
    meant = [
        None if gone else meaning.meant(asked.op, joined(asked.op, list(map(int, total)), count), count, 0)
        for total, count, gone in zip(totals, column.counts.tolist(), missing, strict=True)
    ]
    known = [0 if each is None else each.value for each in meant]
    dtype = meaning.meant(asked.op, (0,), 1, 0).dtype
    words = tuple(None if each is None else each.words for each in meant)
    fractions = tuple(None if each is None else each.fraction for each in meant)
    return replace(
        column,
        op=asked.op.name,
        dtype=dtype,
        values=np.array(known, np.float64) if dtype in DTYPES else whole_numbers([int(value) for value in known]),
        missing=missing,
        words=words if any(word is not None for word in words) or dtype not in DTYPES else None,
        fractions=fractions if any(fraction is not None for fraction in fractions) else None,
    )
