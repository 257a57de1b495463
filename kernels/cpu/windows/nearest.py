"""Rounding of exact sums, and sums that are whole numbers, compiled: what `kernels.exact.rounding` defines, without
Python integers.

A magnitude is high · 2**64 + low in two unsigned words; `sticky` says that a fraction of its last place was cut off.
The format of a result is its bits of precision, and the exponents `least` and `most` of its dtype's row.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import DIGIT, NAN, NEG_INF, NOT_NEGATIVE_ZERO, POS_INF, resolve
from warpfold.kernels.machine.jit import jit

MOST_DIVISOR = (1 << 32) - 1
"""Larger counts are divided by in Python."""

_ONE = np.uint64(1)
_64 = np.int64(64)


@jit
def length_of(word: Any) -> Any:
    """Bits of an unsigned word up to its highest one."""
    upper = word >> np.uint64(32)
    some = upper if upper else word
    if some == 0:
        return np.int64(0)
    # 32 bits are exact in a float64, whose exponent then counts them.
    length = (np.float64(some).view(np.int64) >> 52) - 1022
    return length + 32 if upper else length


@jit
def power(exponent: Any) -> Any:
    """2**exponent, which is a normal float64."""
    return np.int64((np.int64(exponent) + 1023) << 52).view(np.float64)


@jit
def two_sum(a: Any, b: Any) -> Any:
    """a + b as the nearest float64, and what that leaves (Knuth 1969): together they are a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit
def odd(high: Any, low: Any) -> Any:
    """high + low rounded to odd, where `high` is the nearest float64 to it."""
    bits = np.float64(high).view(np.int64)
    step = np.int64(1) if (low > 0.0) == (bits >= 0) else np.int64(-1)
    return np.int64(bits + step if low != 0.0 and bits & 1 == 0 else bits).view(np.float64)


@jit
def nearest(high: Any, low: Any, sticky: Any, unit: Any, precision: Any, least: Any, most: Any) -> Any:
    """(high · 2**64 + low) · 2**unit rounded once, to nearest, ties to even. With `sticky` it has more than `precision`
    + 1 bits."""
    length = length_of(high) + 64 if high else length_of(low)
    drop = max(length - precision, least - unit)
    if drop > length:
        return 0.0
    exponent = np.int64(unit)
    kept = low
    if drop > 0:
        exponent += drop
        guard = drop - 1
        if guard >= 64:
            bit = (high >> np.uint64(guard - _64)) & _ONE
            below = (high & ((_ONE << np.uint64(guard - _64)) - _ONE)) | low
        else:
            bit = (low >> np.uint64(guard)) & _ONE
            below = low & ((_ONE << np.uint64(guard)) - _ONE)
        if drop >= 128:
            kept = np.uint64(0)
        elif drop >= 64:
            kept = high >> np.uint64(drop - _64)
        else:
            kept = (low >> np.uint64(drop)) | (high << np.uint64(_64 - drop))
        if bit and (below or sticky or (kept & _ONE)):
            kept += _ONE
    if length_of(kept) + exponent > most:
        return np.inf
    if exponent < -900:  # subnormal numbers are exact all the same
        return np.float64(kept) * power(exponent + 200) * power(-200)
    return np.float64(kept) * power(exponent)


@jit
def divided(high: Any, low: Any, count: Any) -> Any:
    """Quotient, in two words, and whether there is a remainder; 0 < count < 2**32."""
    divisor, digit = np.uint64(count), np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a = high >> half
    q3, rest = a // divisor, a % divisor
    b = (rest << half) | (high & digit)
    q2, rest = b // divisor, b % divisor
    c = (rest << half) | (low >> half)
    q1, rest = c // divisor, c % divisor
    d = (rest << half) | (low & digit)
    q0, rest = d // divisor, d % divisor
    return (q3 << half) | q2, (q1 << half) | q0, rest != np.uint64(0)


@jit
def rounded_levels(first: Any, apart: Any, second: Any, unit: Any, count: Any, form: Any) -> Any:
    """(first · 2**apart + second) · 2**unit ÷ count rounded once, for int64 sums of two levels with 0 ≤ apart < 64;
    `form` is precision, least and most. A zero is +0."""
    precision, least, most = form
    low = np.uint64(first) << np.uint64(apart)
    high = first >> (_64 - apart) if apart else first >> 63
    total = low + np.uint64(second)
    high += (second >> 63) + np.int64(total < low)
    negative = high < 0
    if negative:
        total = ~total + _ONE
        high = ~high + np.int64(total == np.uint64(0))
    above = np.uint64(high)
    if above == 0 and total == 0:
        return 0.0
    sticky = False
    if count > 1:
        # All 128 bits are used, so that the quotient has enough of them.
        places = 128 - (length_of(above) + 64 if above else length_of(total))
        if places >= 64:
            above, total = total << np.uint64(places - _64), np.uint64(0)
        elif places:
            above = (above << np.uint64(places)) | (total >> np.uint64(_64 - places))
            total = total << np.uint64(places)
        unit -= places
        above, total, sticky = divided(above, total, count)
    value = nearest(above, total, sticky, unit, precision, least, most)
    return -value if negative else value


