"""Sums over windows that move along an array, compiled: what enters a window is added and what leaves it is subtracted,
exactly, so that no value keeps anything of the elements before its window.

Two states serve. Two levels hold elements whose places lie within about 90 bits: an element is cut at a multiple of
2**`place` into an upper part and a rest, as `levels` cuts it, and each has a float64 that adds up its parts without
rounding. Their sum, rounded by the last addition alone, is the value. Limbs hold all other elements.

`PERIOD` additions let the sum of the rests grow by 10 bits. Then what it has above 2**`place` moves to the upper sum,
whose size is looked at.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import NOT_NEGATIVE_ZERO, anchor_at, clamped_exponent, deposit, resolve
from warpfold.kernels.cpu.windows.nearest import power, rounded_levels, rounded_limbs, two_sum
from warpfold.kernels.machine.jit import jit

PERIOD = 1024
BLOCK = 256
"""Values that are made at a time: twice as many elements enter and leave, fewer than PERIOD."""
BELOW = 42
"""How many places below 2**place the rests may have."""

MAGNITUDE = np.iinfo(np.int64).max
_SIGN = np.iinfo(np.int64).min
CARRY = 1 << 20
_SINGLE = 24
"""The precision of float32."""
_DOUBT = 2.0**-48
_MOST_DIVISOR = 1 << 26


@jit
def look(patterns: Any) -> Any:
    """The largest magnitude's bits, those of the smallest that is not 0, less 1, and whether a −0 is among them."""
    most, least, negative_zero = np.int64(0), np.int64(MAGNITUDE), False
    for i in range(patterns.size):
        pattern = patterns[i]
        magnitude = pattern & MAGNITUDE
        below = (magnitude - 1) & MAGNITUDE
        most = magnitude if magnitude > most else most
        least = below if below < least else least
        negative_zero |= pattern == _SIGN
    return most, least, negative_zero


@jit
def are_held(elements: Any, anchor: Any, second: Any) -> bool:
    """Whether two levels hold the elements, of which these are the anchors."""
    left = np.int64(0)
    for i in range(elements.size):
        element = elements[i]
        rest = element - ((element + anchor) - anchor)
        left |= np.float64(rest - ((rest + second) - second)).view(np.int64)
    return bool(left & MAGNITUDE == 0)


@jit
def _steps(bounds: Any, first: Any, last: Any) -> Any:
    """By how much each of bounds[first : last] lies behind the one before it; −1 where they differ, or there is none
    before them."""
    if first == 0:
        return np.int64(-1)
    step = bounds[first] - bounds[first - 1]
    before, here = bounds[first - 1 : last - 1], bounds[first:last]
    differ = np.int64(0)
    for i in range(here.size):
        differ |= (here[i] - before[i]) ^ step
    return np.int64(-1) if differ else step


@jit
def _moved(entering: Any, leaving: Any, anchor: Any, uppers: Any, rests: Any) -> None:
    """What both levels of a window gain where one element enters at a time, and one leaves unless none are leaving."""
    if leaving.size:
        for i in range(entering.size):
            enters, leaves = entering[i], leaving[i]
            cut, cut_off = (enters + anchor) - anchor, (leaves + anchor) - anchor
            uppers[i] = cut - cut_off
            rests[i] = (enters - cut) - (leaves - cut_off)
    else:
        for i in range(entering.size):
            enters = entering[i]
            cut = (enters + anchor) - anchor
            uppers[i] = cut
            rests[i] = enters - cut


@jit
def _accumulated(moves: Any, size: Any, total: Any) -> Any:
    """The last total; each of the moves becomes the total behind it. Nothing is rounded, so that four additions need
    not wait for each other."""
    whole = size // 4 * 4
    for i in range(0, whole, 4):
        pair = moves[i] + moves[i + 1]
        next_pair = moves[i + 2] + moves[i + 3]
        moves[i + 2] = total + (pair + moves[i + 2])
        moves[i] += total
        moves[i + 1] = total + pair
        total += pair + next_pair
        moves[i + 3] = total
    for i in range(whole, size):
        total += moves[i]
        moves[i] = total
    return total


@jit
def _add_range(elements: Any, start: Any, stop: Any, sign: Any, upper: Any, rest: Any, anchor: Any, most: Any) -> Any:
    """Both levels with elements[start:stop] added or, where the `sign` is −1, taken away; an upper sum of infinity
    where it passes `most`."""
    while start < stop:
        last = min(stop, start + PERIOD)
        for i in range(start, last):
            cut = (elements[i] + anchor) - anchor
            upper += sign * cut
            rest += sign * (elements[i] - cut)
        carried = (rest + anchor) - anchor
        upper += carried
        rest -= carried
        start = last
        if abs(upper) > most:
            return np.inf, 0.0
    return upper, rest


@jit
def _quotient(upper: Any, rest: Any, count: Any) -> Any:
    """(upper + rest) ÷ count as the nearest float64; NaN where it lies too near the middle of two, or the count is
    large (Dekker 1971: what a quotient leaves is exact, here of counts of up to 26 bits)."""
    divisor = np.float64(count)
    total, left = two_sum(upper, rest)
    first = total / divisor
    spread = first * 134217729.0
    high = spread - (spread - first)
    left += (total - high * divisor) - (first - high) * divisor
    second = left / divisor
    doubt = abs(second) * _DOUBT
    value = first + (second - doubt)
    return value if value == first + (second + doubt) and count <= _MOST_DIVISOR else np.nan


