"""Exact sums of many values in two levels (`levels`) of one window that all of them share, compiled.

An element is read once. What the window does not hold is noticed while it is added: the sum t = d + M of an element and
the upper anchor leaves the binade of M where d is too large, infinite or NaN, and the rest behind the lower level is
not 0 where d is no multiple of the window's unit. Sums of one window are added to each other as integers, and rounded
without branches.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.float32 import term_of
from warpfold.kernels.cpu.windows.levels import (
    HELD,
    STEP,
    TILE32,
    anchor_at,
    clamped_exponent,
    counted,
    deposit,
)
from warpfold.kernels.cpu.windows.nearest import odd, power, rounded_levels, two_sum
from warpfold.kernels.cpu.windows.plain import (
    BLOCK_WIDTH,
    MOST_ROWS,
    add_plain_rows,
    are_finite,
    never_round,
    places_of,
)
from warpfold.kernels.cpu.windows.row_vectors import COLUMNS, add_rows_in_levels
from warpfold.kernels.cpu.windows.vector_code import LANES
from warpfold.kernels.cpu.windows.vectors import one_level, two_levels
from warpfold.kernels.machine.jit import jit

REACH = HELD + STEP
"""Binary places of a window: every element is a multiple of 2**unit and below 2**(unit + REACH) in magnitude."""

LIMIT = 1 << 61
"""What an upper sum stays below in magnitude."""

HELD_ALL, HELD_NOT, NEGATIVE_ZERO = 0, 1, 2
"""What an addition tells: the window held all elements, it did not, or it did and values may be −0."""

_TALL = 1 << 11  # elements of a value that are added before the levels are put together: |Σ k| ≤ 2**11 · 2**51
_TRIALS = 4  # so many blocks of float32 may have to be added again before only blocks that are exact are tried
_LIKELY = -40  # the unit of one level that a first tile of float32 is tried with
_LOW = np.int64((1 << STEP) - 1)
_TOP = np.uint64(52)
_SIGN = np.uint64(1 << 63)

NARROW = 1 << 10
"""Of rows with fewer columns several are read as one."""


@jit
def _element(word: Any, keep: Any, double: Any) -> Any:
    """The float64 of a pattern; `double` is None for patterns of float32."""
    if double is None:
        return term_of(word, keep, False)
    return np.int64(word & keep).view(np.float64)


@jit
def _bits(number: Any) -> Any:
    return np.float64(number).view(np.uint64)


@jit
def _outcome_of(outside: Any, rest: Any) -> Any:
    """What the patterns of all elements tell: those that leave the anchor's binade, and those of the rests. The rest of
    −0 is −0, and that of any other element that is held is +0."""
    if outside >> _TOP or rest << np.uint64(1):
        return HELD_NOT
    return NEGATIVE_ZERO if rest else HELD_ALL


@jit
def _levels(d: Any, first: Any, second: Any) -> Any:
    """The patterns of a number at both levels, and that of the rest."""
    t = d + first
    r = d - (t - first)
    u = r + second
    return _bits(t), _bits(u), _bits(r - (u - second))


@jit
def _add_block(
    words: Any, start: Any, rows: Any, stride: Any, keep: Any, double: Any, first: Any, second: Any, sums: Any,
    others: Any,
) -> Any:  # fmt: skip
    """Add the patterns of `rows` rows to those of each column; returns the patterns that tell."""
    size = sums.size
    outside, rest = add_rows_in_levels(words, start, rows, stride, size, keep, first, second, sums, others)
    for c in range(size - size % COLUMNS, size):
        for r in range(rows):
            a, e, i = _levels(_element(words[start + r * stride + c], keep, double), first, second)
            sums[c] += a
            others[c] += e
            outside |= a ^ _bits(first)
            rest |= i
    return outside, rest


@jit
def _carry(sums: Any, others: Any, count: Any, first: Any, second: Any, upper: Any, lower: Any) -> Any:
    """Add the patterns of `count` elements of each column to its sums; returns what no upper sum exceeds."""
    most = np.int64(0)
    for c in range(upper.size):
        both = lower[c] + counted(others[c], count, second)
        high = upper[c] + counted(sums[c], count, first) + (both >> STEP)
        upper[c] = high
        lower[c] = both & _LOW
        most |= high ^ (high >> 63)
    return most


@jit
def _carry_plain(plain: Any, first: Any, second: Any, upper: Any, lower: Any) -> Any:
    """As `_carry`, of sums that the window holds; and a sign where a sum is −0."""
    most, signs = np.int64(0), np.uint64(0)
    for c in range(upper.size):
        a, b, rest = _levels(plain[c], first, second)
        signs |= rest
        both = lower[c] + np.int64(b - _bits(second))
        high = upper[c] + np.int64(a - _bits(first)) + (both >> STEP)
        upper[c] = high
        lower[c] = both & _LOW
        most |= high ^ (high >> 63)
    return most, signs


@jit
def _add_plainly(
    words: Any, start: Any, rows: Any, stride: Any, keep: Any, unit: Any, plain: Any, upper: Any, lower: Any
) -> Any:
    """Add rows of float32 to the sums of each column, where their float64 sums are exact and the window of `unit` holds
    them; returns whether that is so, and what `_carry_plain` does."""
    largest, least = add_plain_rows(words, start, rows, stride, keep, plain)
    low, top = places_of(largest, least, rows)
    if are_finite(largest) and never_round(low, top) and low >= unit and top <= unit + REACH:
        most, signs = _carry_plain(plain, anchor_at(unit + STEP), anchor_at(unit), upper, lower)
        return True, most, signs
    return False, np.int64(0), np.uint64(0)


@jit
def add_level_columns(
    words: Any, starts: Any, places: Any, rows: Any, stride: Any, width: Any, keep: Any, double: Any, unit: Any,
    upper: Any, lower: Any, fresh: Any, space: Any, plain: Any,
) -> Any:  # fmt: skip
    """From starts[i] on there are `rows` rows of `width` elements, `stride` apart, whose columns are added to the
    values from places[i] on, for every i. `words` are patterns (int64, or int32), masked by `keep`; `double` is None
    for int32.
    Value v is (upper[v] · 2**STEP + lower[v]) · 2**unit, with |upper| < LIMIT and 0 ≤ lower < 2**STEP; with `fresh` no
    value occurs twice, and its sums are set. `space` is two arrays of uint64 with BLOCK_WIDTH
    elements, and `plain` for int32 one of float64, for int64 None. Returns what the elements tell, and what no upper
    sum exceeds in magnitude."""
    first, second = anchor_at(unit + STEP), anchor_at(unit)
    outside, rest = np.uint64(0), np.uint64(0)
    most, tried, exact = np.int64(0), 0, 0
    tile = MOST_ROWS if double is None else _TALL
    for i in range(starts.size):
        for left in range(0, width, BLOCK_WIDTH):
            size = min(BLOCK_WIDTH, width - left)
            to = places[i] + left
            high, low = upper[to : to + size], lower[to : to + size]
            if fresh:
                high[:] = 0
                low[:] = 0
            for begin in range(0, rows, tile):
                some, start = min(tile, rows - begin), starts[i] + begin * stride + left
                added, tries = False, tried <= 2 * exact + _TRIALS
                if plain is None:
                    tries = False  # and Numba leaves out what is below for int64
                elif tries:
                    added, of_plain, signs = _add_plainly(
                        words, start, some, stride, keep, unit, plain[:size], high, low
                    )
                    tried, exact = tried + 1, exact + added
                    most |= of_plain
                    rest |= signs
                if added:
                    if most >= LIMIT:
                        return HELD_NOT, most
                    continue
                sums, others = space[0][:size], space[1][:size]
                sums[:] = 0
                others[:] = 0
                left_binade, left_over = _add_block(
                    words, start, some, stride, keep, double, first, second, sums, others
                )
                outside |= left_binade
                rest |= left_over
                most |= _carry(sums, others, some, first, second, high, low)
                if most >= LIMIT or _outcome_of(outside, rest) == HELD_NOT:
                    return HELD_NOT, most
    return _outcome_of(outside, rest), most


@jit
def _split(total: Any, apart: Any) -> Any:
    """total · 2**apart as what it adds to an upper and to a lower sum, for apart ≥ 0."""
    if apart >= STEP:
        return total << (apart - STEP), np.int64(0)
    below = STEP - apart
    return total >> below, (total & ((np.int64(1) << below) - 1)) << apart


@jit
def _add_tile(tile: Any, keep: Any, unit: Any, likely: Any) -> Any:
    """The sum of a tile of float32, whose size is a multiple of LANES: what it adds to an upper and a lower sum,
    whether the window holds it, and the unit of one level that is likely to hold the next. One level is tried first."""
    for at in (likely, unit):
        tries_one = at == likely
        if tries_one:
            total, _, most, least = one_level(tile, keep, anchor_at(at), None)
            high, low = _split(counted(total, tile.size, anchor_at(at)), at - unit)
        else:
            first, second = anchor_at(unit + STEP), anchor_at(unit)
            sums, others, most, least = two_levels(tile, keep, first, second)
            high, low = counted(sums, tile.size, first), counted(others, tile.size, second)
        if most == 0:
            return np.int64(0), np.int64(0), True, likely
        top = clamped_exponent(most >> 24) - 126
        lowest = clamped_exponent((least + 1) >> 24) - 127 - 23
        if most >> 24 >= 255 or lowest < unit or top > unit + HELD + STEP:
            return high, low, False, likely
        if not tries_one or (lowest >= at and top <= at + HELD):
            return high, low, True, likely
        likely = max(lowest, top - HELD)
        if lowest >= likely:
            total, _, most, least = one_level(tile, keep, anchor_at(likely), None)
            high, low = _split(counted(total, tile.size, anchor_at(likely)), likely - unit)
            return high, low, True, likely
    return high, low, True, likely


@jit
def _put(upper: Any, lower: Any, at: Any, high: Any, low: Any) -> Any:
    """Add to the sums of value `at`, and return what its upper sum does not exceed."""
    both = lower[at] + low
    lower[at] = both & _LOW
    upper[at] += high + (both >> STEP)
    return upper[at] ^ (upper[at] >> 63)


@jit
def add_level_rows(
    words: Any, starts: Any, places: Any, length: Any, keep: Any, double: Any, unit: Any, upper: Any, lower: Any,
    fresh: Any,
) -> Any:  # fmt: skip
    """As `add_level_columns`: the `length` elements from starts[i] on are added to value places[i]."""
    first, second = anchor_at(unit + STEP), anchor_at(unit)
    outside, rest, most, likely = np.uint64(0), np.uint64(0), np.int64(0), np.int64(max(unit, _LIKELY))
    for i in range(starts.size):
        to = places[i]
        if fresh:
            upper[to], lower[to] = 0, 0
        done = 0
        if double is None:
            whole = length - length % LANES
            for begin in range(0, whole, TILE32):
                tile = words[starts[i] + begin : starts[i] + min(begin + TILE32, whole)]
                high, low, held, likely = _add_tile(tile, keep, unit, likely)
                most |= _put(upper, lower, to, high, low)
                if most >= LIMIT or not held:
                    return HELD_NOT, most
            done = whole
        for begin in range(done, length, _TALL):
            rows = words[starts[i] + begin : starts[i] + min(begin + _TALL, length)]
            sums, others = np.uint64(0), np.uint64(0)
            for c in range(rows.size):
                a, b, left_over = _levels(_element(rows[c], keep, double), first, second)
                sums += a
                others += b
                outside |= a ^ _bits(first)
                rest |= left_over
            most |= _put(upper, lower, to, counted(sums, rows.size, first), counted(others, rows.size, second))
            if most >= LIMIT or _outcome_of(outside, rest) == HELD_NOT:
                return HELD_NOT, most
        if double is None and upper[to] == 0 and lower[to] == 0:
            rest |= _SIGN  # the value may be −0
    return _outcome_of(outside, rest), most


@jit
def merge_levels(upper: Any, lower: Any, other_upper: Any, other_lower: Any, made_upper: Any, made_lower: Any) -> None:
    """The sums of two parts of one window together; they may be written over one of them. The upper sums must stay
    within an int64."""
    for i in range(upper.size):
        both = lower[i] + other_lower[i]
        made_upper[i] = upper[i] + other_upper[i] + (both >> STEP)
        made_lower[i] = both & _LOW


@jit
def add_plain_sums(plain: Any, unit: Any, upper: Any, lower: Any, made_upper: Any, made_lower: Any) -> None:
    """As `merge_levels`, of float64 sums that the window of `unit` holds."""
    first, second = anchor_at(unit + STEP), anchor_at(unit)
    for i in range(plain.size):
        a, b, _ = _levels(plain[i], first, second)
        both = lower[i] + np.int64(b - _bits(second))
        made_upper[i] = upper[i] + np.int64(a - _bits(first)) + (both >> STEP)
        made_lower[i] = both & _LOW


@jit
def levels_to_limbs(upper: Any, lower: Any, place: Any, limbs: Any) -> None:
    """limbs[i] += (upper[i] · 2**STEP + lower[i]) · 2**place; limbs have the shape (values, limbs)."""
    for i in range(upper.size):
        deposit(limbs[i], upper[i], place + STEP)
        deposit(limbs[i], lower[i], place)


@jit
def round_two_levels(upper: Any, lower: Any, unit: Any, count: Any, form: Any, values: Any) -> None:
    """values[i] = (upper[i] · 2**STEP + lower[i]) · 2**unit ÷ count, rounded once to `form` (`nearest`). A float64 is
    told by its precision; for other forms the value is rounded to odd, so that converting it to one rounds it once.

    The sum of three float64 is rounded correctly by rounding to odd in between (S. Boldo and G. Melquiond, IEEE Trans.
    Computers 57, 2008)."""
    if count & (count - 1):
        for i in range(values.size):
            values[i] = rounded_levels(upper[i], STEP, lower[i], unit, count, form)
        return
    place = np.int64(unit)
    while count > 1:
        place -= 1
        count >>= 1
    high, middle, low = power(place + STEP + 32), power(place + STEP), power(place)
    to_odd = form[0] < 53
    for i in range(values.size):
        a = np.float64(upper[i] >> 32) * high
        b = np.float64(upper[i] & np.int64(0xFFFFFFFF)) * middle
        c = np.float64(lower[i]) * low
        s, e = two_sum(b, c)
        t, f = two_sum(a, s)
        g, h = two_sum(f, e)
        z, w = two_sum(t, odd(g, h))
        values[i] = odd(z, w) if to_odd else z