@jit
def _digit(limbs: Any, at: Any) -> Any:
    return np.uint64(limbs[at]) if at >= 0 else np.uint64(0)


@jit
def rounded_limbs(limbs: Any, origin: Any, flags: Any, count: Any, form: Any) -> Any:
    """Σ limbs[k] · 2**(origin + 32 k) ÷ count rounded once, with the specials and the zeros that `flags` tell; spoils
    `limbs`, which are resolved."""
    precision, least, most = form
    if flags & NAN or (flags & POS_INF and flags & NEG_INF):
        return np.nan
    if flags & (POS_INF | NEG_INF):
        return np.inf if flags & POS_INF else -np.inf
    top = limbs.size - 1
    negative = limbs[top] < 0
    if negative:
        for k in range(limbs.size):
            limbs[k] = -limbs[k]
        resolve(limbs)
    while top >= 0 and limbs[top] == 0:
        top -= 1
    if top < 0:
        return 0.0 if flags & NOT_NEGATIVE_ZERO else -0.0
    sticky = False
    for k in range(top - 3):
        sticky |= limbs[k] != 0
    half = np.uint64(32)
    high = (_digit(limbs, top) << half) | _digit(limbs, top - 1)
    low = (_digit(limbs, top - 2) << half) | _digit(limbs, top - 3)
    if count > 1:
        high, low, remainder = divided(high, low, count)
        sticky |= remainder
    value = nearest(high, low, sticky, origin + 32 * (top - 3), precision, least, most)
    return -value if negative else value


@jit
def round_sums(limbs: Any, origin: Any, flags: Any, counts: Any, form: Any, values: Any, left: Any) -> None:
    """values[i] = the sum in limbs[i] ÷ counts[i], rounded once, for every i with counts[i] > 0. `limbs` (int64, shape
    (values, digits)) are resolved. left[i] is set where counts[i] is more than MOST_DIVISOR."""
    space = np.empty(limbs.shape[1], np.int64)
    for i in range(values.size):
        if counts[i] > MOST_DIVISOR:
            left[i] = True
        elif counts[i] > 0:
            for k in range(space.size):  # Numba takes a second to compile the assignment of a slice
                space[k] = limbs[i, k]
            values[i] = rounded_limbs(space, origin, flags[i], counts[i], form)


@jit
def digit_of(limbs: Any, at: Any) -> Any:
    """The digit of 32 bits at place `at` of a sum in resolved limbs, which has a digit at every place: 0 below the
    limbs, and above them what the sign says."""
    last = limbs.size - 1
    if at < 0:
        return np.int64(0)
    if at < last:
        return limbs[at]
    # The last limb may be longer than a digit.
    return (limbs[last] >> min(32 * (at - last), np.int64(63))) & DIGIT


@jit
def whole_sums(limbs: Any, origin: Any, counts: Any, words: Any, large: Any, left: Any) -> None:
    """words[i] (int64) = the pattern of the sum in limbs[i], for every i with counts[i] > 0; large[i] says whether it
    is 2**63 or more. `limbs` (shape (values, limbs)), resolved, count 2**origin. left[i] is set where the sum is no
    whole number, or fits neither an int64 nor a uint64."""
    start, shift = (-origin) >> 5, (-origin) & 31  # where the bit that counts 1 stands
    above = np.int64(limbs.shape[1]) + 1 - start  # digits from that bit on, with all that limbs have
    for i in range(words.size):
        if counts[i] <= 0:
            continue
        row = limbs[i]
        sign = row[row.size - 1] >> 63
        fits = digit_of(row, start) & ((np.int64(1) << shift) - 1) == 0
        for k in range(min(start, row.size + 1)):
            fits &= digit_of(row, k) == 0
        word = np.int64(0)
        for place in range(max(above, 2)):
            below, over = digit_of(row, start + place), digit_of(row, start + place + 1)
            digit = ((below >> shift) | (over << (32 - shift))) & DIGIT
            if place < 2:
                word |= digit << (32 * place)
            else:
                fits &= digit == sign & DIGIT
        words[i], large[i], left[i] = word, sign == 0 and word < 0, not fits or (sign < 0 and word >= 0)


@jit
def resolve_sums(limbs: Any, used: Any) -> None:
    """Carry in each row of `limbs` that is used."""
    for i in range(used.size):
        if used[i]:
            resolve(limbs[i])
