"""Values of ops of several totals, such as skew and corr, of many groups at once. Pairs of float64 with bounds of their
errors (`cpu.bounded`) make nearly all of them certain; the others are left to the definition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.bounded import Bounded, Bounds
from warpfold.kernels.cpu.states import by_parts
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import DIGIT_BITS, FACTORS
from warpfold.kernels.exact.expansion import Floats
from warpfold.kernels.ops import Op, Terms
from warpfold.kernels.parts.grouping import Index

_SPECIAL = int(Flags.NAN | Flags.POS_INF | Flags.NEG_INF)

_PLACES = 1000
"""Totals are brought near 1 by powers of two; one that is so much smaller than another is left to the definition."""


@dataclass(frozen=True)
class ColumnStates(Sequence[ExactState]):
    """The states of a column of canonical bytes, each made when it is asked for. With `terms` they are those of
    `counts` products each, of which the column has the sums divided by 2**`up` units."""

    column: StateColumn
    terms: Terms | None = None
    counts_of_products: Sequence[int] = ()
    up: int = 0

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, at: int) -> ExactState: ...
    @overload
    def __getitem__(self, at: slice) -> list[ExactState]: ...
    def __getitem__(self, at: int | slice) -> ExactState | list[ExactState]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        state = self.column.state(at)
        if self.terms is None:
            return state
        count = self.counts_of_products[at]
        units = state.units << self.up if self.up >= 0 else state.units >> -self.up
        flags = Flags(state.flags | Flags.NOT_NEGATIVE_ZERO) if count else Flags.NONE
        return ExactState(self.terms, units, count, flags)

    def __iter__(self) -> Iterator[ExactState]:
        return (self[at] for at in range(len(self)))

    @property
    def counts(self) -> list[int]:
        """How many terms each has."""
        if self.terms is not None:
            return [*self.counts_of_products]
        heads = self.column.offsets[:-1, None] + np.arange(8, 16)
        counts: list[int] = np.ascontiguousarray(self.column.data[heads]).view("<u8").ravel().tolist()
        return counts

    def pairs(self) -> tuple[Floats, Floats, Index, Index]:
        """The sums as pairs, high and low, the exponents of their units, and the flags."""
        from warpfold.kernels.cpu.windows import estimates  # it imports Numba

        highs, lows = np.empty(len(self)), np.empty(len(self))
        places, flags = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        estimates.pairs_of_states(self.column.data, self.column.offsets, highs, lows, places, flags)
        terms = self.column.state(0).terms if self.terms is None and len(self) else self.terms or Terms.VALUES
        return highs, lows, DIGIT_BITS * places + ORIGIN[terms] + self.up, flags


def certain_values(
    op: Op, ddof: int, totals: Sequence[ColumnStates], counts: Index, form: tuple[int, int, int]
) -> tuple[Floats, NDArray[np.bool_]]:
    """The values of an op of these totals, each of so many elements and rounded once to `form`, and which of them are
    certain."""
    pairs = [total.pairs() for total in totals]
    parts = by_parts(
        lambda some: _part(op, ddof, [tuple(each[some] for each in pair) for pair in pairs], counts[some], form),
        counts.size,
    )
    return np.concatenate([values for values, _ in parts]), np.concatenate([certain for _, certain in parts])


def _part(
    op: Op, ddof: int, pairs: Sequence[tuple[Any, ...]], counts: Index, form: tuple[int, int, int]
) -> tuple[Floats, NDArray[np.bool_]]:
    from warpfold.kernels.cpu.windows import estimates

    assert op.exact is not None, "an op of several totals has a function of them"
    bounds = Bounds((counts > 0) & (counts < 1 << 31))
    factors = [len(total.strip("|")) for total in op.totals]
    with np.errstate(all="ignore"):  # of values that are left
        sizes = [
            np.where(high == 0, np.iinfo(np.int32).min, (np.frexp(high)[1] + exponents) // many)
            for (high, _, exponents, _), many in zip(pairs, factors, strict=True)
        ]
        scale = np.maximum.reduce(sizes)
        numbers = []
        for (high, low, exponents, flags), many in zip(pairs, factors, strict=True):
            places = exponents - many * scale
            bounds.require((flags & _SPECIAL == 0) & (np.abs(places) < _PLACES))
            places = np.clip(places, -_PLACES, _PLACES).astype(np.int32)
            highs, lows = np.ldexp(high, places), np.ldexp(low, places)
            numbers.append(Bounded(highs, lows, np.abs(highs) * 2.0**-103 + 2.0**-1000, bounds))
        nothing = np.zeros(counts.size)
        value: Any = op.exact(Bounded(counts.astype(np.float64), nothing, nothing, bounds), ddof, *numbers)
        if value is None or value.units % value.degree:
            return nothing, np.zeros(counts.size, np.bool_)
        for total, square in (("x", "xx"), ("y", "yy")):
            if {total, square} <= set(op.totals):
                plain, squared = (numbers[op.totals.index(name)] for name in (total, square))
                bounds.require(counts * squared.high * (1 + 2.0**-50) + squared.error >= plain.high**2 * (1 - 2.0**-50))
        made = (value.numerator / value.denominator).root(value.degree)
    values, certain = np.zeros(counts.size), bounds.met
    units = scale.astype(np.int64) * (value.units // value.degree)
    estimates.round_pairs(made.high, made.low, made.error, units, form, values, certain)
    return values, certain


def terms_of_factors(factors: int) -> Terms:
    """What the states of products of so many elements add up."""
    return next(terms for terms, many in FACTORS.items() if many == factors)
