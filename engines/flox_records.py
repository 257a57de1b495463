"""Partial results of groups within flox as records of 32 bytes, for sums of values whose exponents are not far apart.

A record is an exact sum in two levels, (upper · 2**51 + lower) · 2**(unit − 85) with 0 ≤ lower < 2**51, with the count
of its elements, their flags, and the number of their dtype. A record of zeros is the sum of no elements. NumPy makes,
merges and rounds many records at a time. A sum that no record holds is a Python integer (`flox_parts`).
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.engines.flox_parts import StateWords, number_of
from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits
from warpfold.kernels.cpu.grouped.together import Levels, in_levels
from warpfold.kernels.cpu.grouped.two_levels import STEP, TwoLevels
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact.column import StateColumn

RECORD = np.dtype(
    [("upper", "<i8"), ("lower", "<i8"), ("count", "<i8"), ("unit", "<i2"), ("flags", "u1"), ("dtype", "u1")],
    align=True,
)

CARRIED = np.dtype(f"V{RECORD.itemsize}")
"""Records as flox gets them: NumPy copies plain bytes several times as fast as fields."""

NOTHING: Any = np.zeros((), CARRIED)[()]
"""The sum of no elements, as flox gets it."""

_LOW = (1 << STEP) - 1
"""The bits of a lower level."""

LIMIT_BITS = 61
"""The magnitude of an upper level has so many bits at most."""

_MOST_MERGED = 1 << 10
"""So many records are merged at a time: the sum of their lower levels is below 2**62."""

LIKELY_UNIT, _APART = -85, 16
"""The exponent of the unit that is tried first, as for chunks of Dask, and how far those of other units are apart."""

_LEAST, _MOST = -900, 800
"""Bounds of these exponents: every number that rounding a sum makes on the way is then a normal float64."""

INTEGER_UNIT = -18
"""The exponent of the unit of sums of integers: a digit of a state begins there, and that digit holds 1."""

_MOST_LIMBS = 5
"""More digits than these never fit in two levels."""

Records = NDArray[Any]
"""An array of RECORD."""

Words = NDArray[np.int64]
Sums = tuple[int, Words, Words]
"""The exponent of the unit of many sums, and their upper and lower levels."""


def put(made: Records, sums: Digits | Levels, counts: Any, dtype: DType) -> bool:
    """Write sums of `counts` elements of `dtype` to as many records; False where these do not hold the sums."""
    if isinstance(sums, Digits):
        levels, flags = _of_limbs(sums.digits, sums.exponent, dtype), sums.flags
    else:
        two = sums if isinstance(sums, TwoLevels) else in_levels([sums])
        if two is None:
            return False
        levels, flags = (two.unit, two.upper, two.lower), two.flags()
    return _write(made, levels, np.asarray(counts), flags, dtype)


def put_states(made: Records, states: StateColumn, dtype: DType) -> bool:
    """Write `states`, which are sums of values, to as many records; False where these do not hold the sums."""
    words = StateWords.of(states)
    limbs = words.limbs(_MOST_LIMBS)
    return limbs is not None and _write(made, _of_limbs(limbs, words.exponent, dtype), words.counts, words.flags, dtype)


def _of_limbs(limbs: Words, exponent: int, dtype: DType) -> Sums | None:
    """The sums Σ limbs[k] · 2**(exponent + 32 k), of elements of `dtype`, in two levels."""
    lowest = LIKELY_UNIT + (exponent - LIKELY_UNIT) // _APART * _APART
    for unit in (LIKELY_UNIT, lowest) if dtype.is_float else (INTEGER_UNIT,):
        if _LEAST <= unit <= min(exponent, _MOST) and (levels := _levels(limbs, exponent - unit)) is not None:
            return unit, *levels
    return None


def _levels(limbs: Words, place: int) -> tuple[Words, Words] | None:
    """Σ limbs[k] · 2**(place + 32 k) in two levels; None where an upper sum is too large."""
    upper, lower = np.zeros((2, limbs.shape[1]), np.int64)
    for at, limb in enumerate(limbs):
        begins = place + DIGIT_BITS * at
        if begins < STEP:
            below = STEP - begins
            lower += (limb & ((1 << below) - 1)) << begins
            upper += limb >> below
        elif limb.any():
            if _bits(limb) + begins - STEP >= LIMIT_BITS - 1:
                return None
            upper += limb << (begins - STEP)
    return upper + (lower >> STEP), lower & _LOW


def _bits(words: Words) -> int:
    """The bits of the largest magnitude among `words`."""
    return max(int(words.max()), -int(words.min())).bit_length() if words.size else 0


def _write(made: Records, sums: Sums | None, counts: NDArray[Any], flags: NDArray[Any], dtype: DType) -> bool:
    if sums is None or _bits(sums[1]) > LIMIT_BITS:
        return False
    unit, made["upper"], made["lower"] = sums
    made["unit"] = unit - LIKELY_UNIT
    made["count"], made["flags"], made["dtype"] = counts, flags, number_of(dtype)
    if (counts == 0).any():
        made[np.broadcast_to(counts == 0, made.shape)] = np.zeros((), RECORD)
    return True


def merged(records: Records, axis: int | Sequence[int], *, keepdims: bool) -> Records | None:
    """The records merged along axes; None where these do not hold the sums."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    together = prod(records.shape[at] for at in axes)
    if together == 1:
        return records if keepdims else records.squeeze(axes)
    aligned = in_one_unit(records)
    if aligned is None or together > _MOST_MERGED or _bits(aligned[1]) + together.bit_length() > LIMIT_BITS:
        return None
    unit, upper, lower = aligned
    counts = records["count"].sum(axes, keepdims=keepdims)
    made = np.zeros(counts.shape, RECORD)
    lower = lower.sum(axes, keepdims=keepdims)
    made["unit"], made["count"], made["lower"] = unit - LIKELY_UNIT, counts, lower & _LOW
    made["upper"] = upper.sum(axes, keepdims=keepdims) + (lower >> STEP)
    either: Any = np.bitwise_or  # its stub wants `keepdims` to be known
    made["flags"] = either.reduce(records["flags"], axis=axes, keepdims=keepdims)
    made["dtype"] = records["dtype"].max(axes, keepdims=keepdims)
    return made


