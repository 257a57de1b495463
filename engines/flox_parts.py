"""Partial results of groups within flox: one Python integer a value and a group, which addition merges.

It has the units of an exact state (docs/exact-state.md), and below them fields of 64 bits: the count of elements, how
many blocks have elements, the sum of the numbers of their dtypes, and for each flag how many blocks have it. What a
block lacks is 0. Integers are made from digits, and read into them, as bytes: that takes a third of a microsecond each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Terms

_FIELD, _MASK = 64, (1 << 64) - 1
"""Bits of a field below the units. No field overflows, because none counts more than the elements or 16 a block."""

_FLAGS = tuple(int(flag) for flag in Flags)
_COUNT, _BLOCKS, _DTYPES, _FIRST_FLAG = 0, 1, 2, 3
_FIELDS = _FIRST_FLAG + len(_FLAGS)
_UNITS = _FIELD * _FIELDS
TIMES = replace(DTYPES["int64"], name="times")
"""The dtype of durations and instants, whose integers are added; with a NaT among them a sum has the flag NAN."""

NUMBERED = (*DTYPES.values(), TIMES)
"""The dtypes of elements by their numbers."""

_NUMBERS = {dtype.name: number for number, dtype in enumerate(NUMBERED)}


def packed(digits: Digits, counts: Sequence[int], dtype: DType) -> list[int]:
    """The parts of sums of `counts` elements of `dtype`."""
    lower, last = digits.digits[:-1], digits.digits[-1]
    words = np.empty((last.size, len(lower) + 2), "<u4")
    words[:, : len(lower)] = lower.T
    words[:, len(lower) :] = last.astype("<i8").view("<u4").reshape(-1, 2)
    size, data = words.shape[1] * 4, words.tobytes()
    shift, fields = digits.exponent - ORIGIN[digits.terms] + _UNITS, _fields_of(dtype)
    return [
        (int.from_bytes(data[at : at + size], "little", signed=True) << shift) + fields(count, flags) if count else 0
        for at, count, flags in zip(range(0, len(data), size), counts, digits.flags.tolist(), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class StateWords:
    """Many states of sums of values, whose bytes are `words` of 32 bits. State i has sizes[i] digits, from
    words[begins[i]] on, and the first is at place places[i]."""

    words: NDArray[np.uint32]
    begins: NDArray[np.int64]
    counts: NDArray[np.int64]
    flags: NDArray[np.uint8]
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, states: StateColumn) -> "StateWords":
        """Those of a column (docs/exact-state.md has the bytes)."""
        words, begins = states.data.view("<u4"), states.offsets[:-1]
        second, low, high, fourth = (words[begins // 4 + at].astype(np.int64) for at in (1, 2, 3, 4))
        flags = (second >> 16 & 0xFF).astype(np.uint8)
        return cls(words, begins // 4 + 6, high << 32 | low, flags, fourth & 0xFFFF, fourth >> 16)

    @property
    def exponent(self) -> int:
        """That of the lowest digit of all."""
        some = self.places[self.sizes > 0]
        return ORIGIN[Terms.VALUES] + DIGIT_BITS * (int(some.min()) if some.size else 0)

    def limbs(self, most: int) -> NDArray[np.int64] | None:
        """The digits of all from `exponent` on, shape (digits, states), of which the last of a state has its sign; None
        where there are more than `most`."""
        some = np.flatnonzero(self.sizes)
        if not some.size:
            return np.zeros((1, self.sizes.size), np.int64)
        places, sizes = self.places[some], self.sizes[some]
        first = int(places.min())
        width = int((places + sizes).max()) - first
        if width > most:
            return None
        limbs = np.zeros((width, self.sizes.size), np.int64)
        for at in range(int(sizes.max())):
            has = some[sizes > at]
            limbs[self.places[has] - first + at, has] = self.words[self.begins[has] + at]
        last = self.places[some] - first + sizes - 1
        limbs[last, some] = limbs[last, some].astype(np.int32)
        return limbs


def packed_states(states: StateColumn, dtype: DType) -> list[int]:
    """The parts of states of elements of `dtype`."""
    words, fields = StateWords.of(states), _fields_of(dtype)
    data = states.data.tobytes()
    columns = (words.begins, words.counts.view(np.uint64), words.flags, words.places, words.sizes)
    return [
        (int.from_bytes(data[4 * at : 4 * (at + size)], "little", signed=True) << (_UNITS + DIGIT_BITS * place))
        + fields(count, flags)
        if count
        else 0
        for at, count, flags, place, size in zip(*(column.tolist() for column in columns), strict=True)
    ]


def part_of(units: int, count: int, flags: int, number: int) -> int:
    """The part of a sum of `count` elements of the dtype NUMBERED[number]: so many `units` of a state, and `flags`."""
    return (units << _UNITS) + _fields(number, count, flags) if count else 0


def _fields_of(dtype: DType) -> Any:
    """The fields of a part of elements of `dtype`, by its count and its flags."""
    number = number_of(dtype)

    @cache
    def fields(count: int, flags: int) -> int:
        return _fields(number, count, flags)

    return fields


def _fields(number: int, count: int, flags: int) -> int:
    low = count << _FIELD * _COUNT | 1 << _FIELD * _BLOCKS | number << _FIELD * _DTYPES
    for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
        if flags & flag:
            low |= 1 << _FIELD * place
    return low


def number_of(dtype: DType) -> int:
    """The place of a dtype in NUMBERED."""
    return _NUMBERS[dtype.name]


def with_nan(part: int) -> int:
    """A part of some block, with the flag NAN."""
    return part | 1 << _FIELD * (_FIRST_FLAG + _FLAGS.index(int(Flags.NAN)))


def count_of(part: int) -> int:
    """How many elements a part is of."""
    return part & _MASK


def dtype_of_elements(part: int) -> DType:
    """The dtype of the elements of a part that is not 0."""
    return NUMBERED[(part >> _FIELD * _DTYPES & _MASK) // (part >> _FIELD * _BLOCKS & _MASK)]


def state(part: int, terms: Terms) -> ExactState:
    """What a part that is not 0 stands for."""
    flags = 0
    for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
        if part >> _FIELD * place & _MASK:
            flags |= flag
    return ExactState(terms, part >> _UNITS, count_of(part), Flags(flags))


def rounded(parts: Sequence[int], terms: Terms, dtype: DType, none: float, *, mean: bool) -> NDArray[np.float64] | None:
    """The sums or means of parts, each rounded once to the float `dtype`, and `none` where a part has no elements; None
    where counts are too large."""
    from warpfold.kernels.cpu.windows import nearest

    head = 8 * _FIELDS
    bits = max(map(int.bit_length, parts), default=0)
    size = head + 4 * (max(0, bits - _UNITS) // DIGIT_BITS + 1)
    data = np.frombuffer(b"".join([part.to_bytes(size, "little", signed=True) for part in parts]), np.uint8)
    table = data.reshape(len(parts), size)
    fields = np.ascontiguousarray(table[:, :head]).view("<u8")
    counts = fields[:, _COUNT]
    if counts.size and int(counts.max()) > nearest.MOST_DIVISOR:
        return None
    flags = np.zeros(len(parts), np.int64)
    for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
        flags[fields[:, place] != 0] |= flag
    words = np.ascontiguousarray(table[:, head:]).view("<u4")
    used = np.flatnonzero(words.any(axis=0))
    first = int(used[0]) if used.size else 0
    limbs = words[:, first:].astype(np.int64)
    limbs[:, -1] = limbs[:, -1].astype(np.int32)  # the last digit has the sign
    values = np.full(len(parts), none, np.float64)
    divisors = counts.astype(np.int64) if mean else np.minimum(counts, 1).astype(np.int64)
    form = dtype.precision, dtype.min_exponent, dtype.max_exponent
    left = np.zeros(len(parts), np.bool_)  # which stays false with such counts
    nearest.round_sums(limbs, ORIGIN[terms] + DIGIT_BITS * first, flags, divisors, form, values, left)
    return values
