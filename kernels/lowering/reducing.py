"""The one place where elements become values: whatever the elements of a query stand for, a backend is asked about
stored numbers and truth values alone, and the answer is made of what it gives.

Code elsewhere that reads the elements of a source takes them for values: it refuses a source with a meaning.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import cycle
from typing import Any, TypeVar, cast

import numpy as np

from warpfold.kernels.backend import GroupedReduction, Reduction
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState
from warpfold.kernels.lowering.complexes import ComplexNumbers, reduce_complex
from warpfold.kernels.lowering.fractions import INTEGERS, has_fraction
from warpfold.kernels.lowering.iso8601 import PER_SECOND, SECONDS_PER
from warpfold.kernels.lowering.keyed import group_meant, meanings_by_key
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total, is_plain, joined
from warpfold.kernels.lowering.nulls import (
    group_with_nulls,
    keeps_nulls,
    nulls_met,
    truths_of,
    with_nulls,
    without_values_of_nulls,
)
from warpfold.kernels.lowering.times import Durations, Instants
from warpfold.kernels.lowering.wide_runs import reduce_all_runs
from warpfold.kernels.ops import Extreme, Finish, NullPolicy, Op, Value, empty_value, op_named
from warpfold.kernels.ops.operands import check_arity, check_freedom
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.query import Answer, ByKey, Moving, OfElements, Query, Shaped, Whole
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered

T = TypeVar("T")

Run = Callable[[Any], Any]
"""Answers a query whose elements are values."""


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


def itemsize_of(source: Elements) -> int:
    """Bytes an element: those of both parts of a complex number."""
    return source.dtype.itemsize * (2 if isinstance(meaning_of(source), ComplexNumbers) else 1)


def lowered(query: Query[Answer], run: Callable[[Query[Answer]], Answer]) -> Answer:
    """The answer to a query whose elements may stand for something else, or be nulls that propagate; `run` answers
    queries about values.

    Raises as `run`, and InvalidInput naming "op" or "aggregations.….op" where elements have no such value, "states"
    where there would be none of what the values are, and "source" or "other" where the layout does not take them."""
    answer: Any
    if isinstance(query, ByKey):
        answer = _by_key(query, run)
    elif isinstance(query, Moving):
        answer = _moving(query, run)
    else:
        assert isinstance(query, Whole | Shaped), "there are four layouts"
        with_zeros = _with_zeros(query)
        meant = any(meaning_of(source) is not None for source in query.sources)
        answer = _meant(with_zeros, run) if meant else _of_values(with_zeros, run)
        if nulls_met(query.sources):
            answer = _without_nulls(query, answer, run)
    return cast(Answer, answer)


def _by_key(query: ByKey, run: Run) -> Any:
    inner = partial(group_with_nulls, run=run) if query.plan.null_policy is NullPolicy.PROPAGATE else run
    return group_meant(query, inner) if any(meanings_by_key(query)) else inner(query)


def _of_values(query: Whole | Shaped, run: Run) -> Any:
    """The answer about elements that are values. Means of integers may be wanted as fractions."""
    wanted = isinstance(query, Shaped) and query.fractions and not query.states and query.weights is None
    if not wanted or not has_fraction(query.op, query.source.dtype):
        return run(query)
    sums = run(replace(query, op=op_named("sum")))
    means = [
        INTEGERS.meant(query.op, (total,), count, 0) if count and total is not None else None
        for total, count in zip(sums.listed(), sums.counted(), strict=True)
    ]
    return _put_back(replace(sums, op=query.op.name, dtype="float64"), means)


def _moving(query: Moving, run: Run) -> Any:
    """The answer about windows. A null makes all values null whose windows have it."""
    for field, each in query.fields.items():
        refuse_meaning(each, "a window that moves along an array", field)
    query = _with_plain_times(query)
    answer = run(query.of([_bare(each) for each in query.sources]))
    if not nulls_met(query.sources):
        return answer
    window = replace(query.grouping.window, min_count=0)
    counted = replace(
        query, source=truths_of(*query.sources), op=op_named("count_nonzero"), ddof=0,
        grouping=replace(query.grouping, window=window),
    )  # fmt: skip
    return without_values_of_nulls(answer, np.array(run(counted).listed(), np.int64))


def _with_plain_times(query: Moving) -> Moving:
    """The query whose times are numbers, all in memory. Raises InvalidInput naming "over" or "keys"."""
    over, keys, second = query.over, query.keys, query.second
    if isinstance(over, SequentialSource) and isinstance(over.meaning, Instants | Durations):
        unit = over.meaning.unit
        second = Fraction(PER_SECOND[unit]) if unit in PER_SECOND else Fraction(1, SECONDS_PER[unit])
        over = replace(over, meaning=None)
    for field, each in (("over", over), ("keys", keys)):
        if each is not None and meaning_of(each) is not None:
            refuse_meaning(each, "a window", field)
        if each is not None and keeps_nulls(each):
            raise InvalidInput("may have no nulls", field)
    kept = {name: None if each is None else gathered(each) for name, each in (("over", over), ("keys", keys))}
    return replace(query, second=second, **kept)  # type: ignore[arg-type]


def _with_zeros(query: Whole | Shaped) -> Any:
    """The query whose nulls are the zeros that stand in their places."""
    if not any(map(keeps_nulls, query.sources)):
        return query
    return query.of([_bare(each) for each in query.sources])


def _bare(source: Elements) -> Elements:
    return replace(source, nulls=None) if isinstance(source, SequentialSource) else source


def _without_nulls(query: Whole | Shaped, answer: Any, run: Run) -> Reduction | GroupedReduction:
    """The answer without the values that have a null among their elements."""
    if isinstance(query, Whole):
        return with_nulls(answer, query.sources)
    # The places of nulls are read once more.
    counted = Shaped(
        source=truths_of(*query.sources), op=op_named("count_nonzero"), shape=query.shape, grouping=query.grouping
    )
    nulls = np.array(run(counted).listed(), np.int64)
    return without_values_of_nulls(answer, np.repeat(nulls, query.op.listed or 1))


def _meant(query: Whole | Shaped, run: Run) -> Any:
    """The answer about what the elements of one source or two stand for. It has no state, because that would be the one
    of the stored numbers."""
    op, source = query.op, query.source
    check_arity(op, other=query.other is not None, ddof=query.ddof)
    has_complex = any(isinstance(meaning_of(each), ComplexNumbers) for each in query.sources)
    if isinstance(query, Whole) and has_complex and query.weights is None:
        return reduce_complex(query, run)
    _refuse_meanings(query)
    meaning = meaning_of(source)
    assert meaning is not None, "the elements stand for something"
    assert isinstance(source, SequentialSource), "only those have a meaning"
    meaning.check(op)
    if isinstance(query, Shaped) and query.states:
        raise InvalidInput(f"values of {meaning.name} have no exact states so far", "states")
    stored, beyond, parts = replace(source, meaning=None), Beyond(), meaning.stored_ops(op)
    source.tally.beyond = beyond
    first = run(_of_stored(query, stored, parts[0]))
    whole: Sequence[int | None] | None = None
    if beyond and (op.places or op.keeps or not is_plain(op)):
        whole = _beyond_int64(query if not op.selects else replace(query, op=parts[0]), stored, beyond, first, run)
    if is_plain(op):
        return _of_plain(first, op, whole)
    counts, divides = _counts(first), op.finish in (Finish.MEAN, Finish.VARIANCE, Finish.DEVIATION)
    if isinstance(query, Whole) and divides and not counts[0]:
        empty_value(op, source.dtype)  # raises
    if isinstance(query, Whole):
        check_freedom(op, counts[0], query.ddof)
    totals: list[Sequence[Total | None]] = [_totals(parts[0], first) if whole is None else whole]
    runs = [first]
    for part in parts[1:]:
        if whole is not None and op.selects:
            totals.append(_beyond_int64(replace(query, op=part), stored, beyond, first, run))
            continue
        runs.append(read_again(stored, beyond, lambda again, part=part: run(_of_stored(query, again, part))))  # type: ignore[misc]
        totals.append(_totals(part, runs[-1]))
    values: list[Meant | None] = []
    for single, (*of_value, count) in zip(cycle(op.singles()), zip(*totals, counts, strict=True), strict=False):
        known = [total for total in of_value if total is not None]
        missing = len(known) < len(of_value) or (divides and count <= query.ddof)
        values.append(None if missing else meaning.meant(single, joined(single, known, count), count, query.ddof))
    answer = replace(
        first,
        op=op.name,
        dtype=meaning.meant(op, (0,) * (1 if op.selects else len(parts)), query.ddof + 1, query.ddof).dtype,
        correctly_rounded=True,
        load_ms=sum(each.load_ms for each in runs),
        kernel_ms=sum(each.kernel_ms for each in runs),
        prepare_ms=sum(each.prepare_ms for each in runs),
        stages=first.stages if len(runs) == 1 else None,
    )
    return _put_back(answer, values)


def _refuse_meanings(query: Whole | Shaped) -> None:
    """Raise InvalidInput where several sources stand side by side, or a layout takes no complex numbers."""
    for field, each in query.fields.items():
        if query.weights is not None:
            refuse_meaning(each, f"{query.op.name} with weights", field)
        elif isinstance(query, Whole) and query.other is not None:
            refuse_meaning(each, query.op.name, "op")
        elif query.other is not None or isinstance(meaning_of(each), ComplexNumbers):
            refuse_meaning(each, "a reduction to many values", field)


def _of_stored(query: Whole | Shaped, stored: SequentialSource, part: Op) -> OfElements[Any]:
    """The query for the stored numbers, by one of the ops that its own needs of them. Floats that are added have exact
    states."""
    asked = replace(query, source=stored, op=part, ddof=0)
    return replace(asked, states=stored.dtype.is_float and part.adds) if isinstance(asked, Shaped) else asked


def _counts(answer: Reduction | GroupedReduction) -> Sequence[int]:
    return answer.counted() if isinstance(answer, GroupedReduction) else [answer.count]


def _totals(part: Op, answer: Reduction | GroupedReduction) -> list[Total | None]:
    """The values of an op of the stored numbers before they were rounded, None where there is none."""
    if isinstance(answer, Reduction):
        return [exact_total(part, answer.value, answer.state)]
    states = answer.states[0] if answer.states else None
    return [
        None if value is None else exact_total(part, value, None if states is None else states[at])
        for at, value in enumerate(answer.listed())
    ]


def _put_back(answer: Reduction | GroupedReduction, values: Sequence[Meant | None]) -> Reduction | GroupedReduction:
    """The answer with these values."""
    if isinstance(answer, Reduction):
        (value,) = values
        assert value is not None, "one value is there, or refused"
        return replace(
            answer, value=value.value, state=None, decimal=value.decimal, time=value.time, fraction=value.fraction
        )
    decimals = tuple(None if each is None else each.decimal for each in values)
    times = tuple(None if each is None else each.time for each in values)
    fractions = tuple(None if each is None else each.fraction for each in values)
    return replace(
        answer,
        values=tuple(None if each is None else each.value for each in values),
        counts=answer.counted(),
        states=(),
        decimals=decimals if any(decimal is not None for decimal in decimals) else None,
        times=times if any(time is not None for time in times) else None,
        fractions=fractions if any(fraction is not None for fraction in fractions) else None,
    )


def _of_plain(answer: Any, op: Op, values: Sequence[int | None] | None) -> Any:
    """The answer with values that are what they mean, or with those that it has."""
    if values is None:
        return replace(answer, op=op.name)
    changed: Any = {"value": values[0]} if isinstance(answer, Reduction) else {"values": tuple(values)}
    return replace(answer, op=op.name, **changed)


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


def _beyond_int64(
    query: Whole | Shaped, stored: SequentialSource, beyond: Beyond, first: Any, run: Run
) -> list[int | None]:
    """The values of the query's op of integers that do not all fit int64, for a mean the sums. For many values the
    integers are read word by word, and all of them are in memory then. Raises OutOfMemory."""
    op = query.op
    if isinstance(query, Shaped) or op.keeps:
        words = [read_again(stored, Beyond(word=word), gathered) for word in range(beyond.words)]
        count = words[0].count
        if isinstance(query, Whole) or (isinstance(query.grouping, AlongAxes) and query.grouping.reduced(1)):
            bounds = np.array([0, count])  # a column has one axis
        else:
            bounds = query.grouping.bounds(count) if isinstance(query.grouping, Segments) else np.arange(count + 1)
        return reduce_all_runs(op, np.stack([word.read(0, word.count) for word in words]), bounds)
    if not op.places:
        return [beyond.whole(op, int(first.value), first.count)]
    # They are read twice more: for the extreme, and for where it is.
    extreme = op_named("min" if op.extreme is Extreme.LEAST else "max")

    def value_of(sought: Beyond, part: Op) -> int:
        return int(read_again(stored, sought, lambda again: run(_of_stored(query, again, part))).value)

    clamped = Beyond()
    least = value_of(clamped, extreme)
    return [value_of(Beyond(clamped.whole(extreme, least, first.count)), op_named("argmax"))]


def read_again(integers: SequentialSource, beyond: Beyond, read: Callable[[SequentialSource], T]) -> T:
    """The result of `read` for elements that were read before; the source counts them only once."""
    tally = integers.tally
    tally.beyond, tally.elements, nulls = beyond, 0, tally.nulls
    made = read(integers)
    tally.nulls = nulls
    return made
