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

from warpfold.engines.flox_parts import NAMES, StateWords, part_of
from warpfold.kernels.cpu.grouped.digits import DIGIT_BITS, Digits
from warpfold.kernels.cpu.grouped.together import Levels, in_levels
from warpfold.kernels.cpu.grouped.two_levels import STEP, TwoLevels
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Terms

RECORD = np.dtype(
    [("upper", "<i8"), ("lower", "<i8"), ("count", "<i8"), ("unit", "<i2"), ("flags", "u1"), ("dtype", "u1")],
    align=True,
)

CARRIED = np.dtype(f"V{RECORD.itemsize}")
"""Records as flox gets them: NumPy copies plain bytes several times as fast as fields."""

NOTHING: Any = np.zeros((), CARRIED)[()]
"""The sum of no elements, as flox gets it."""

_LOW = (1 << STEP) - 1
_LIMIT_BITS = 61
"""Upper sums are below 2 to the power of this in magnitude."""

_MOST_MERGED = 1 << 10
"""So many records are merged at a time: the sum of their lower levels is below 2**62."""

_LIKELY, _APART = -85, 16
"""The unit that is tried first, as for chunks of Dask, and how far other units are apart."""

_LEAST, _MOST = -900, 800
"""Bounds of units, so that every number in between is a normal float64 when a sum is rounded."""

_OF_INTEGERS = -18
"""The unit of integers: the digit of a state that 1 is in begins there."""

_MOST_LIMBS = 5
_FEW_COUNTS = 16
"""Means of so few different counts are rounded count by count, without digits."""

Records = NDArray[Any]
"""An array of RECORD."""

Words = NDArray[np.int64]
Sums = tuple[int, Words, Words]
"""The unit of sums of one window, and their levels."""


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
    """The same for states of sums of values."""
    words = StateWords.of(states)
    limbs = words.limbs(_MOST_LIMBS)
    return limbs is not None and _write(made, _of_limbs(limbs, words.exponent, dtype), words.counts, words.flags, dtype)


def _of_limbs(limbs: Words, exponent: int, dtype: DType) -> Sums | None:
    """The sums Σ limbs[k] · 2**(exponent + 32 k), of elements of `dtype`, in two levels."""
    lowest = _LIKELY + (exponent - _LIKELY) // _APART * _APART
    for unit in (_LIKELY, lowest) if dtype.is_float else (_OF_INTEGERS,):
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
            if _bits(limb) + begins - STEP >= _LIMIT_BITS - 1:
                return None
            upper += limb << (begins - STEP)
    return upper + (lower >> STEP), lower & _LOW


def _bits(words: Words) -> int:
    """So many bits have the magnitudes of these words at most."""
    return max(int(words.max()), -int(words.min())).bit_length() if words.size else 0


def _write(made: Records, sums: Sums | None, counts: NDArray[Any], flags: NDArray[Any], dtype: DType) -> bool:
    if sums is None or _bits(sums[1]) > _LIMIT_BITS:
        return False
    unit, made["upper"], made["lower"] = sums
    made["unit"] = unit - _LIKELY
    made["count"], made["flags"], made["dtype"] = counts, flags, NAMES.index(dtype.name)
    if (counts == 0).any():
        made[np.broadcast_to(counts == 0, made.shape)] = np.zeros((), RECORD)
    return True


