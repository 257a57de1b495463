"""Reductions along axes and by segments of sources whose stored numbers stand for something else: these are reduced,
then the values are made."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.complexes import ComplexNumbers
from warpfold.kernels.lowering.long_integers import Beyond
from warpfold.kernels.lowering.meaning import Total, is_plain
from warpfold.kernels.lowering.reducing import exact_total, is_meant, meaning_of, read_again, refuse_meaning
from warpfold.kernels.lowering.wide_runs import reduce_all_runs
from warpfold.kernels.ops import Finish, Op, op_named
from warpfold.kernels.ops.operands import check_arity
from warpfold.kernels.parts.grouping import Grouping, Segments
from warpfold.kernels.sources.sequential import Elements, SequentialSource, gathered


class RunGroups(Protocol):
    """Reduces elements that are values to many values, by the op of a name."""

    def __call__(self, source: Elements, *, op: str, states: bool = False) -> GroupedReduction: ...


Method = TypeVar("Method", bound=Callable[..., GroupedReduction])


def takes_meanings(method: Method) -> Method:
    """The method `reduce_groups` of a backend (`Backend`), which reduces elements that are values, as one that takes
    sources with a meaning, too."""

    @wraps(method)
    def reduce_groups(
        backend: object,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        other: Elements | None = None,
        ddof: int = 0,
        states: bool = False,
        **options: Any,
    ) -> GroupedReduction:
        if not is_meant(source, other):
            return method(backend, source, shape, grouping, op, other=other, ddof=ddof, states=states, **options)
        run = partial(method, backend, shape=shape, grouping=grouping, **options)
        check_arity(op_named(op), other=other is not None, ddof=ddof)
        return reduce_groups_meant(
            op_named(op), source, other, run, shape=shape, grouping=grouping, ddof=ddof, states=states
        )

    return cast(Method, reduce_groups)


def reduce_groups_meant(
    op: Op,
    source: Elements,
    other: Elements | None,
    run: RunGroups,
    *,
    shape: tuple[int, ...],
    grouping: Grouping,
    ddof: int = 0,
    states: bool = False,
) -> GroupedReduction:
    """Reduce what the elements of a source, an array of `shape`, stand for to the values of `grouping`; `run` reduces
    elements that are values.

    Raises InvalidInput naming "op" where `op` has no value of such elements, "source" for complex numbers, and "states"
    where states are asked for: they would be those of the integers.
    """
    for part in (source, other):
        if part is not None and (other is not None or isinstance(meaning_of(part), ComplexNumbers)):
            refuse_meaning(part, "a reduction to many values", "source" if part is source else "other")
    meaning = meaning_of(source)
    assert meaning is not None, "the elements stand for something"
    assert isinstance(source, SequentialSource), "only those have a meaning"
    meaning.check(op)
    if states:
        raise InvalidInput(f"values of {meaning.name} have no exact states so far", "states")
    stored, beyond, parts = replace(source, meaning=None), Beyond(), [op_named(name) for name in meaning.stored_ops(op)]
    source.tally.beyond = beyond
    runs = [_run_part(run, parts[0], stored)]
    reduction = replace(runs[0], op=op.name)
    if beyond and (op.places or not is_plain(op)):
        bounds = _bounds(shape, grouping)
        runs = [replace(runs[0], values=_of_runs(op, stored, beyond, bounds))]
        reduction = replace(reduction, values=runs[0].values)
    if is_plain(op):
        return reduction
    runs += [read_again(stored, beyond, partial(_run_part, run, part)) for part in parts[1:]]
    counts, totals = reduction.counted(), zip(*map(_totals, parts, runs), strict=True)
    divides = op.finish in (Finish.MEAN, Finish.VARIANCE, Finish.DEVIATION)
    meant = [
        None if any(total is None for total in of_value) or (divides and count <= ddof)
        else meaning.meant(op, [total for total in of_value if total is not None], count, ddof)
        for of_value, count in zip(totals, counts, strict=True)
    ]  # fmt: skip
    decimals = tuple(None if each is None else each.decimal for each in meant)
    times = tuple(None if each is None else each.time for each in meant)
    return replace(
        reduction,
        values=tuple(None if each is None else each.value for each in meant),
        counts=counts,
        dtype=meaning.meant(op, (0,) * len(parts), ddof + 1, ddof).dtype,
        correctly_rounded=True,
        load_ms=sum(each.load_ms for each in runs),
        kernel_ms=sum(each.kernel_ms for each in runs),
        prepare_ms=sum(each.prepare_ms for each in runs),
        stages=reduction.stages if len(runs) == 1 else None,
        states=(),
        decimals=decimals if any(decimal is not None for decimal in decimals) else None,
        times=times if any(time is not None for time in times) else None,
    )


def _run_part(run: RunGroups, part: Op, stored: SequentialSource) -> GroupedReduction:
    """The values of an op of the stored numbers; those of floats that are added have their exact states."""
    return run(stored, op=part.name, **({"states": True} if stored.dtype.is_float and part.adds else {}))


def _totals(part: Op, reduction: GroupedReduction) -> list[Total | None]:
    """The values of an op of the stored numbers before they were rounded, None where there is none."""
    states = reduction.states[0] if reduction.states else None
    return [
        None if value is None else exact_total(part, value, None if states is None else states[at])
        for at, value in enumerate(reduction.listed())
    ]


def _of_runs(op: Op, integers: SequentialSource, beyond: Beyond, bounds: NDArray[np.int64]) -> tuple[int | None, ...]:
    """The values of `op` of the elements between `bounds`, which do not all fit int64. They are read word by word, and
    all of them are in memory then. Raises OutOfMemory."""
    words = [read_again(integers, Beyond(word=word), gathered) for word in range(beyond.words)]
    return tuple(reduce_all_runs(op, np.stack([word.read(0, word.count) for word in words]), bounds))


def _bounds(shape: tuple[int, ...], grouping: Grouping) -> NDArray[np.int64]:
    """Where the values of a column begin, and where the last one ends: a column has one axis."""
    (count,) = shape
    if isinstance(grouping, Segments):
        return grouping.bounds(count)
    return np.array([0, count]) if grouping.reduced(1) else np.arange(count + 1)
