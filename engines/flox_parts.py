"""Partial results of groups within flox: one Python integer a value and a group, which addition merges.

It has the units of an exact state (docs/exact-state.md), and below them fields of 64 bits: the count of elements, how
many blocks have elements, the sum of the numbers of their dtypes, and for each flag how many blocks have it. What a
block lacks is 0. Integers are made from digits, and read into them, as bytes: that takes a third of a microsecond each.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import HEADER
from warpfold.kernels.ops import Terms

_FIELD, _MASK = 64, (1 << 64) - 1
"""Bits of a field below the units. No field overflows, because none counts more than the elements or 16 a block."""

_FLAGS = tuple(int(flag) for flag in Flags)
_COUNT, _BLOCKS, _DTYPES, _FIRST_FLAG = 0, 1, 2, 3
_FIELDS = _FIRST_FLAG + len(_FLAGS)
_UNITS = _FIELD * _FIELDS
_NAMES = tuple(DTYPES)

_FLAGS_AT, _COUNT_AT, _FIRST_AT, _DIGITS_AT = 6, 8, 16, 18
"""Where the header of a state has its flags, its count, and the place and the number of its digits."""


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


def packed_states(states: StateColumn, dtype: DType) -> list[int]:
    """The parts of states of elements of `dtype`."""
    begins = states.offsets[:-1]
    heads = states.data[begins[:, None] + np.arange(HEADER.size)]
    counts = np.ascontiguousarray(heads[:, _COUNT_AT : _COUNT_AT + 8]).view("<u8").ravel().tolist()
    places, sizes = (
        np.ascontiguousarray(heads[:, at : at + 2]).view("<u2").ravel().tolist() for at in (_FIRST_AT, _DIGITS_AT)
    )
    data, fields = states.data.tobytes(), _fields_of(dtype)
    each = zip((begins + HEADER.size).tolist(), counts, heads[:, _FLAGS_AT].tolist(), places, sizes, strict=True)
    return [
        (int.from_bytes(data[at : at + 4 * size], "little", signed=True) << (_UNITS + DIGIT_BITS * place))
        + fields(count, flags)
        if count
        else 0
        for at, count, flags, place, size in each
    ]


def _fields_of(dtype: DType) -> Any:
    """The fields of a part of elements of `dtype`, by its count and its flags."""
    number = _NAMES.index(dtype.name)

    @cache
    def fields(count: int, flags: int) -> int:
        low = count << _FIELD * _COUNT | 1 << _FIELD * _BLOCKS | number << _FIELD * _DTYPES
        for place, flag in enumerate(_FLAGS, _FIRST_FLAG):
            if flags & flag:
                low |= 1 << _FIELD * place
        return low

    return fields


def count_of(part: int) -> int:
    """How many elements a part is of."""
    return part & _MASK


def dtype_of_elements(part: int) -> DType:
    """The dtype of the elements of a part that is not 0."""
    return DTYPES[_NAMES[(part >> _FIELD * _DTYPES & _MASK) // (part >> _FIELD * _BLOCKS & _MASK)]]


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
