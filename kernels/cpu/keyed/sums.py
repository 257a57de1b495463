"""Exact sums of a column of floats by group. `windows.keyed` says how floats are added."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.aggregates.patterns import readable, widened
from warpfold.kernels.cpu.keyed.outside import OutsideSums
from warpfold.kernels.cpu.states import ManySums, states_by_parts
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import DIGIT_BITS
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

Numbers = NDArray[np.int32]

_MOST_LEVELS = 4
_FEW = 64
"""Elements outside of the levels go to limbs where they are fewer than one in so many."""

_FEW_GROUPS = 512
"""Groups whose sums of a block of elements stay in the first-level cache."""

_EACH = 16
"""Elements a group from which gathering them apart is worth its end."""

_LOWEST, _HIGHEST = -1074, 1010
"""Anchors are float64 numbers: levels lie above 2**_LOWEST, and elements below 2**_HIGHEST."""

_DEPOSITED = 4
"""Limbs that an int64 reaches, and one for carries."""


@dataclass
class LevelOrigin:
    """The places of the levels of a column: 2**(base + PLACES · k) for some k. The first thread that has an element
    other than 0 decides the base."""

    base: int | None = None
    lock: Lock = field(default_factory=Lock)

    def decided(self, wanted: int) -> int:
        """The base. It becomes `wanted` if no thread has decided it yet."""
        with self.lock:
            self.base = wanted if self.base is None else self.base
            return self.base


class KeyedFloatSums:
    """Sums of the elements of a float column, of their magnitudes or their squares, with the number of elements."""

    def __init__(self, dtype: DType, terms: Terms, place: LevelOrigin, *, magnitudes: bool) -> None:
        from warpfold.kernels.cpu.windows import keyed, levels, vectors

        self.terms = terms
        self._keyed = keyed
        self._copies = vectors.COPIES
        self._anchor_at = levels.anchor_at
        self._apart: int = keyed.PLACES
        self._dtype = dtype
        self._place = place
        self._magnitudes = magnitudes
        self._squares = terms is Terms.PRODUCTS
        self._times = 2 if self._squares else 1
        self._fraction, self._bias = (52, 1023) if dtype.itemsize == 8 else (23, 127)
        self._infinity = (2 * self._bias + 1) << self._fraction
        self._decided = False
        self._unit, self._levels = 0, 2
        self._anchors = self._anchors_at(self._unit, self._levels)
        self._table: Index = np.zeros((0, 0, 0), np.int64)
        self._state = np.zeros((1 << 8, 4), np.int64)
        self._negative_zeros: Index = np.zeros(0, np.int64)
        self._rest = OutsideSums(terms)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        self._state = grown(self._state, groups + 1)
        counts: Index = self._state[1 : groups + 1, -1]
        return counts

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Add the elements of `array`, shape (n,), to the groups `ids`, of which there are `groups`."""
        self._state = grown(self._state, groups + 1)
        x = widened(array, self._dtype)
        x = np.abs(x) if self._magnitudes else x
        words = readable(x, np.dtype(f"int{8 * x.itemsize}"))
        done = self._add_held(words, words.view(x.dtype), ids, groups)
        if done == x.size:
            return
        x, words, ids = x[done:], words[done:], ids[done:]
        most, least, negative_zeros = self._keyed.extent(words)
        if negative_zeros and not self._squares:
            self._negative_zeros = grown(self._negative_zeros, self._state.shape[0])
            self._keyed.count_negative_zeros(words, ids, self._negative_zeros)
        if most and not self._decided and most < self._infinity:
            self._widen(*self._exponents(least + 1, most))
        if most and not (self._decided and self._hold(least + 1, most)):
            x = self._inside(x, words, ids, array.size)
        if not self._squares:
            self._add(x, ids, groups, 1)
        elif x.itemsize < 8:
            wide = x.astype(np.float64)
            self._add(wide * wide, ids, groups, 1)  # exact: a float32 has 24 bits
        else:
            squares, errors = np.empty_like(x), np.empty_like(x)
            self._keyed.split_squares(readable(x, x.dtype), squares, errors)
            self._add(squares, ids, groups, 1)
            self._add(errors, ids, groups, 0)

    def _add(self, elements: NDArray[Any], ids: Numbers, groups: int, weight: int) -> None:
        """Add elements that the levels hold. Each element counts `weight`."""
        elements, done = readable(elements, elements.dtype), 0
        if self._are_few(elements.size, groups):
            words = readable(elements, np.dtype(f"int{8 * elements.itemsize}"))
            done = self._add_few(elements, words, (0, 0, True), ids, groups, weight)
        if done < elements.size:
            add = self._keyed.add_two if self._levels == 2 else self._keyed.add_four
            add(elements[done:], ids[done:], self._state, self._anchors, weight)

    def _add_few(  # noqa: PLR0917
        self, elements: NDArray[Any], words: NDArray[Any], held: tuple[int, int, bool], ids: Numbers, groups: int,
        weight: int,
    ) -> int:  # fmt: skip
        anchors = self._keyed.lowered(self._anchors)
        done: int = self._keyed.add_few(
            elements, words, held, ids, self._state, anchors, weight, self._table_of(groups)
        )
        return done

    def _add_held(self, words: NDArray[Any], elements: NDArray[Any], ids: Numbers, groups: int) -> int:
        """Add elements, whose patterns are `words`, up to a block that the levels do not hold, if the groups are few;
        returns how many were added."""
        if not self._decided or self._squares or not self._are_few(words.size, groups):
            return 0
        return self._add_few(elements, words, (*self._patterns(), False), ids, groups, 1)

    @staticmethod
    def _are_few(elements: int, groups: int) -> bool:
        return groups <= _FEW_GROUPS and elements >= _EACH * groups

    def _table_of(self, groups: int) -> Index:
        """A table of zeros, as `windows.keyed` gathers few groups in; it leaves zeros there."""
        if self._table.shape[0] <= groups or self._table.shape[2] != self._levels:
            self._table = np.zeros((groups + 1, self._copies, self._levels), np.int64)
        return self._table

    def _patterns(self) -> tuple[int, int]:
        """The least magnitude's pattern that the levels hold, and the first above them."""
        unit, top = -(-self._unit // self._times), (self._unit + self._apart * self._levels) // self._times
        least = unit + self._bias + self._fraction
        most = min(max(top + self._bias, 1) << self._fraction, self._infinity)
        return (least << self._fraction if least > 1 else 1), most

    def _hold(self, least: int, most: int) -> bool:
        """Whether the levels hold elements whose magnitudes' patterns are from `least` to `most`."""
        first, end = self._patterns()
        return first <= least and most < end

    def _inside(self, x: NDArray[Any], words: NDArray[Any], ids: Numbers, rows: int) -> NDArray[Any]:
        """`x` with 0 for every element outside of the levels, which is added to limbs. Where too many elements of a
        part of so many rows are outside, the levels are placed first, or levels are added."""
        outside = self._outside(words)
        if not self._decided or (self._levels < _MOST_LEVELS and outside.size * _FEW > rows):
            magnitudes = words & np.iinfo(words.dtype).max
            finite = magnitudes[(magnitudes > 0) & (magnitudes < self._infinity)]
            if finite.size:
                self._widen(*self._exponents(int(finite.min()), int(finite.max())))
                outside = self._outside(words)
        if not outside.size:
            return x
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            self._rest.add(x[outside].astype(np.float64), ids[outside], self._state.shape[0])
        kept = x.copy()
        kept[outside] = 0
        return kept

    def _outside(self, words: NDArray[Any]) -> NDArray[np.int32]:
        positions = np.empty(words.size + 1, np.int32)
        return positions[: self._keyed.outside(words, *self._patterns(), positions)]

    def _exponents(self, least: int, most: int) -> tuple[int, int]:
        """Elements whose magnitudes' patterns are from `least` to `most`, or their squares, are multiples of 2**(the
        first) and less than 2**(the second)."""
        low, high = max(1, least >> self._fraction), max(1, most >> self._fraction)
        return self._times * (low - self._bias - self._fraction), self._times * (high - self._bias + 1)

    def _widen(self, lowest: int, highest: int) -> None:
        """Place the levels so that they hold 2**lowest … 2**highest, or the upper part of that range. Levels in use
        stay."""
        span, step = highest - lowest, self._apart
        if not self._decided:
            room = (2 if span <= 2 * step else _MOST_LEVELS) * step - span
            base = self._place.decided(lowest - room // 2 if room > 0 else highest - _MOST_LEVELS * step)
            low, high = (lowest - base) // step, -((base - highest) // step)
            first = low if high - low <= _MOST_LEVELS else high - _MOST_LEVELS
            levels = 2 if high - first <= 2 else _MOST_LEVELS
            while base + step * first < _LOWEST:
                first += 1
            while base + step * (first + levels) > _HIGHEST:
                first -= 1
            self._respace(base + step * first, levels)
            self._decided = True
        elif self._levels < _MOST_LEVELS:
            above = min(max(0, -((self._unit + 2 * step - highest) // step)), 2)
            while self._unit + step * (2 + above) > _HIGHEST:
                above -= 1
            below = 2 - above
            while self._unit - step * below < _LOWEST:
                below -= 1
            self._respace(self._unit - step * below, _MOST_LEVELS)

    def _respace(self, unit: int, levels: int) -> None:
        """Change to `levels` levels from `unit` on, which include all present levels."""
        if (unit, levels) == (self._unit, self._levels):
            return
        state = np.zeros((self._state.shape[0], levels + 2), np.int64)
        state[:, -1] = self._state[:, -1]
        if self._decided:
            first = (self._unit - unit) // self._apart
            state[:, first : first + self._levels + 1] = self._state[:, :-1]
        self._state, self._unit, self._levels = state, unit, levels
        self._anchors = self._anchors_at(unit, levels)

    def _anchors_at(self, unit: int, levels: int) -> NDArray[np.float64]:
        return np.array([self._anchor_at(unit + self._apart * level) for level in range(levels)])

    def merge(self, other: "KeyedFloatSums", ids: Numbers, groups: int) -> None:
        """Add the sums of `other`, whose group g is ids[g] here."""
        self._state = grown(self._state, groups + 1)
        count = min(ids.size, other._state.shape[0])
        ids = ids[:count]
        if other._decided:
            unit = min(self._unit, other._unit) if self._decided else other._unit
            ends = [sums._unit + self._apart * sums._levels for sums in (self, other) if sums._decided]
            levels = (max(ends) - unit) // self._apart
            self._respace(unit, levels)
            other._respace(unit, levels)
            self._decided = True
            self._keyed.merge_groups(other._state, ids, self._state)
        else:
            self._state[ids, -1] += other._state[:count, -1]
        size = self._state.shape[0]
        if other._negative_zeros.size:
            theirs = other._negative_zeros[:count]
            self._negative_zeros = grown(self._negative_zeros, size)
            self._negative_zeros[ids[: theirs.size]] += theirs
        self._rest.merge(other._rest, ids, size)

    def sums(self, some: slice) -> ManySums:
        """The sums of the groups at some neighbouring places; group 1 is at place 0."""
        state, rest = grown(self._state, some.stop + 1), self._rest
        origin, place = ORIGIN[self.terms], self._unit - ORIGIN[self.terms]
        first, end = place // DIGIT_BITS, (place + self._apart * self._levels) // DIGIT_BITS + _DEPOSITED
        limbs, added = rest.limbs.limbs, rest.limbs.first
        if limbs.size:
            first, end = min(first, added), max(end, added + limbs.shape[1]) + 1
        sums = np.empty((some.stop - some.start, end - first), np.int64)
        flags = np.empty(sums.shape[0], np.int64)
        self._keyed.group_limbs(
            state, self._levels, self._unit, self._negative_zeros, rest.flags, rest.slots, limbs, added - first,
            some.start + 1, origin + DIGIT_BITS * first, sums, flags,
        )  # fmt: skip
        return ManySums(self.terms, origin + DIGIT_BITS * first, sums, flags)

    def states(self, groups: int) -> StateColumn:
        """The exact states of groups 1 … `groups`."""
        return states_by_parts(self.sums, self.counts(groups))
