"""Ops of sums of squares over windows, such as var and std. Sums are pairs of float64 (`cpu.windows.rolling_squares`)
where values of them are certain; else they are exact, and `cpu.finishing` makes the values, as it does along axes and
by key."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.rolling.elements import CHUNK, BlockTotals, FiniteElements, limbs_of
from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.cpu.windows import rolling, rolling_squares
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import INTEGER, Op, Terms, terms_of
from warpfold.kernels.parts.grouping import Index

_AT_ONCE = 1 << 12
"""Values whose sums are made before they are finished."""

_FEW = 8
"""Values among these that are added up anew, each alone, where they are not certain."""

_EXACT = 1 << 53

_NONE = (1 << 63) - 1
"""The least magnitude of no elements, or of zeros."""

_SPECIAL = int(Flags.NAN | Flags.POS_INF | Flags.NEG_INF)


class _Spread(NamedTuple):
    """What an op makes of the sum of squares: the square of the sum over the count is taken away from it, it is divided
    by the count less ddof, or by the count, or by both, and the root is taken."""

    centred: bool = False
    by_freedom: bool = False
    by_count: bool = False
    root: bool = False

    def divisors(self, counts: Index, ddof: int) -> NDArray[np.float64]:
        divisors = counts - ddof if self.by_freedom else np.minimum(counts, 1)
        return (divisors * counts if self.by_count else divisors).astype(np.float64)


_SPREADS: Mapping[str, _Spread] = MappingProxyType(
    {
        "sum_squares": _Spread(),
        "norm2": _Spread(root=True),
        "rms": _Spread(by_count=True, root=True),
        "var": _Spread(centred=True, by_freedom=True),
        "std": _Spread(centred=True, by_freedom=True, root=True),
        "sem": _Spread(centred=True, by_freedom=True, by_count=True, root=True),
    }
)
"""The ops whose values pairs may make certain."""


class _Start(NamedTuple):
    """Where the first window begins, where it starts to add, and the exact sums of the elements between and of their
    squares."""

    begin: int
    end: int
    total: int
    squares: int


class MovingSquares:
    """Values of `op` of `elements` of a dtype, over windows of up to `longest`; with `omits` NaNs are left out."""

    def __init__(
        self, elements: NDArray[Any], dtype: DType, longest: int, op: Op, ddof: int, *, omits: bool
    ) -> None:  # fmt: skip
        self._finite = FiniteElements(elements, dtype, magnitudes=False, omits=omits)
        self._patterns = self._finite.patterns
        self._elements = self._patterns.view(np.float64)
        self._terms, self._ddof = terms_of(op), ddof
        self._finish = ValueFinish(op, op.result_dtype(dtype), ddof)
        self._totals = {terms: BlockTotals(self._elements, terms, longest) for terms in (Terms.VALUES, Terms.PRODUCTS)}
        starts = range(0, self._patterns.size, CHUNK)
        looks = [rolling.look(self._patterns[start : start + CHUNK]) for start in starts]
        self._most, self._least = (np.array([each[k] for each in looks], np.int64) for k in (0, 1))
        self._spread = None if self._finish.result == INTEGER else _SPREADS.get(op.name)

    def values(self, begins: Index, ends: Index, counts: Index, out: NDArray[Any]) -> NDArray[Any]:
        """The values of windows that `counts` elements enter."""
        flags = self._finite.flags(begins, ends, counts)
        all_finite = flags is None
        if flags is None:
            flags = np.where(counts > 0, int(Flags.NOT_NEGATIVE_ZERO), 0)
        blocks = slice(int(begins[0]) // CHUNK, -(-int(ends[-1]) // CHUNK))  # the elements lie in these
        most, least = int(self._most[blocks].max(initial=0)), int(self._least[blocks].min(initial=_NONE))
        pairs = None
        if self._spread is not None and _may_be_certain(most, least) and counts.max() < rolling_squares.MOST_COUNT:
            start = self._start(begins, ends)
            here = self._elements[start.begin : int(ends[-1])]
            if self._spread.centred and all_finite:
                here, start = _about_center(here, start)
            pairs = _Pairs(here, self._spread, self._ddof, self._finish.form, start)
        limbs: _Limbs | None = None
        parts = []
        for first in range(0, begins.size, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, begins.size))
            windows = begins[some], ends[some], counts[some], flags[some]
            if pairs is not None:
                values, left = pairs.values(*windows)
                uncertain = np.flatnonzero(left)
                if uncertain.size <= _FEW:
                    for at in uncertain.tolist():
                        values[at] = self._alone(*(int(each[at]) for each in windows))
                    special = windows[3] & _SPECIAL != 0
                    if special.any():
                        values[special] = self._of_flags(windows[2][special], windows[3][special])
                    parts.append(values)
                    continue
                pairs = None
            if limbs is None:
                limbs = _Limbs(self._patterns, most, least, self._start(begins[some], ends[some]))
            parts.append(self._finished(limbs.sums(*windows), windows[2]))
        values = np.concatenate(parts)
        return values.astype(object) if values.dtype == np.uint64 else values

    def _start(self, begins: Index, ends: Index) -> _Start:
        begin, stop = int(begins[0]), int(ends[0])
        (end, total), (_, squares) = (
            self._totals[terms].begin(begin, stop) for terms in (Terms.VALUES, Terms.PRODUCTS)
        )
        return _Start(begin, end, total, squares)

    def _finished(self, sums: Mapping[Terms, ManySums], counts: Index) -> NDArray[Any]:
        return self._finish.values([sums[terms] for terms in self._terms], counts)

    def _alone(self, begin: int, end: int, count: int, flags: int) -> float:
        """The value of one window."""
        flags_of = {Terms.VALUES: flags, Terms.PRODUCTS: int(_of_squares(np.array([flags]), np.array([count]))[0])}
        return float(
            self._finish.value(
                [
                    ExactState(terms, self._totals[terms].added(begin, end), count, Flags(flags_of[terms]))
                    for terms in self._terms
                ]
            )
        )

    def _of_flags(self, counts: Index, flags: Index) -> NDArray[Any]:
        """The values of windows that are not finite."""
        limbs = np.zeros((counts.size, 2), np.int64)
        sums = {Terms.VALUES: ManySums(Terms.VALUES, 0, limbs, flags)}
        sums[Terms.PRODUCTS] = ManySums(Terms.PRODUCTS, 0, limbs, _of_squares(flags, counts))
        return self._finished(sums, counts)


class _Pairs:
    """Sums that move from window to window as pairs. `elements` begin with the first of the first window."""

    def __init__(
        self, elements: NDArray[np.float64], spread: _Spread, ddof: int, form: tuple[int, int, int],
        start: _Start,
    ) -> None:  # fmt: skip
        self._elements, self._spread, self._ddof, self._form = elements, spread, ddof, form
        self._base, self._begin, self._end = start.begin, 0, start.end - start.begin
        state = []
        for units, terms in zip((start.total, start.squares), (Terms.VALUES, Terms.PRODUCTS), strict=True):
            high = _nearest(units, terms)
            low = _nearest(units - _units(high, terms), terms)
            state += [high, low, abs(high) * 2.0**-105]
        self._sums, self._run = np.array(state), self._end

    def values(self, begins: Index, ends: Index, counts: Index, flags: Index) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The values of windows of finite elements, and which of them are not certain."""
        values, left = np.zeros(begins.size), np.zeros(begins.size, np.bool_)
        divisors = self._spread.divisors(counts, self._ddof)
        divisors[flags & _SPECIAL != 0] = 0.0
        begins, ends = begins - self._base, ends - self._base
        self._run = rolling_squares.slide_pairs(
            self._elements, begins, ends, self._begin, self._end, self._sums, self._run, counts, divisors,
            (self._spread.centred, self._spread.root), self._form, values, left,
        )  # fmt: skip
        self._begin, self._end = int(begins[-1]), int(ends[-1])
        return values, left


