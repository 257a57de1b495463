"""Exact sums to many values that share a window of two levels (`kernels.cpu.windows.two_levels`): 16 bytes a value.

Elements whose exponents are within some 50 binades of each other have such a window. They are read once and where they
lie, and parts of one window are merged as integers. All others take digits (`digits`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import frexp, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits
from warpfold.kernels.cpu.grouped.runs import ElementRuns
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

_LIKELY, _APART = -85, 16
"""The unit that is tried first, and how far units are apart: parts of like elements should have one window."""

STEP = 51
"""Binary places between the levels."""

REACH = 101
"""Binary places of a window: every element is a multiple of 2**unit and below 2**(unit + REACH) in magnitude."""

_LEAST, _MOST = -900, 800
"""Bounds of the unit, so that every number in between is a normal float64."""

_TAKEN = (np.dtype(np.float32), np.dtype(np.float64))
_SAMPLE = 1 << 10

_SPREAD = 24
"""Binades between the largest element and one of which the likely window should hold all bits."""


@dataclass(slots=True)
class TwoLevels:
    """An exact sum for each value: (upper[i] · 2**51 + lower[i]) · 2**unit, both int64 of shape (values,), 0 ≤ lower <
    2**51. The magnitudes of `upper` are at most `most`.

    `negative` (shape (values,)) tells of which values all terms are −0; None stands for no value."""

    unit: int
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]
    most: int
    negative: NDArray[np.bool_] | None

    @classmethod
    def of(
        cls, array: NDArray[Any], axes: Sequence[int], *, magnitudes: bool, near: int | None = None
    ) -> "TwoLevels | None":
        """The sums of a float `array` along axes, or those of its magnitudes; None where no window holds all elements,
        and where they are in another byte order than the processor's. The unit `near` is tried first."""
        if array.dtype not in _TAKEN or not array.size:
            return None
        word: np.dtype[Any] = np.dtype(np.int32 if array.itemsize == 4 else np.int64)
        runs = ElementRuns.of(array, axes, word) or ElementRuns.of(np.ascontiguousarray(array), axes, word)
        if runs is None:
            return None
        for unit in _units(array, runs, array.size // runs.values, near):
            if (sums := _added(runs, unit, magnitudes=magnitudes)) is not None:
                upper, lower, most, signed = sums
                negative = None
                if signed and not magnitudes and ((upper | lower) == 0).any():
                    negative = ((array == 0) & np.signbit(array)).all(tuple(axes)).reshape(-1)
                return cls(unit, runs.ordered(upper), runs.ordered(lower), most, negative)
        return None

    @property
    def nbytes(self) -> int:
        """The bytes of all sums."""
        return self.upper.nbytes + self.lower.nbytes

    def most_in(self, unit: int) -> int | None:
        """What no upper sum exceeds in magnitude in the window of a unit; None where its levels cannot have them."""
        shift = self.unit - unit
        return (self.most + 1 << shift) if 0 < shift <= STEP else None if shift else self.most

    def in_unit(self, unit: int, some: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The upper and lower sums of some values in the window of a unit that can have them (`most_in`)."""
        upper, lower, shift = self.upper[some], self.lower[some], self.unit - unit
        if not shift:
            return upper, lower
        return (upper << shift) + (lower >> STEP - shift), lower << shift & (1 << STEP) - 1

    def added(self, other: "TwoLevels", some: slice) -> bool:
        """Add the sums of some neighbouring values to these in place, and return whether the window has room."""
        from warpfold.kernels.cpu.windows import two_levels

        most = other.most_in(self.unit)
        if most is None or self.most + most + 1 >= two_levels.LIMIT:
            return False
        upper, lower = self.upper[some], self.lower[some]
        two_levels.merge_levels(upper, lower, *other.in_unit(self.unit, slice(None)), upper, lower)
        self.most += most + 1
        return True

    def flags(self) -> Index:
        """The flags of all sums."""
        flags = np.full(self.upper.size, int(Flags.NOT_NEGATIVE_ZERO))
        if self.negative is not None:
            flags[self.negative] = 0
        return flags

    def digits(self) -> Digits:
        """The same sums as digits."""
        from warpfold.kernels.cpu.windows import two_levels

        places = self.unit - ORIGIN[Terms.VALUES]
        exponent = ORIGIN[Terms.VALUES] + places // DIGIT_BITS * DIGIT_BITS
        limbs = np.zeros((self.upper.size, REACH // DIGIT_BITS + 4), np.int64)
        two_levels.levels_to_limbs(self.upper, self.lower, self.unit - exponent, limbs)
        return Digits.of_limbs(Terms.VALUES, exponent, np.ascontiguousarray(limbs.T), self.flags())


def window_for(top: int, dtype: DType, count: int, *, tight: bool = False) -> int | None:
    """The unit of a window for values of `count` elements of `dtype` below 2**top in magnitude: the lowest one with
    `tight`, or else one that parts of like elements have in common; None where there is none."""
    least = top + max(-REACH, count.bit_length() - REACH - 10)  # so that upper sums are below 2**61
    if tight:
        unit = least
    elif least <= _LIKELY <= top - dtype.precision - _SPREAD:
        unit = _LIKELY
    else:
        unit = _LIKELY - (_LIKELY - least) // _APART * _APART
    return unit if _LEAST <= unit <= _MOST else None


def _units(array: NDArray[Any], runs: ElementRuns, count: int, near: int | None) -> Iterator[int]:
    """Units of windows that may hold all elements: `near`, the one that a few elements show, the one that all show, and
    the lowest that reaches the largest element."""
    if near is not None:
        yield near
    begin, some = int(runs.starts[0]), min(_SAMPLE, runs.width or runs.length)
    dtype, tried = dtype_of(array.dtype), {near}
    for elements in (runs.flat[begin : begin + some].view(array.dtype), array):
        largest = float(np.max(np.abs(elements)))
        if not isfinite(largest):
            return
        top = frexp(largest)[1]
        for tight in (False, True):
            unit = window_for(top, dtype, count, tight=tight)
            if unit is not None and unit not in tried and not (tight and elements is not array):
                tried.add(unit)
                yield unit


def _added(
    runs: ElementRuns, unit: int, *, magnitudes: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, bool] | None:
    """Both sums of each value in the window of `unit`, what no upper one exceeds, and whether values may be −0; None
    where the window does not hold all elements."""
    from warpfold.kernels.cpu.windows import plain, two_levels

    word = runs.flat.dtype
    double = True if word.itemsize == 8 else None
    keep = word.type(np.iinfo(word).max if magnitudes else -1)
    flat = readable(runs.flat, word)
    space = np.empty(plain.BLOCK_WIDTH, np.uint64), np.empty(plain.BLOCK_WIDTH, np.uint64)
    room = space, None if double else np.empty(plain.BLOCK_WIDTH)
    fresh = runs.places.size * (runs.width or 1) == runs.values
    upper, lower = (np.empty if fresh else np.zeros)((2, runs.values), np.int64)
    ends = upper, lower, fresh
    if not runs.width:
        outcome, most = two_levels.add_level_rows(
            flat, runs.starts, runs.places, runs.length, keep, double, unit, *ends
        )
    elif (together := _together(runs)) == 1:
        sizes = runs.length, runs.stride, runs.width
        outcome, most = two_levels.add_level_columns(
            flat, runs.starts, runs.places, *sizes, keep, double, unit, *ends, *room
        )
    else:
        width, rest = runs.width * together, runs.length % together
        wide, other = np.empty(width, np.int64), np.empty(width, np.int64)
        sizes = runs.length // together, width, width
        outcome, most = two_levels.add_level_columns(
            flat, runs.starts, runs.places, *sizes, keep, double, unit, wide, other, True, *room
        )
        if outcome == two_levels.HELD_NOT or (most + 1) * together >= two_levels.LIMIT:
            return None
        lower[:] = other.reshape(together, -1).sum(axis=0)
        upper[:] = wide.reshape(together, -1).sum(axis=0) + (lower >> STEP)
        lower &= (1 << STEP) - 1
        most = (most + 1) * together
        starts, sizes = runs.starts + (runs.length - rest) * runs.width, (rest, runs.width, runs.width)
        last, more = two_levels.add_level_columns(
            flat, starts, runs.places, *sizes, keep, double, unit, upper, lower, False, *room
        )
        outcome, most = max(outcome, last) if last != two_levels.HELD_NOT else last, most | more
    return None if outcome == two_levels.HELD_NOT else (upper, lower, most, outcome == two_levels.NEGATIVE_ZERO)


def _together(runs: ElementRuns) -> int:
    """How many rows of a narrow block without gaps are read as one: more columns at a time are faster, as long as their
    sums stay in the first-level cache."""
    from warpfold.kernels.cpu.windows.two_levels import NARROW

    if runs.starts.size > 1 or runs.stride != runs.width:
        return 1
    columns = NARROW * runs.flat.itemsize // 8
    return max(1, min(columns // runs.width, runs.length // 8))
