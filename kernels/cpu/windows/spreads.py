"""Norms, variances and deviations of exact sums, compiled: what `kernels.exact.finish` defines, without Python's
integers.

A magnitude is digits of 32 bits in unsigned words, at the places `low` … `high` − 1. A quotient is cut off behind
WANTED digits, and a root behind 63 bits; what was cut off only matters by whether it is 0 (`sticky`).
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.estimates import near_spread
from warpfold.kernels.cpu.windows.levels import NAN, NEG_INF, POS_INF
from warpfold.kernels.cpu.windows.nearest import MOST_DIVISOR, length_of, nearest
from warpfold.kernels.machine.jit import jit

BELOW = 16
"""Places beneath the unit that a quotient may have."""

SIZE = 320
"""Words of the space that a value is made in: the square of all digits of a sum, and a count."""

WANTED = 7

_ONE, _HALF, _DIGIT = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


@jit
def magnitude_of(limbs: Any, at: Any, digits: Any) -> Any:
    """Write the digits of |limbs|, which are resolved, from place `at` on; their first place and the one behind the
    last."""
    negative = limbs[limbs.size - 1] < 0
    low, high, carry = 0, 0, np.int64(0)
    for k in range(limbs.size + 1):  # the last limb may be longer than a digit
        part = carry
        if k < limbs.size:
            part += -limbs[k] if negative else limbs[k]
        carry = part >> 32
        digits[at + k] = np.uint64(part) & _DIGIT
        if digits[at + k] != 0:
            low = k if high == 0 else low
            high = k + 1
    return at + low, at + high


@jit
def spread_of(values: Any, first: Any, last: Any, squares: Any, low: Any, high: Any, count: Any, made: Any) -> Any:
    """count · squares − values² in `made`: its first place, the one behind its last, and whether it is negative. The
    digits of `values` are at the places first … last − 1, those of `squares` at low … high − 1; BELOW is the place of
    the units of all."""
    start = min(low, 2 * first - BELOW) if last > first else low
    stop = max(high + 1, 2 * last - BELOW)
    for k in range(start, stop + 1):
        made[k] = np.uint64(0)
    for i in range(first, last):
        carried = np.uint64(0)
        for j in range(first, last):
            part = made[i + j - BELOW] + values[i] * values[j] + carried
            made[i + j - BELOW] = part & _DIGIT
            carried = part >> _HALF
        made[i + last - BELOW] = carried
    carried, borrowed = np.uint64(0), np.int64(0)
    for k in range(start, stop + 1):
        part = carried
        if low <= k < high:
            part += squares[k] * np.uint64(count)
        carried = part >> _HALF
        left = np.int64(part & _DIGIT) - np.int64(made[k]) + borrowed
        borrowed = left >> 32
        made[k] = np.uint64(left & 0xFFFFFFFF)
    return start, stop + 1, borrowed < 0


@jit
def divide(digits: Any, low: Any, high: Any, divisor: Any, least: Any) -> Any:
    """Digits ÷ divisor, 0 < divisor < 2**32, in place: the first place, the one behind the last, and whether anything
    was cut off. There are none before the place `least`."""
    by, rest = np.uint64(divisor), np.uint64(0)
    top = -1
    at = high - 1
    while at >= least:
        part = (rest << _HALF) | (digits[at] if at >= low else np.uint64(0))
        digits[at] = part // by
        rest = part % by
        if top < 0 and digits[at] != 0:
            top = at
        if (top >= 0 and at <= top - WANTED) or (rest == 0 and at <= low):
            break
        at -= 1
    end = max(at, least)
    sticky = rest != 0
    for k in range(low, end):
        sticky |= digits[k] != 0
    return end, top + 1, sticky


@jit
def square(x: Any) -> Any:
    """x² in two words."""
    low, high = x & _DIGIT, x >> _HALF
    middle = low * high
    first = low * low
    upper = (first >> _HALF) + ((middle << _ONE) & _DIGIT)
    return high * high + (middle >> np.uint64(31)) + (upper >> _HALF), (upper << _HALF) | (first & _DIGIT)


@jit
def at_most(high: Any, low: Any, above: Any, below: Any) -> Any:
    return high < above or (high == above and low <= below)


@jit
def root_of(high: Any, low: Any) -> Any:
    """⌊√(high · 2**64 + low)⌋ of 126 bits or more, and whether it is exact."""
    about = np.sqrt(np.float64(high) * 18446744073709551616.0 + np.float64(low))
    root = np.uint64(about) if about < 18446744073709549568.0 else np.uint64(0xFFFFFFFFFFFFF800)
    for _ in range(2):  # an error of 2**11 leaves one of 2**76, and then one below 2
        above, below = square(root)
        if at_most(above, below, high, low):
            left = np.float64(high - above - np.uint64(low < below)) * 18446744073709551616.0 + np.float64(low - below)
            step = np.uint64(left / (2.0 * np.float64(root)))
            root = root + step if step <= ~root else ~np.uint64(0)
        else:
            left = np.float64(above - high - np.uint64(below < low)) * 18446744073709551616.0 + np.float64(below - low)
            root -= np.uint64(left / (2.0 * np.float64(root)))
    above, below = square(root)
    while not at_most(above, below, high, low):
        root -= _ONE
        above, below = square(root)
    while root != ~np.uint64(0):
        above, below = square(root + _ONE)
        if not at_most(above, below, high, low):
            break
        root += _ONE
    above, below = square(root)
    return root, above == high and below == low


@jit
def leading(digits: Any, low: Any, high: Any) -> Any:
    """The 128 highest bits in two words, whether anything is below them, and the place of the last of them."""
    top = high - 1
    first = digits[top] << _HALF | (digits[top - 1] if top > low else np.uint64(0))
    second = digits[top - 2] << _HALF if top - 2 >= low else np.uint64(0)
    second |= digits[top - 3] if top - 3 >= low else np.uint64(0)
    third = digits[top - 4] if top - 4 >= low else np.uint64(0)
    places = np.uint64(64 - length_of(first))
    sticky = False
    for k in range(low, top - 4):
        sticky |= digits[k] != 0
    if places:
        first = (first << places) | (second >> (np.uint64(64) - places))
        second = (second << places) | (third >> (_HALF - places))
        third = (third << places) & _DIGIT
    return first, second, sticky or third != 0, 32 * (top - 3 - BELOW) - np.int64(places)


@jit
def rounded_root(digits: Any, low: Any, high: Any, origin: Any, cut: Any, form: Any) -> Any:
    """√(digits · 2**origin) rounded once. With `cut` there is more below the digits, which are 128 bits or more."""
    precision, least, most = form
    above, below, sticky, exponent = leading(digits, low, high)
    exponent += origin
    sticky = sticky or cut
    if exponent % 2:
        sticky = sticky or (below & _ONE) != 0
        below = (below >> _ONE) | (above << np.uint64(63))
        above >>= _ONE
        exponent += 1
    word, exact = root_of(above, below)
    return nearest(np.uint64(0), word, sticky or not exact, exponent // 2, precision, least, most)


@jit
def round_roots(sums: Any, origin: Any, flags: Any, counts: Any, form: Any, rounded: Any, left: Any) -> None:
    """rounded[i] = √ of a sum of squares, for every i with counts[i] > 0. `sums` are resolved, and count 2**origin; for
    a negative one left[i] is set."""
    space = np.empty(SIZE, np.uint64)
    for i in range(rounded.size):
        if counts[i] <= 0:
            continue
        if flags[i] & (NAN | POS_INF | NEG_INF):
            rounded[i] = np.nan if flags[i] & (NAN | NEG_INF) else np.inf
        elif sums[i, sums.shape[1] - 1] < 0:
            left[i] = True
        else:
            low, high = magnitude_of(sums[i], BELOW, space)
            rounded[i] = rounded_root(space, low, high, origin, False, form) if high > low else 0.0


@jit
def round_spreads(
    values: Any, squares: Any, places: Any, origin: Any, flags: Any, counts: Any, ddof: Any, root: Any, form: Any,
    rounded: Any, left: Any,
) -> None:  # fmt: skip
    """rounded[i] = the variance, or with `root` the deviation, of counts[i] elements, where that is more than `ddof`.
    `values` and `squares` are resolved sums (int64, shape (values, limbs)). Their first limbs lie `places` digits above
    their units, which are 2**origin of squares and its root of values. left[i] is set where counts[i] is more than
    MOST_DIVISOR, and where these are not sums of the same elements."""
    precision, least, most = form
    of_values, of_squares, made = np.empty(SIZE, np.uint64), np.empty(SIZE, np.uint64), np.empty(SIZE, np.uint64)
    for i in range(rounded.size):
        count = counts[i]
        if count <= ddof:
            continue
        if flags[i] & (NAN | POS_INF | NEG_INF):
            rounded[i] = np.nan
            continue
        if count > MOST_DIVISOR or squares[i, squares.shape[1] - 1] < 0:
            left[i] = True
            continue
        known, value = near_spread(values[i], squares[i], places, origin, count, ddof, root, form)
        if known:
            rounded[i] = value
            continue
        first, last = magnitude_of(values[i], BELOW + places[0], of_values)
        low, high = magnitude_of(squares[i], BELOW + places[1], of_squares)
        low, high, negative = spread_of(of_values, first, last, of_squares, low, high, count, made)
        if negative:
            left[i] = True
            continue
        while high > low and made[high - 1] == 0:
            high -= 1
        if high == low:
            rounded[i] = 0.0
            continue
        low, high, cut = divide(made, low, high, count, 0)
        low, high, rest = divide(made, low, high, count - ddof, low if cut else 0)
        if root:
            rounded[i] = rounded_root(made, low, high, origin, cut or rest, form)
        else:
            above, below, sticky, exponent = leading(made, low, high)
            rounded[i] = nearest(above, below, sticky or cut or rest, exponent + origin, precision, least, most)