class _Limbs:
    """Exact sums that move from window to window. `most` and `least` are the magnitudes that `rolling.look` saw."""

    def __init__(
        self, patterns: NDArray[np.int64], most: int, least: int, start: _Start
    ) -> None:  # fmt: skip
        self._patterns, self._begin, self._end = patterns, start.begin, start.end
        lowest, highest = max((least + 1) >> 52, 1) - 1075, max(most >> 52, 1) - 1022
        self._lowest = lowest = min(lowest, highest)  # also of zeros alone
        places = highest - lowest + patterns.size.bit_length()
        self._sizes = places // 32 + 4, (places + highest - lowest) // 32 + 4
        origins = lowest - ORIGIN[Terms.VALUES], 2 * lowest - ORIGIN[Terms.PRODUCTS]
        self._state = [
            limbs_of(units, origin, size)
            for units, origin, size in zip((start.total, start.squares), origins, self._sizes, strict=True)
        ]

    def sums(self, begins: Index, ends: Index, counts: Index, flags: Index) -> dict[Terms, ManySums]:
        """The sums of windows, and those of squares."""
        of_values, of_squares = (np.empty((begins.size, size), np.int64) for size in self._sizes)
        rolling_squares.slide_squares(
            self._patterns, begins, ends, self._begin, self._end, *self._state, self._lowest, of_values, of_squares
        )
        self._begin, self._end = int(begins[-1]), int(ends[-1])
        return {
            Terms.VALUES: ManySums(Terms.VALUES, self._lowest, of_values, flags),
            Terms.PRODUCTS: ManySums(Terms.PRODUCTS, 2 * self._lowest, of_squares, _of_squares(flags, counts)),
        }


