"""Parts of sums to many values together, whatever their form: as two levels of one window, or rounded at once, so that
the sums of all parts never lie in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.grouped.digits import Digits
from warpfold.kernels.cpu.grouped.plain import PlainSums
from warpfold.kernels.cpu.grouped.two_levels import REACH, STEP, TwoLevels, window_for
from warpfold.kernels.dtypes import DTYPES, DType

_AT_ONCE = 1 << 15
"""Values that are merged at a time, so that their sums stay in the cache from part to part."""

_PAIR = 106
"""Binary places that the two float64 of a sum hold without rounding."""

Levels = TwoLevels | PlainSums
Words = NDArray[np.int64]


def as_digits(part: Digits | Levels) -> Digits:
    """The sums of a part as digits."""
    if isinstance(part, Digits):
        return part
    if isinstance(part, PlainSums):
        levels = in_levels([part])
        assert levels is not None, "each part of plain sums has a window"
        return levels.digits()
    return part.digits()


def in_levels(parts: Sequence[Levels]) -> TwoLevels | None:
    """The sums of all parts together; None where no window holds them all, or where a sum may leave an int64."""
    window = _window(parts)
    if window is None:
        return None
    unit, bound = window
    if len(parts) == 1 and isinstance(parts[0], TwoLevels):
        return parts[0]
    upper, lower = np.empty((2, _values(parts)), np.int64)
    for start in range(0, upper.size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        _merge_into(parts, some, unit, upper[some], lower[some])
    return TwoLevels(unit, upper, lower, bound, _negative(parts))


def rounded(parts: Sequence[Levels], dtype: DType, divisor: int) -> NDArray[Any] | None:
    """The sums of all parts together divided by `divisor`, which is 1 … 2**32 − 1, each rounded once to `dtype`, in
    that dtype; None where no window holds them all."""
    plain = [part for part in parts if isinstance(part, PlainSums)]
    if len(plain) == len(parts) and dtype is DTYPES["float32"] and not divisor & (divisor - 1) and _are_pairs(plain):
        return _rounded_pairs(plain, divisor)
    window = _window(parts)
    if window is None:
        return None
    values = np.empty(_values(parts), dtype.numpy)
    spare = np.empty((2, min(_AT_ONCE, values.size)), np.int64)
    for start in range(0, values.size, _AT_ONCE):
        some = slice(start, min(start + _AT_ONCE, values.size))
        upper, lower = spare[:, : some.stop - start]
        upper, lower = _merge_into(parts, some, window[0], upper, lower)
        _round_into(upper, lower, window[0], dtype, divisor, values[some])
    negative = _negative(parts)
    if negative is not None:
        values[negative] = -0.0
    return values


def _round_into(  # noqa: PLR0917
    upper: Words, lower: Words, unit: int, dtype: DType, divisor: int, values: NDArray[Any]
) -> None:
    """Sums of a window divided by `divisor`, each rounded once to `dtype`, into `values` of that dtype. A zero is
    +0."""
    from warpfold.kernels.cpu.windows import two_levels

    double = values if values.dtype == np.float64 else np.empty(values.size)
    form = dtype.precision, dtype.min_exponent, dtype.max_exponent
    two_levels.round_two_levels(upper, lower, unit, divisor, form, double)
    if double is not values:
        with np.errstate(over="ignore", under="ignore"):
            values[:] = double


def _values(parts: Sequence[Levels]) -> int:
    first = parts[0]
    return first.sums.size if isinstance(first, PlainSums) else first.upper.size


def _window(parts: Sequence[Levels]) -> tuple[int, int] | None:
    """The unit of a window that holds all parts, and what no upper sum of all together exceeds in magnitude."""
    from warpfold.kernels.cpu.windows import two_levels

    levels = [part for part in parts if isinstance(part, TwoLevels)]
    if len(parts) == len(levels) == 1:
        return levels[0].unit, levels[0].most
    plain = [part for part in parts if isinstance(part, PlainSums) and part.low < part.top]
    low, top = min((part.low for part in plain), default=0), max((part.top for part in plain), default=0)
    if levels:
        units = [min(part.unit for part in levels)]
    else:
        float32 = DTYPES["float32"]
        units = [unit for tight in (False, True) if (unit := window_for(top, float32, 1, tight=tight)) is not None]
        units.append(low)
    for unit in units:
        most = [part.most_in(unit) for part in levels]
        if None in most or (plain and not unit <= low < top <= unit + REACH):
            continue
        bound = sum(each + 1 for each in most if each is not None)
        bound += sum((1 << max(0, part.top - unit - STEP)) + 2 for part in plain)
        if bound < two_levels.LIMIT:
            return unit, bound
    return None


def _merge_into(parts: Sequence[Levels], some: slice, unit: int, upper: Words, lower: Words) -> tuple[Words, Words]:
    """Some sums of all parts together, in `upper` and `lower` where there is more than one part."""
    from warpfold.kernels.cpu.windows import two_levels

    before: tuple[Words, Words] | None = None
    for part in parts:
        if isinstance(part, PlainSums):
            if before is None:
                upper[:] = 0
                lower[:] = 0
                before = upper, lower
            two_levels.add_plain_sums(part.sums[some], unit, *before, upper, lower)
        elif before is None:
            before = part.in_unit(unit, some)
            continue
        else:
            two_levels.merge_levels(*before, *part.in_unit(unit, some), upper, lower)
        before = upper, lower
    assert before is not None, "there is a part"
    return before


def _negative(parts: Sequence[Levels]) -> NDArray[np.bool_] | None:
    """Which values have terms of −0 alone; None where none has."""
    negative: NDArray[np.bool_] | None = None
    for part in parts:
        of_part = part.negative() if isinstance(part, PlainSums) else part.negative
        if of_part is None:
            return None
        negative = of_part if negative is None else negative & of_part
    return negative


def _are_pairs(parts: Sequence[PlainSums]) -> bool:
    """Whether what the additions of all parts round is held without rounding."""
    some = [part for part in parts if part.low < part.top]
    if not some:
        return True
    more = len(parts).bit_length()
    return max(part.top for part in some) - min(part.low for part in some) + 2 * more <= _PAIR


def _rounded_pairs(parts: Sequence[PlainSums], divisor: int) -> NDArray[np.float32]:
    """The sums of all parts, divided by a power of two, rounded to float32."""
    from warpfold.kernels.cpu.windows import plain

    values = np.empty(parts[0].sums.size, np.float32)
    totals, rests = np.empty((2, min(_AT_ONCE, values.size)))
    for start in range(0, values.size, _AT_ONCE):
        some = slice(start, min(start + _AT_ONCE, values.size))
        total, rest = totals[: some.stop - start], rests[: some.stop - start]
        total[:] = parts[0].sums[some]
        rest[:] = 0.0
        for part in parts[1:]:
            plain.add_pairs(part.sums[some], total, rest)
        plain.round_pairs(total, rest, 1.0 / divisor, values[some])
    return values
