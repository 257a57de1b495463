"""Variances, deviations and norms from pairs of float64, compiled: most values are certain without the digits of their
sums.

A pair is high + low, where high is the float64 nearest to the pair. Each step on pairs errs by a few units of 2**−106
of its result, and `_ERROR` is more than all these errors together. So a value lies between two bounds. Where both
bounds round to the same float, that float is the value as `kernels.exact.finish` defines it. All other values are left
to `spreads.py`.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.encoding import HEAD, SIGN, word_at
from warpfold.kernels.cpu.windows.float64 import SPLITTER
from warpfold.kernels.cpu.windows.levels import DIGIT
from warpfold.kernels.cpu.windows.nearest import power, two_sum
from warpfold.kernels.machine.jit import jit

_ERROR = 2.0**-98

_LARGE = 2.0**106
"""Smaller integers are pairs without an error."""

_SHIFT = 2.0**32

_LEAST, _MOST = 2.0**-300, 2.0**300
"""No product of parts of numbers between these leaves the normal float64."""

_MOST_PLACES = 900
"""Powers of 2 up to this exponent, and their inverses, are normal float64 with room for the factors beside them."""

_PLACES_OF_SQUARES = 600
"""Places that are left for the square of a number of `pair_of`, which is below 2**139."""


@jit
def pair_of(limbs: Any) -> Any:
    """Returns high, low and k: the sum of resolved limbs is nearly (high + low) · 2**(32 k), and exactly that below
    2**106."""
    last = limbs.size - 1
    above = limbs[last] >> 32
    high, low = np.float64(above), 0.0
    k = last + 1
    if above in (0, -1):  # digits that only repeat the sign; a sum of all exponents has a hundred
        while k > 0 and limbs[k - 1] & DIGIT == above & DIGIT:
            k -= 1
    while k > 0 and np.abs(high) < _LARGE:
        k -= 1
        digit = np.float64(limbs[k] & DIGIT)  # the last limb may be longer than a digit
        total, rest = two_sum(high * _SHIFT, digit)
        high, low = two_sum(total, low * _SHIFT + rest)
    return high, low, k


@jit
def product(a: Any, b: Any) -> Any:
    """a · b as a pair, exactly (Dekker 1971)."""
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    p = a * b
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@jit
def quotient(high: Any, low: Any, divisor: Any) -> Any:
    """(high + low) ÷ divisor as a pair."""
    about = high / divisor
    p, e = product(about, divisor)
    return two_sum(about, (((high - p) - e) + low) / divisor)


@jit
def _root(high: Any, low: Any) -> Any:
    """√(high + low) as a pair."""
    about = np.sqrt(high)
    p, e = product(about, about)
    return two_sum(about, (((high - p) - e) + low) / (2.0 * about))


@jit
def _beside(x: Any, step: Any) -> Any:
    """The float64 that comes `step` numbers after x > 0, or before x where `step` is negative."""
    return np.int64(np.float64(x).view(np.int64) + step).view(np.float64)


@jit
def _to_places(x: Any, spare: Any) -> Any:
    """x > 0 rounded to 53 − spare significant bits, ties to even."""
    if spare == 0:
        return x
    bits = np.float64(x).view(np.int64)
    bits += (np.int64(1) << (spare - 1)) - 1 + ((bits >> spare) & 1)
    return np.int64(bits >> spare << spare).view(np.float64)


@jit
def near_spread(
    values: Any, squares: Any, places: Any, origin: Any, count: Any, ddof: Any, root: Any, form: Any
) -> Any:
    """Returns whether the variance of `count` elements, or with `root` their deviation, is certain, and that value
    rounded once. The arguments are those of `spreads.round_spreads`, for one value."""
    s_high, s_low, s_place = pair_of(values)
    q_high, q_low, q_place = pair_of(squares)
    unit = origin + 32 * (places[1] + q_place)
    apart = origin + 64 * (places[0] + s_place) - unit
    if not -_MOST_PLACES < apart < _MOST_PLACES - _PLACES_OF_SQUARES:
        return False, 0.0
    # m = (Σx)² ÷ n in the unit of Σx².
    p, e = product(s_high, s_high)
    m_high, m_low = quotient(p, e + 2.0 * s_high * s_low, np.float64(count))
    scale = power(apart)
    m_high, m_low = m_high * scale, m_low * scale
    return near_quotient(q_high, q_low, m_high, m_low, 0.0, np.float64(count - ddof), unit, root, form)


@jit
def near_quotient(
    q_high: Any, q_low: Any, m_high: Any, m_low: Any, doubt: Any, divisor: Any, unit: Any, root: Any, form: Any
) -> Any:
    """Returns whether (q − m) ÷ divisor, or with `root` its root, is certain, and that value rounded once. q and m are
    pairs in units of 2**`unit`, 0 ≤ m ≤ q, of which the difference errs by up to `doubt` beside the errors of steps on
    pairs; `divisor` is a whole number."""
    d, e = two_sum(q_high, -m_high)
    d, e = two_sum(d, e + (q_low - m_low))
    high, low = quotient(d, e, divisor)
    error = ((q_high + m_high) * _ERROR + doubt) / divisor
    if not (_LEAST < high < _MOST and error < high):
        return False, 0.0
    if root:
        if unit & 1:
            high, low, error, unit = 2.0 * high, 2.0 * low, 2.0 * error, unit - 1
        high, low = _root(high, low)
        error = error / high + high * _ERROR
        unit >>= 1
    return rounded_pair(high, low, error, unit, form)


@jit
def rounded_pair(high: Any, low: Any, error: Any, unit: Any, form: Any) -> Any:
    """Returns whether (high + low) · 2**`unit` > 0, which errs by up to `error` · 2**`unit`, is certain once it is
    rounded, and that value."""
    precision, least, most = form
    place = (np.float64(high).view(np.int64) >> 52) - 1023 + unit  # 2**place ≤ the value, nearly
    if not (-_MOST_PLACES < unit < _MOST_PLACES and least + precision < place < most - 2):
        return False, 0.0
    below, above = high + (low - error), high + (low + error)
    if precision < 53:  # a bound is at most one float64 beside the float64 nearest to it
        below, above = _beside(below, -1), _beside(above, 1)
    below, above = _to_places(below, 53 - precision), _to_places(above, 53 - precision)
    return below == above, below * power(unit // 2) * power(unit - unit // 2)


@jit
def pairs_of_states(data: Any, offsets: Any, highs: Any, lows: Any, places: Any, flags: Any) -> None:
    """The sums of states, whose bytes are sound, as pairs: (highs[i] + lows[i]) · 2**(32 places[i]) units; and their
    flags."""
    limbs = np.zeros(512, np.int64)
    for i in range(highs.size):
        at = offsets[i]
        stored = word_at(data, at + 18, 2)
        for k in range(stored):
            limbs[k] = word_at(data, at + HEAD + 4 * k, 4)
        if stored and limbs[stored - 1] & SIGN:
            limbs[stored - 1] -= DIGIT + 1
        highs[i], lows[i], places[i] = pair_of(limbs[:stored]) if stored else (0.0, 0.0, 0)
        places[i] += word_at(data, at + 16, 2)
        flags[i] = data[at + 6]


@jit
def round_pairs(highs: Any, lows: Any, errors: Any, units: Any, form: Any, values: Any, certain: Any) -> None:
    """values[i] = (highs[i] + lows[i]) · 2**units[i], rounded once, where certain[i] stays set: where the error of that
    pair leaves no doubt."""
    for i in range(values.size):
        high, low = np.abs(highs[i]), lows[i] if highs[i] > 0 else -lows[i]
        if not (certain[i] and _LEAST < high < _MOST and errors[i] < high):
            certain[i] = False
            continue
        certain[i], value = rounded_pair(high, low, errors[i], units[i], form)
        values[i] = value if highs[i] > 0 else -value