def merged(records: Records, axis: int | Sequence[int], *, keepdims: bool) -> Records | None:
    """The records merged along axes; None where these do not hold the sums."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    together = prod(records.shape[at] for at in axes)
    if together == 1:
        return records if keepdims else records.squeeze(axes)
    aligned = _aligned(records)
    if aligned is None or together > _MOST_MERGED or _bits(aligned[1]) + together.bit_length() > _LIMIT_BITS:
        return None
    unit, upper, lower = aligned
    counts = records["count"].sum(axes, keepdims=keepdims)
    made = np.zeros(counts.shape, RECORD)
    lower = lower.sum(axes, keepdims=keepdims)
    made["unit"], made["count"], made["lower"] = unit - _LIKELY, counts, lower & _LOW
    made["upper"] = upper.sum(axes, keepdims=keepdims) + (lower >> STEP)
    either: Any = np.bitwise_or  # its stub wants `keepdims` to be known
    made["flags"] = either.reduce(records["flags"], axis=axes, keepdims=keepdims)
    made["dtype"] = records["dtype"].max(axes, keepdims=keepdims)
    return made


def merged_groups(numbers: NDArray[np.intp], records: Records, size: int) -> Records | None:
    """The records of each of `size` groups merged along the last axis, of which element i belongs to group
    numbers[i]; None where these do not hold the sums."""
    aligned, most = _aligned(records), int(np.bincount(numbers, minlength=1).max())
    if aligned is None or most > _MOST_MERGED or _bits(aligned[1]) + most.bit_length() > _LIMIT_BITS:
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
    made["unit"] = unit - _LIKELY
    return made


def _aligned(records: Records) -> Sums | None:
    """The levels of all sums in the window of the lowest unit; None where it does not hold them."""
    upper, lower, units = records["upper"], records["lower"], records["unit"]
    if not units.any():
        return _LIKELY, upper, lower
    some = (upper | lower) != 0
    unit = int(units[some].min()) if some.any() else 0
    if (units[some] == unit).all():
        return unit + _LIKELY, upper, lower
    apart = np.where(some, units.astype(np.int64) - unit, 0)
    if int(apart.max()) > STEP or (np.abs(upper) >> (_LIMIT_BITS - np.minimum(apart, _LIMIT_BITS))).any():
        return None
    carried = lower >> (STEP - apart)
    return unit + _LIKELY, (upper << apart) + carried, (lower & ((1 << (STEP - apart)) - 1)) << apart


def dtype_of_records(records: Records) -> DType | None:
    """The dtype of the elements; None where there are none."""
    return DTYPES[NAMES[int(records["dtype"].max())]] if records["count"].any() else None


def rounded(records: Records, dtype: DType, none: float, *, mean: bool) -> NDArray[Any] | None:
    """The sums or the means of records, each rounded once to the float `dtype`, in that dtype, and `none` of no
    elements; None where no window holds all sums, or counts are too large."""
    from warpfold.kernels.cpu.windows import nearest

    aligned, flat = _aligned(records), records.reshape(-1)
    counts = flat["count"]
    if aligned is None or (mean and counts.size and int(counts.max()) > nearest.MOST_DIVISOR):
        return None
    upper, lower = (np.ascontiguousarray(words.reshape(-1)) for words in aligned[1:])
    values = _divided(aligned[0], upper, lower, counts if mean else np.ones(counts.size, np.int64), dtype)
    flags = flat["flags"]
    if not (flags & int(Flags.NOT_NEGATIVE_ZERO)).all():
        values[(flags == 0) & ((upper | lower) == 0)] = -0.0
    special = int(Flags.NAN | Flags.POS_INF | Flags.NEG_INF)
    if (flags & special).any():
        above, below = (flags & int(Flags.POS_INF)) != 0, (flags & int(Flags.NEG_INF)) != 0
        values[above], values[below] = np.inf, -np.inf
        values[((flags & int(Flags.NAN)) != 0) | (above & below)] = np.nan
    values[counts == 0] = none
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(dtype.numpy)


def _divided(unit: int, upper: Words, lower: Words, counts: Words, dtype: DType) -> NDArray[np.float64]:
    """The sums divided by `counts`. A zero is +0. Values of float32 are rounded so that converting them rounds once."""
    from warpfold.kernels.cpu.windows import nearest, two_levels

    values, distinct = np.zeros(upper.size), np.unique(counts)
    form = dtype.precision, dtype.min_exponent, dtype.max_exponent
    if dtype.name in {"float32", "float64"} and distinct.size <= _FEW_COUNTS:  # others are not rounded by two steps
        for count in distinct[distinct > 0].tolist():
            some: Any = slice(None) if distinct.size == 1 else counts == count
            part = np.empty(upper[some].size)
            two_levels.round_two_levels(upper[some], lower[some], unit, count, form, part)
            values[some] = part
        return values
    digits = TwoLevels(unit, upper, lower, 1 << _LIMIT_BITS, None).digits()
    limbs, left = np.ascontiguousarray(digits.digits.T), np.zeros(upper.size, np.bool_)  # which stays false
    counts = np.ascontiguousarray(counts)
    nearest.round_sums(limbs, digits.exponent, digits.flags, counts, form, values, left)
    return values


def whole(records: Records, dtype: "np.dtype[Any]") -> NDArray[Any] | None:
    """The sums of integers in `dtype`, which is int64 or uint64; None where a sum may not fit."""
    flat = records.reshape(-1)
    counted = flat["count"] != 0
    upper, lower = flat["upper"], flat["lower"]
    if (flat["unit"][counted] != _OF_INTEGERS - _LIKELY).any():
        return None
    more = STEP + _OF_INTEGERS
    least, most = (-(1 << 63 - more), 1 << 63 - more) if dtype.kind == "i" else (0, 1 << 64 - more)
    if upper.size and (int(upper.min()) < least or int(upper.max()) >= most):
        return None
    values: NDArray[Any] = (upper.astype(dtype) << dtype.type(more)) + (lower >> -_OF_INTEGERS).astype(dtype)
    return values


def as_integers(parts: NDArray[Any]) -> NDArray[np.object_]:
    """Records, or what NumPy makes of them beside Python integers, as Python integers (`flox_parts`)."""
    made = np.empty(parts.size, object)
    if parts.dtype == object:
        made[:] = [
            part if isinstance(part, int) else _integer(*np.frombuffer(part, RECORD)[0].item())
            for part in parts.reshape(-1).tolist()
        ]
    else:
        made[:] = [_integer(*record) for record in parts.reshape(-1).view(RECORD).tolist()]
    return made.reshape(parts.shape)


def _integer(  # noqa: PLR0917
    upper: int, lower: int, count: int, unit: int, flags: int, number: int
) -> int:
    units = (upper << STEP) + lower
    places = unit + _LIKELY - ORIGIN[Terms.VALUES]  # sums are multiples of the unit of a state
    return part_of(units << places if places >= 0 else units >> -places, count, flags, number)
