"""Reductions along axes and by segments of sources whose integers stand for something else: the integers are reduced,
then the values are made."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction
from warpfold.kernels.beyond import Beyond
from warpfold.kernels.complexes import ComplexNumbers
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.grouping import Grouping, Segments
from warpfold.kernels.meaning import integer_op, is_plain
from warpfold.kernels.meant import is_meant, meaning_of, read_again, refuse_meaning
from warpfold.kernels.ops import Finish, Op, op_named
from warpfold.kernels.sequential import Elements, SequentialSource, gathered
from warpfold.kernels.wide_runs import reduce_all_runs


class RunGroups(Protocol):
    """Reduces elements that are values to many values, by the op of a name."""

    def __call__(self, source: Elements, *, op: str) -> GroupedReduction: ...


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
        states: bool = False,
        **options: Any,
    ) -> GroupedReduction:
        if not is_meant(source, other):
            return method(backend, source, shape, grouping, op, other=other, states=states, **options)
        run = partial(method, backend, shape=shape, grouping=grouping, **options)
        return reduce_groups_meant(op_named(op), source, other, run, shape=shape, grouping=grouping, states=states)

    return cast(Method, reduce_groups)


def reduce_groups_meant(
    op: Op,
    source: Elements,
    other: Elements | None,
    run: RunGroups,
    *,
    shape: tuple[int, ...],
    grouping: Grouping,
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
    integers, beyond = replace(source, meaning=None), Beyond()
    source.tally.beyond = beyond
    reduction = replace(run(integers, op=integer_op(op)), op=op.name)
    if beyond and (op.places or not is_plain(op)):
        bounds = _bounds(shape, grouping)
        reduction = replace(reduction, values=_of_runs(op, integers, beyond, bounds))
    if is_plain(op):
        return reduction
    counts = reduction.counted()
    mean = op.finish is Finish.MEAN
    meant = [
        None if value is None or (mean and not count) else meaning.meant(op, int(value), count)
        for value, count in zip(reduction.listed(), counts, strict=True)
    ]
    decimals = tuple(None if each is None else each.decimal for each in meant)
    times = tuple(None if each is None else each.time for each in meant)
    return replace(
        reduction,
        values=tuple(None if each is None else each.value for each in meant),
        counts=counts,
        dtype=meaning.meant(op, 0, 1).dtype,
        correctly_rounded=True,
        decimals=decimals if any(decimal is not None for decimal in decimals) else None,
        times=times if any(time is not None for time in times) else None,
    )


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