class LongSquares:
    """The same of integers of any size, by Python's integers."""

    def __init__(self, elements: NDArray[Any], dtype: DType, op: Op, ddof: int) -> None:
        whole = elements.astype(object)
        self._running = {
            Terms.VALUES: np.concatenate([[0], np.cumsum(whole)]),
            Terms.PRODUCTS: np.concatenate([[0], np.cumsum(whole * whole)]),
        }
        self._terms = terms_of(op)
        self._finish = ValueFinish(op, op.result_dtype(dtype), ddof)
        self._least = op.least_count(ddof)

    def values(self, begins: Index, ends: Index, counts: Index, out: NDArray[Any]) -> NDArray[Any]:
        """The values of windows that `counts` elements enter."""
        out = np.zeros(counts.size, object) if self._finish.result == INTEGER else out
        for at in np.flatnonzero(counts >= max(1, self._least)).tolist():
            begin, end, count = int(begins[at]), int(ends[at]), int(counts[at])
            totals = {terms: running[end] - running[begin] for terms, running in self._running.items()}
            out[at] = self._finish.value(
                [
                    ExactState(terms, int(totals[terms]) << -ORIGIN[terms], count, Flags.NOT_NEGATIVE_ZERO)
                    for terms in self._terms
                ]
            )
        return out


def are_long(elements: NDArray[Any]) -> bool:
    """Whether float64 does not hold some of these integers."""
    return elements.size > 0 and max(-int(elements.min()), int(elements.max())) > _EXACT


def _of_squares(flags: Index, counts: Index) -> Index:
    """The flags of the squares of so many elements with these flags."""
    infinite = flags & int(Flags.POS_INF | Flags.NEG_INF) != 0
    squared: Index = (flags & int(Flags.NAN)) | np.where(infinite, int(Flags.POS_INF), 0)
    return squared | np.where(counts > 0, int(Flags.NOT_NEGATIVE_ZERO), 0)


def _about_center(here: NDArray[np.float64], start: _Start) -> tuple[NDArray[np.float64], _Start]:
    """The elements less a number in their middle, and the sums of these, if the elements lie close together and far
    from 0 and no difference rounds: then few bits of the sums cancel. Else all stay as they are."""
    begin, end, total, squares = start
    low, high = float(here.min(initial=np.inf)), float(here.max(initial=-np.inf))
    with np.errstate(over="ignore"):
        center = float(np.float32((low + high) / 2))
    if not high - low < abs(center) < np.inf:
        return here, start
    moved = here - center
    lost = moved - here  # what a difference rounds away (Knuth 1969)
    if np.any((here - (moved - lost)) - (center + lost)):
        return here, start
    count, units = end - begin, _units(center, Terms.VALUES)
    of_moved = total - count * units, squares - 2 * units * total + count * units**2
    return moved, _Start(begin, end, *of_moved)


def _may_be_certain(most: int, least: int) -> bool:
    """Whether pairs may make values of elements with these magnitudes certain."""
    bound = np.float64(rolling_squares.LARGEST)
    smallest = int(np.float64(1 / bound).view(np.int64))
    return most < int(bound.view(np.int64)) and least >= smallest


def _nearest(units: int, terms: Terms) -> float:
    """The float64 nearest to a sum in the units of states."""
    places = max(0, units.bit_length() - 100)
    return math.ldexp(units / (1 << places), places + ORIGIN[terms])


def _units(value: float, terms: Terms) -> int:
    """A float64 in the units of states."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << -ORIGIN[terms]) // denominator