def merged_groups(numbers: NDArray[np.intp], records: Records, size: int) -> Records | None:
    """The records of each of `size` groups merged along the last axis, of which element i belongs to group
    numbers[i]; None where these do not hold the sums."""
    aligned, most = in_one_unit(records), int(np.bincount(numbers, minlength=1).max())
    if aligned is None or most > _MOST_MERGED or _bits(aligned[1]) + most.bit_length() > LIMIT_BITS:
        return None
    unit, upper, lower = aligned
    made: Records = np.zeros((*records.shape[:-1], size), RECORD)
    where: Any = (..., numbers)
    np.add.at(made["upper"], where, upper)
    np.add.at(made["lower"], where, lower)
    np.add.at(made["count"], where, records["count"])
    np.bitwise_or.at(made["flags"], where, records["flags"])
    np.maximum.at(made["dtype"], where, records["dtype"])
    made["upper"] += made["lower"] >> STEP
    made["lower"] &= _LOW
    made["unit"] = unit - LIKELY_UNIT
    return made


def in_one_unit(records: Records) -> Sums | None:
    """The levels of all sums in the lowest of their units; None where an upper level would be too large."""
    upper, lower, units = records["upper"], records["lower"], records["unit"]
    if not units.any():
        return LIKELY_UNIT, upper, lower
    some = (upper | lower) != 0
    unit = int(units[some].min()) if some.any() else 0
    if (units[some] == unit).all():
        return unit + LIKELY_UNIT, upper, lower
    apart = np.where(some, units.astype(np.int64) - unit, 0)
    if int(apart.max()) > STEP or (np.abs(upper) >> (LIMIT_BITS - np.minimum(apart, LIMIT_BITS))).any():
        return None
    carried = lower >> (STEP - apart)
    return unit + LIKELY_UNIT, (upper << apart) + carried, (lower & ((1 << (STEP - apart)) - 1)) << apart
