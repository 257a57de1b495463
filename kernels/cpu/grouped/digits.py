"""Exact sums to many values as digits, of which those that are zero for all values are left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.exact import ORIGIN, ExactState
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

DIGIT_BITS = 32
_MASK = (1 << DIGIT_BITS) - 1


@dataclass(frozen=True, slots=True)
class Digits:
    """An exact sum for each value: Σ digits[k, i] · 2**(exponent + 32 k), and the flags of its terms (shape (values,)).

    `digits` (int64, shape (digits, values)) are in 0 … 2**32 − 1 but the last, which has the sign. Digits that are
    zero for all values are left out, so that a value takes tens of bytes and not a thousand.
    """

    terms: Terms
    exponent: int
    digits: NDArray[np.int64]
    flags: Index

    @classmethod
    def of_limbs(cls, terms: Terms, exponent: int, limbs: NDArray[np.int64], flags: Index) -> "Digits":
        """Limbs (shape (limbs, values)) below 2**62 in magnitude, limb k in units of 2**(exponent + 32 k). Spoils
        `limbs`."""
        for place in range(limbs.shape[0] - 1):
            limbs[place + 1] += limbs[place] >> DIGIT_BITS
            limbs[place] &= _MASK
        low, high = 0, limbs.shape[0] - 1
        while low < high and not limbs[low].any():
            low += 1
        # The upper digits of a small negative number only repeat its sign.
        sign = limbs[high] >> 63
        if (limbs[high] == sign).all():
            while high > low and (limbs[high - 1] == (sign & _MASK)).all():
                high -= 1
            limbs[high] = sign
        return cls(terms, exponent + DIGIT_BITS * low, limbs[low : high + 1].copy(), flags)

    @classmethod
    def of_state(cls, state: ExactState) -> "Digits":
        """The digits of a single sum."""
        low = ((state.units & -state.units).bit_length() - 1) // DIGIT_BITS if state.units else 0
        units = state.units >> (DIGIT_BITS * low)
        count = (units if units > 0 else ~units).bit_length() // DIGIT_BITS + 1
        digits = np.frombuffer(units.to_bytes(4 * count, "little", signed=True), "<u4").astype(np.int64)
        digits[-1] = digits[-1] - (1 << DIGIT_BITS) if digits[-1] >> (DIGIT_BITS - 1) else digits[-1]
        exponent = ORIGIN[state.terms] + DIGIT_BITS * low
        return cls(state.terms, exponent, digits.reshape(-1, 1), np.array([int(state.flags)], np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of all digits."""
        return self.digits.nbytes

    @property
    def end(self) -> int:
        """The exponent behind the last digit."""
        return self.exponent + DIGIT_BITS * int(self.digits.shape[0])

    def whole(self, dtype: "np.dtype[Any]") -> NDArray[Any] | None:
        """The sums of integers in `dtype`, which is int64 or uint64; None where a sum may not fit."""
        place, rows = self.exponent // DIGIT_BITS, list(self.digits)
        if self.exponent % DIGIT_BITS or not 0 <= place < 2:
            return None
        while len(rows) > 2 - place:  # the digits above 64 bits may hold nothing but the sign
            sign = rows.pop()
            if not ((sign == 0) | (sign == -1)).all():
                return None
            rows[-1] = rows[-1] + (sign << DIGIT_BITS)
        units = np.zeros(self.digits.shape[1], np.uint64)
        for at, row in enumerate(rows, place):
            units += row.astype(np.uint64) << np.uint64(DIGIT_BITS * at)
        top = rows[-1] if place + len(rows) == 2 else rows[-1] >> DIGIT_BITS
        least, most = (-(1 << 31), (1 << 31) - 1) if dtype.kind == "i" else (0, _MASK)
        if top.size and (int(top.min()) < least or int(top.max()) > most):
            return None
        return units.view(dtype)

    def sums(self, some: slice) -> ManySums:
        """The sums of some values."""
        limbs = np.ascontiguousarray(self.digits[:, some].T)
        return ManySums(self.terms, self.exponent, limbs, self.flags[some])


def _together(parts: Sequence[Digits]) -> tuple[int, int]:
    """The lowest exponent, and how many limbs from that exponent on have room for all parts and the carries."""
    low = min(part.exponent for part in parts)
    return low, (max(part.end for part in parts) - low) // DIGIT_BITS + 1


def sum_of_digits(parts: Sequence[Digits]) -> Digits:
    """The sums of all parts together, of which there are fewer than 2**29."""
    low, width = _together(parts)
    limbs = np.zeros((width, parts[0].digits.shape[1]), np.int64)
    flags = np.zeros(limbs.shape[1], np.int64)
    for part in parts:
        place = (part.exponent - low) // DIGIT_BITS
        limbs[place : place + part.digits.shape[0]] += part.digits
        flags |= part.flags
    return Digits.of_limbs(parts[0].terms, low, limbs, flags)


def digits_beside(parts: Sequence[Digits]) -> Digits:
    """The sums of the values of all parts, one part's after another's."""
    if len(parts) == 1:
        return parts[0]
    low, width = _together(parts)
    limbs = np.zeros((width, sum(part.digits.shape[1] for part in parts)), np.int64)
    start = 0
    for part in parts:
        place, stop = (part.exponent - low) // DIGIT_BITS, start + part.digits.shape[1]
        limbs[place : place + part.digits.shape[0], start:stop] = part.digits
        start = stop
    return Digits.of_limbs(parts[0].terms, low, limbs, np.concatenate([part.flags for part in parts]))
