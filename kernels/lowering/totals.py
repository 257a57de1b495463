"""Ops of several totals, such as skew and corr: a backend gives their exact totals, of which each value is made here.

A backend knows the sums of elements, of magnitudes, of squares and of the products of two arrays. Products of more
elements are sums of float64 (`kernels.exact.expansion`). So these ops have every layout of every backend that
adds exactly. Elements that are not in memory are read once, block by block.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from warpfold.kernels.backend import GroupedReduction, Progress, Reduction
from warpfold.kernels.cpu.certain import ColumnStates
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ExactState
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.lowering.total_states import ManyValuesOfTotals, OneValue, Run, States, TotalsOfSources
from warpfold.kernels.ops import Op, Terms, Value, empty_value, terms_of
from warpfold.kernels.ops.operands import check_freedom, operands
from warpfold.kernels.ops.weights import weighted
from warpfold.kernels.query import Shaped, Whole
from warpfold.kernels.source import ArraySource, Source, forget_read, generator_of, in_memory
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered, side_by_side
from warpfold.kernels.strategy import AUTO, EXACT

_BLOCK = 1 << 22
"""Elements that are read at a time where they are not in memory."""


def made_of_totals(query: Whole | Shaped) -> bool:
    """Whether values are made of several totals: those of some ops, and all with weights."""
    return query.op.terms is Terms.TOTALS or query.weights is not None


def of_totals(query: Whole | Shaped, run: Run, progress: Progress | None) -> Any:
    """The answer to a query whose op is made of several totals, which `run` gives. Raises as `run`, and InvalidInput
    naming "strategy" or "weights"."""
    if query.strategy not in (AUTO, EXACT):
        raise InvalidInput(
            f"strategy {query.strategy!r} does not compute {query.op.name}: it is made of exact sums", "strategy"
        )
    operands(query.op, query.source, query.other, query.ddof)
    if query.weights is not None:
        _check_weights(query)
        query = replace(query, op=weighted(query.op, query.weighting))
    return _whole(query, run, progress) if isinstance(query, Whole) else _shaped(query, run, progress)


def _whole(query: Whole, run: Run, progress: Progress | None) -> Reduction:
    op, dtype = query.op, _element(query)
    states, answers = states_of_whole(query, run, progress)
    count, result = states[0].count, op.result_dtype(dtype)
    if count and query.weights is None:
        check_freedom(op, count, query.ddof)
    value = ValueFinish(op, result, query.ddof).value(states) if count else empty_value(op, dtype)
    if query.weights is not None and _is_undefined(value, states):
        freedom = f" less ddof {query.ddof}" if query.ddof else ""
        raise InvalidInput(f"{op.name} is undefined: it divides by the sum of the weights{freedom}", "weights")
    stages = [each.stages for each in answers]
    return Reduction(
        value=value,
        dtype=result,
        count=count,
        op=op.name,
        strategy=EXACT,
        correctly_rounded=True,
        load_ms=sum(each.load_ms for each in answers),
        kernel_ms=sum(each.kernel_ms for each in answers),
        prepare_ms=sum(each.prepare_ms for each in answers),
        stages=reduce(add, filter(None, stages)) if stages and None not in stages else None,
    )


def states_of_whole(query: Whole, run: Run, progress: Progress | None) -> tuple[list[ExactState], list[Reduction]]:
    """The states of the totals of an op over all elements, and the answers that they are made of. Raises as `run`."""
    op, source = query.op, query.source
    states = [ExactState.empty(terms) for terms in terms_of(op)]
    answers: list[Any] = []
    done = 0
    for block in _blocks(op, query.sources):
        total = max(source.count or 0, done + block[0].count)
        layout = OneValue(query, run, answers, _stays(progress, done, total))
        try:
            made = TotalsOfSources(op, dict(zip(query.fields, block, strict=True)), query.nan_policy, layout).states()
        except InvalidInput as error:
            if error.field == "nan_policy" and block[0].count != source.count:  # the block counts its elements from 0
                raise InvalidInput("an element is NaN, and nan_policy is raise", "nan_policy") from None
            raise
        states = [state.merge(of_block) for state, (of_block,) in zip(states, made, strict=True)]
        done += block[0].count
        if progress is not None:
            progress(done, max(total, done))
    return states, answers


def _stays(progress: Progress | None, done: int, total: int) -> Progress | None:
    """What tells that so much is done, for as long as a block takes."""
    return None if progress is None else lambda _, __: progress(done, total)


def _shaped(query: Shaped, run: Run, progress: Progress | None) -> GroupedReduction:
    op, answers = query.op, list[Any]()
    if query.states and query.weights is not None:
        raise InvalidInput("values with weights have no exact states so far", "states")
    sources = {name: gathered(source) for name, source in query.fields.items()}
    layout = ManyValuesOfTotals(query, run, answers, progress)
    made = TotalsOfSources(op, sources, query.nan_policy, layout).states()
    dtype = _element(query)
    counts = np.array(made[0].counts if isinstance(made[0], ColumnStates) else [state.count for state in made[0]])
    finish = ValueFinish(op, op.result_dtype(dtype), query.ddof)
    least = max(1, 1 if query.weights is not None else op.least_count(query.ddof))
    made_of = np.where(counts >= least, counts, 0)
    results = finish.values_of_totals(made, made_of)
    missing = made_of == 0
    if query.weights is not None and results.dtype.kind == "f":
        for at in np.flatnonzero(np.isnan(results) & ~missing).tolist():
            missing[at] = _is_undefined(math.nan, [each[at] for each in made])
    if op.empty is not None:
        results[counts == 0], missing[counts == 0] = empty_value(op, dtype), False
    values = tuple(np.ma.masked_array(results, missing).tolist()) if missing.any() else results
    kept = [StateColumn.of_bytes([state.to_bytes() for state in each]) for each in made] if query.states else []
    first: GroupedReduction = answers[0]
    return replace(
        first,
        values=values,
        counts=counts,
        shape=query.grouping.result_shape(query.shape),
        dtype=finish.result,
        op=op.name,
        load_ms=sum(each.load_ms for each in answers),
        kernel_ms=sum(each.kernel_ms for each in answers),
        prepare_ms=sum(each.prepare_ms for each in answers),
        stages=None,
        states=tuple(kept),
    )


def _is_undefined(value: Value, states: States) -> bool:
    """Whether the weights of finite elements have a sum by which nothing can be divided."""
    return math.isnan(value) and all(state.special() is None for state in states)


def _element(query: Whole | Shaped) -> DType:
    """The dtype of the elements: where floats and integers come together, that of their common floats."""
    dtypes = [source.dtype for source in query.sources]
    if not any(dtype.is_float for dtype in dtypes):
        return dtypes[0]
    return reduce(common_float, [dtype if dtype.is_float else DTYPES["float64"] for dtype in dtypes])


def _check_weights(query: Whole | Shaped) -> None:
    """Raise InvalidInput naming "weights" unless there is one for each element."""
    count, weights = query.source.count, None if query.weights is None else query.weights.count
    if count is not None and weights is not None and count != weights:
        raise InvalidInput(f"there are {weights:,} weights for {count:,} elements", "weights")


def _blocks(op: Op, sources: Sequence[Elements]) -> Iterator[Sequence[Source]]:
    """The sources at once where they are in memory, or where a backend makes them and adds up all totals itself; else
    block by block."""
    by_position = [source for source in sources if not isinstance(source, SequentialSource)]
    itself = all(len(total.strip("|")) < 3 for total in op.totals)
    if len(by_position) < len(sources):
        for arrays in side_by_side(sources, _BLOCK):
            yield [ArraySource(array) for array in arrays]
    elif all(in_memory(source) or (itself and generator_of(source)) for source in by_position):
        yield by_position
    else:
        count = by_position[0].count
        for start in range(0, count, _BLOCK):
            stop = min(start + _BLOCK, count)
            yield [ArraySource(source.read(start, stop)) for source in by_position]
            for source in by_position:
                forget_read(source, start, stop)
