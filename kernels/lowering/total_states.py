"""The exact states of the totals of an op, which a backend is asked for one or two at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import is_nan
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.certain import ColumnStates, terms_of_factors
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.expansion import Expansion, Scales
from warpfold.kernels.lowering.conversion import converted
from warpfold.kernels.ops import PLAIN_TOTALS, SUMS_OF_MOMENTS, NanPolicy, Op, Terms, op_named
from warpfold.kernels.ops.weights import ONE
from warpfold.kernels.parts.grouping import AlongAxes, Segments
from warpfold.kernels.query import Shaped, Whole
from warpfold.kernels.source import Source
from warpfold.kernels.sources.sections import in_turn
from warpfold.kernels.sources.sequential import Elements, Section, SequentialSource, Tally
from warpfold.kernels.strategy import EXACT

_PIECE = 1 << 17
_COMPILED_FROM = 1 << 20
"""Elements of a block from which on it is worth to wait for a compiler."""

_CACHED = 1 << 13
"""Elements whose products are made at a time, so that the arrays on the way to them stay in a cache."""

_LETTERS: Mapping[str, str] = MappingProxyType({"source": "x", "other": "y", "weights": "w"})
"""What totals call the elements of each field of a query."""

_NAMES: Mapping[str, str] = MappingProxyType({"y": "other", "w": "weights"})

Run = Callable[[Any, Progress | None], Any]
"""Answers a query whose op has one total, or two that are moments."""

States = Sequence[ExactState]
"""The state of a total of each value."""


@dataclass(frozen=True)
class DerivedSource:
    """`count` elements of `dtype`, of which `make` gives the elements start … stop − 1; several threads may call it at
    once."""

    dtype: DType
    count: int
    make: Callable[[int, int], NDArray[Any]]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return self.make(start, stop)

    def read_into(self, start: int, out: NDArray[np.uint8]) -> None:
        out[:] = np.ascontiguousarray(self.make(start, start + out.size // self.dtype.itemsize)).view(np.uint8)


class ValuesOfTotals(Protocol):
    """The values whose totals a backend is asked for."""

    def counts(self, elements: int) -> Sequence[int]:
        """How many elements each value has, of a block of so many."""
        ...

    def asked(self, op: str, source: Source, other: Source | None, policy: NanPolicy) -> Sequence[States]:
        """The states of an op, of each total that it adds up."""
        ...

    def expanded(self, expansion: Expansion, sources: Sequence[Source], scales: Scales) -> States:
        """The states of the sums of all float64 that the products of a class are."""
        ...


@dataclass
class OneValue:
    """All elements make one value."""

    query: Whole
    run: Run
    answers: list[Any]
    progress: Progress | None

    def counts(self, elements: int) -> Sequence[int]:
        return (elements,)

    def asked(self, op: str, source: Source, other: Source | None, policy: NanPolicy) -> Sequence[States]:
        return [(self._state(op, source, other, policy),)]

    def _state(self, op: str, source: Elements, other: Source | None, policy: NanPolicy) -> ExactState:
        whole = Whole(source=source, op=op_named(op), other=other, strategy=EXACT, nan_policy=policy)
        answer = self.run(whole, self.progress)
        self.answers.append(answer)
        return ExactState.from_bytes(answer.state)

    def expanded(self, expansion: Expansion, sources: Sequence[Source], scales: Scales) -> States:
        count, width = sources[0].count, expansion.width
        compiled = None
        if count > _COMPILED_FROM and scales == expansion.base:
            from warpfold.kernels.lowering.power_loops import powers_of  # it imports Numba

            compiled = powers_of(expansion)

        def products(start: int, stop: int) -> Iterator[NDArray[Any]]:
            for at in range(start, stop, _CACHED):
                some = [source.read(at, min(at + _CACHED, stop)) for source in sources]
                parts = np.empty((width, some[0].size))
                if compiled is None or compiled(
                    some[0].astype(np.float64, copy=False), expansion.factors.startswith("|"), parts
                ):
                    parts = expansion.of(some, scales)
                yield parts.reshape(-1)

        def sections() -> Iterator[Section]:
            for start in range(0, count, _PIECE):
                stop = min(start + _PIECE, count)
                elements = width * (stop - start)
                yield Section(partial(products, start, stop), 8 * elements, width * start, elements)

        tally = Tally()
        made = SequentialSource(
            DTYPES["float64"],
            lambda: in_turn(sections(), tally),
            width * count,
            width * count,
            tally,
            sections=sections,
        )
        return (self._state("sum", made, None, NanPolicy.PROPAGATE),)


@dataclass
class ManyValuesOfTotals:
    """An array makes many values, along axes or by segments."""

    query: Shaped
    run: Run
    answers: list[Any]
    progress: Progress | None

    def counts(self, elements: int) -> Sequence[int]:
        counts: list[int] = self.query.grouping.counts(self.query.shape).tolist()
        return counts

    def asked(self, op: str, source: Source, other: Source | None, policy: NanPolicy) -> Sequence[States]:
        return self._states(replace(self._plain, source=source, op=op_named(op), other=other, nan_policy=policy))

    def _of_first(self, done: int, total: int) -> None:
        """Report the progress of the first total; while others are made, all elements have been read."""
        if self.progress is not None:
            count = prod(self.query.shape)
            self.progress(count if self.answers else done * count // max(total, 1), count)

    @property
    def _plain(self) -> Shaped:
        return replace(self.query, strategy=EXACT, states=True, ddof=0, weights=None)

    def _states(self, query: Shaped) -> Sequence[States]:
        answer = self.run(query, self._of_first)
        self.answers.append(answer)
        return [ColumnStates(column) for column in answer.states]

    def expanded(self, expansion: Expansion, sources: Sequence[Source], scales: Scales) -> States:
        width, grouping, shape = expansion.width, self.query.grouping, self.query.shape

        def products(start: int, stop: int) -> NDArray[Any]:
            first = start // width
            some = [source.read(first, -(-stop // width)) for source in sources]
            return expansion.of(some, scales).T.reshape(-1)[start - width * first : stop - width * first]

        # All float64 of a product lie side by side, and belong to its value.
        if isinstance(grouping, AlongAxes):
            shape = (*shape, width)
            grouping = AlongAxes((*grouping.reduced(len(shape) - 1), len(shape) - 1))
        else:
            offsets = None if grouping.offsets is None else tuple(width * offset for offset in grouping.offsets)
            grouping = Segments(offsets, None if grouping.length is None else width * grouping.length)
            shape = (width * sources[0].count,)
        made = DerivedSource(DTYPES["float64"], width * sources[0].count, products)
        asked = replace(
            self._plain, source=made, op=op_named("sum"), other=None, nan_policy=NanPolicy.PROPAGATE, shape=shape,
            grouping=grouping,
        )  # fmt: skip
        return self._states(asked)[0]


@dataclass
class TotalsOfSources:
    """The totals of an op, of sources by position, which are named by the fields of a query."""

    op: Op
    sources: Mapping[str, Source]
    policy: NanPolicy
    layout: ValuesOfTotals
    _made: dict[str, States] = field(default_factory=dict)
    _counts: Sequence[int] | None = None

    def __post_init__(self) -> None:
        sources = self.sources
        floats = any(source.dtype.is_float for source in sources.values())
        self.policy = self.policy if floats else NanPolicy.PROPAGATE
        if floats:
            sources = {name: _as_floats(source, name) for name, source in sources.items()}
        if self.policy is NanPolicy.OMIT and len(sources) > 1:
            sources = {name: _masked(source, list(sources.values())) for name, source in sources.items()}
        self._letters = {_LETTERS[name]: source for name, source in sources.items()}
        self._length = next(iter(sources.values())).count

    def states(self) -> list[States]:
        """The states of each total, all of the same elements."""
        for letter, source in self._letters.items():
            self._plainly(letter, source)
        counts = self.layout.counts(self._length) if self._counts is None else self._counts
        for total in self.op.totals:
            if total not in self._made:
                self._made[total] = _ones(counts) if total == ONE else self._multiplied(total, counts)
        return [self._made[total] for total in self.op.totals]

    def _plainly(self, letter: str, source: Source) -> None:
        """Have the backend give the totals of one source that it knows. Where NaNs are omitted or refused, it counts
        them, even if the op has no such total."""
        totals = {
            total: op for each, op in PLAIN_TOTALS.items() if (total := each.replace("x", letter)) in self.op.totals
        }
        if not totals and self.policy is not NanPolicy.PROPAGATE:
            totals = {letter: "sum"}
        asked = (
            ["var"]
            if isinstance(self.layout, ManyValuesOfTotals) and set(totals.values()) == set(SUMS_OF_MOMENTS)
            else totals.values()
        )
        states: list[States] = []
        for op in asked:
            try:
                states += self.layout.asked(op, source, None, self.policy)
            except InvalidInput as error:
                if error.field == "nan_policy" and letter != "x":
                    raise InvalidInput(f"{_NAMES[letter]} {error}", error.field) from None
                raise
        self._made |= dict(zip(totals, states, strict=True))
        if states:
            first = states[0]
            self._counts = first.counts if isinstance(first, ColumnStates) else [state.count for state in first]

    def _multiplied(self, total: str, counts: Sequence[int]) -> States:
        """The states of a total of products: a state of them does not say whether all are −0."""
        letters = sorted(set(total.strip("|")))
        sources = [self._letters[letter] for letter in letters]
        if len(total) == 2 and len(letters) == 2:
            (states,) = self.layout.asked("dot", sources[0], sources[1], self.policy)
            if isinstance(states, ColumnStates):
                return ColumnStates(states.column, Terms.PRODUCTS, states.counts)
            return [summed(Terms.PRODUCTS, state.units, state.count, state.flags) for state in states]
        dtypes = {letter: source.dtype for letter, source in zip(letters, sources, strict=True)}
        expansion = Expansion(total, dtypes, omit=self.policy is NanPolicy.OMIT)
        return in_classes(expansion, counts, lambda scales: self.layout.expanded(expansion, sources, scales))


def _ones(counts: Sequence[int]) -> States:
    """The number 1 for each value, as a state beside those of the elements."""
    return [summed(Terms.VALUES, 1 << -ORIGIN[Terms.VALUES] if count else 0, count, 0) for count in counts]


def in_classes(expansion: Expansion, counts: Sequence[int], sums: Callable[[Scales], States]) -> States:
    """The states of a total of products, of which `sums` gives those of a class: of the class whose factors are not
    scaled, and of those that are met meanwhile."""
    terms = terms_of_factors(len(expansion.factors.strip("|")))
    of_base = sums(expansion.base)
    if isinstance(of_base, ColumnStates) and not expansion.met - {expansion.base}:
        up = ORIGIN[Terms.VALUES] - ORIGIN[terms] + expansion.places(expansion.base)
        return ColumnStates(of_base.column, terms, counts, up)
    units, flags = [0] * len(counts), [0] * len(counts)
    left, made = [expansion.base], set[Scales]()
    while left:
        scales = left.pop()
        made.add(scales)
        up = ORIGIN[Terms.VALUES] - ORIGIN[terms] + expansion.places(scales)
        for at, state in enumerate(of_base if scales == expansion.base else sums(scales)):
            units[at] += state.units << up if up >= 0 else state.units >> -up
            flags[at] |= int(state.flags)
        left += [scales for scales in expansion.met if scales not in made and scales not in left]
    return [summed(terms, *each) for each in zip(units, counts, flags, strict=True)]


def summed(terms: Terms, units: int, count: int, flags: int) -> ExactState:
    """The state of so many products, which does not say whether all are −0."""
    return ExactState(terms, units, count, Flags(flags | Flags.NOT_NEGATIVE_ZERO if count else 0))


def _as_floats(source: Source, name: str) -> Source:
    """The elements as floats beside those of another source. Raises InvalidInput naming the field `name` when an
    integer is read that no float64 is."""
    if source.dtype.is_float:
        return source

    def read(start: int, stop: int) -> NDArray[Any]:
        try:
            return converted(source.read(start, stop), DTYPES["float64"])
        except InvalidInput as error:
            raise InvalidInput(str(error), name) from None

    return DerivedSource(DTYPES["float64"], source.count, read)


def _masked(source: Source, sources: Sequence[Source]) -> Source:
    """The elements, with NaN where any of `sources` has NaN."""
    if not source.dtype.is_float:
        return source

    def read(start: int, stop: int) -> NDArray[Any]:
        array = source.read(start, stop)
        missing = np.zeros(array.size, np.bool_)
        for other in sources:
            missing |= is_nan(other.read(start, stop), other.dtype)
        if missing.any():
            array = np.array(array)
            array[missing] = np.nan
        return array

    return DerivedSource(source.dtype, source.count, read)
