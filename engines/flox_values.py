"""Values of sums and means within flox: what records (`flox_records`) stand for, as floats that are rounded once, as
integers of 64 bits, or as Python integers (`flox_parts`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.engines.flox_parts import NUMBERED, part_of
from warpfold.engines.flox_records import INTEGER_UNIT, LIKELY_UNIT, LIMIT_BITS, RECORD, Records, Words, in_one_unit
from warpfold.kernels.cpu.grouped.two_levels import STEP, TwoLevels
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.ops import Terms

_FEW_COUNTS = 16
"""Means of so few different counts are rounded count by count, without digits."""


def dtype_of_records(records: Records) -> DType | None:
    """The dtype of the elements; None where there are none."""
    return NUMBERED[int(records["dtype"].max())] if records["count"].any() else None


def rounded(records: Records, dtype: DType, none: float, *, mean: bool) -> NDArray[Any] | None:
    """The sums or the means of records, each rounded once to the float `dtype`, in that dtype, and `none` of no
    elements; None where no window holds all sums, or counts are too large."""
    from warpfold.kernels.cpu.windows import nearest

    aligned, flat = in_one_unit(records), records.reshape(-1)
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
    digits = TwoLevels(unit, upper, lower, 1 << LIMIT_BITS, None).digits()
    limbs, left = np.ascontiguousarray(digits.digits.T), np.zeros(upper.size, np.bool_)  # which stays false
    counts = np.ascontiguousarray(counts)
    nearest.round_sums(limbs, digits.exponent, digits.flags, counts, form, values, left)
    return values


def whole(records: Records, dtype: "np.dtype[Any]") -> NDArray[Any] | None:
    """The sums of integers in `dtype`, which is int64 or uint64; None where a sum may not fit."""
    flat = records.reshape(-1)
    counted = flat["count"] != 0
    upper, lower = flat["upper"], flat["lower"]
    if (flat["unit"][counted] != INTEGER_UNIT - LIKELY_UNIT).any():
        return None
    more = STEP + INTEGER_UNIT
    least, most = (-(1 << 63 - more), 1 << 63 - more) if dtype.kind == "i" else (0, 1 << 64 - more)
    if upper.size and (int(upper.min()) < least or int(upper.max()) >= most):
        return None
    values: NDArray[Any] = (upper.astype(dtype) << dtype.type(more)) + (lower >> -INTEGER_UNIT).astype(dtype)
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
    places = unit + LIKELY_UNIT - ORIGIN[Terms.VALUES]  # sums are multiples of the unit of a state
    return part_of(units << places if places >= 0 else units >> -places, count, flags, number)