@jit
def _as_single(value: Any) -> Any:
    """The nearest float32, given the nearest float64; NaN where that is the middle of two, or has few bits left."""
    middle = np.float64(value).view(np.int64) & 0x1FFFFFFF == 0x10000000
    held = 2.0**-120 < abs(value) < 2.0**120 or value == 0.0
    return np.float64(np.float32(value)) if held and not middle else np.nan


@jit
def slide_levels(
    elements: Any, begins: Any, ends: Any, begin: Any, end: Any, upper: Any, rest: Any, place: Any, most: Any,
    divisors: Any, plain: Any, form: Any, values: Any,
) -> bool:  # fmt: skip
    """values[i] = the sum of elements[begins[i] : ends[i]] ÷ divisors[i], rounded once; with `plain` that is a sum of
    float64. `upper` and `rest` are the two levels of elements[begin:end]. False where the upper sum passes `most`."""
    anchor = anchor_at(place)
    unit = np.int64(place) - BELOW
    scale_upper, scale_rest = power(-place), power(-unit)
    uppers, rests = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, values.size, BLOCK):
        last = min(first + BLOCK, values.size)
        step = _steps(begins, first, last)
        if 0 <= step <= 1 and _steps(ends, first, last) == 1:
            size = last - first
            leaving = elements[begin : begin + size * step]
            _moved(elements[end : end + size], leaving, anchor, uppers, rests)
            upper, rest = _accumulated(uppers, size, upper), _accumulated(rests, size, rest)
            begin, end = begins[last - 1], ends[last - 1]
        else:
            for i in range(first, last):
                upper, rest = _add_range(elements, end, ends[i], 1.0, upper, rest, anchor, most)
                upper, rest = _add_range(elements, begin, begins[i], -1.0, upper, rest, anchor, most)
                begin, end = begins[i], ends[i]
                uppers[i - first] = upper
                rests[i - first] = rest
        carried = (rest + anchor) - anchor
        upper += carried
        rest -= carried
        if abs(upper) > most:
            return False
        if plain:
            out = values[first:last]
            for i in range(out.size):
                out[i] = uppers[i] + rests[i]
        else:
            for i in range(first, last):
                if form[0] >= _SINGLE:
                    value = _quotient(uppers[i - first], rests[i - first], divisors[i])
                    value = _as_single(value) if form[0] == _SINGLE else value
                    if value == value:  # noqa: PLR0124 - not NaN
                        values[i] = value
                        continue
                values[i] = rounded_levels(
                    np.int64(uppers[i - first] * scale_upper), BELOW, np.int64(rests[i - first] * scale_rest), unit,
                    divisors[i], form,
                )  # fmt: skip
    return True


@jit
def add_pattern(limbs: Any, pattern: Any, sign: Any, origin: Any) -> None:
    exponent = (pattern >> 52) & 0x7FF
    significand = pattern & 0xFFFFFFFFFFFFF
    if exponent:
        significand |= 1 << 52
    if pattern < 0:
        significand = -significand
    deposit(limbs, sign * significand, clamped_exponent(exponent) - 1075 - origin)


@jit
def slide_limbs(
    patterns: Any, begins: Any, ends: Any, begin: Any, end: Any, limbs: Any, space: Any, origin: Any, divisors: Any,
    form: Any, values: Any,
) -> None:  # fmt: skip
    """The same of elements of any exponents. `limbs` are the sum of those from `begin` to `end` in units of
    2**`origin`, and `space` is as long."""
    left = CARRY
    for i in range(values.size):
        while end < ends[i]:
            if patterns[end] & MAGNITUDE:
                add_pattern(limbs, patterns[end], 1, origin)
            end += 1
            left -= 1
            if left <= 0:
                resolve(limbs)
                left = CARRY
        while begin < begins[i]:
            if patterns[begin] & MAGNITUDE:
                add_pattern(limbs, patterns[begin], -1, origin)
            begin += 1
            left -= 1
            if left <= 0:
                resolve(limbs)
                left = CARRY
        for k in range(limbs.size):
            space[k] = limbs[k]
        resolve(space)
        values[i] = rounded_limbs(space, origin, NOT_NEGATIVE_ZERO, divisors[i], form)


@jit
def spans_of_times(times: Any, bounds: Any, reach: Any, own: Any, begins: Any, ends: Any) -> Any:
    """Where the window of each element begins and ends: the elements of its line whose times are no more than `reach`
    before its own, and with `own` those of its own time, too. The first element whose time is less than that of the one
    before it, or −1."""
    for line in range(bounds.size - 1):
        begin, end = bounds[line], bounds[line]
        for i in range(bounds[line], bounds[line + 1]):
            now = times[i]
            if i > bounds[line] and now < times[i - 1]:
                return i
            while end < bounds[line + 1] and (times[end] < now or (own and times[end] == now)):
                end += 1
            while begin < end and np.uint64(now) - np.uint64(times[begin]) > np.uint64(reach):
                begin += 1
            begins[i], ends[i] = begin, end
    return -1


@jit
def slide_least(keys: Any, begins: Any, ends: Any, fronts: Any, none: Any, least: Any) -> None:
    """least[i] = the least of keys[begins[i] : ends[i]], or `none`. A window has a front part, of which `fronts` has
    the least key from each place on, and a back part that grows. Once the front part has left, all that is there
    becomes one. `fronts` has room for the keys from the first begin to the last end."""
    first = begins[0]
    end, middle, back = first, first, none
    for i in range(least.size):
        start, stop = begins[i], ends[i]
        for k in range(end, stop):
            back = min(back, keys[k])
        end = stop
        if start >= middle:
            back = none
            for k in range(end - 1, start - 1, -1):
                back = min(back, keys[k])
                fronts[k - first] = back
            middle, back = end, none
        least[i] = min(fronts[start - first], back) if start < middle else back
