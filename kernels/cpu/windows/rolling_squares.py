"""Sums and sums of squares over windows that move along an array, compiled: what enters a window is added and what
leaves it is subtracted.

Limbs hold all elements exactly. Pairs of float64 (`estimates`) err by a little that is known, so most values of pairs
are certain, and the others are made of limbs.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.estimates import near_quotient, product, quotient
from warpfold.kernels.cpu.windows.levels import clamped_exponent, deposit, resolve
from warpfold.kernels.cpu.windows.nearest import two_sum
from warpfold.kernels.cpu.windows.rolling import CARRY, MAGNITUDE, add_pattern
from warpfold.kernels.machine.jit import jit

MOST_COUNT = 1 << 26
"""The square of a count up to here is a float64."""

LARGEST = 2.0**130
"""Spreads of elements between this and its inverse are such that `estimates` may make certain."""

_STEP = 2.0**-102
"""What a pair loses when an element enters and another leaves is less than this times the magnitudes of all three:
16 u², of which the steps take up to 8 u², where u = 2**−53."""


@jit
def _add_square(limbs: Any, pattern: Any, sign: Any, origin: Any) -> None:
    exponent = (pattern >> 52) & 0x7FF
    significand = pattern & 0xFFFFFFFFFFFFF
    if exponent:
        significand |= 1 << 52
    high, low = significand >> 27, significand & 0x7FFFFFF
    place = 2 * (clamped_exponent(exponent) - 1075) - origin
    deposit(limbs, sign * (low * low), place)
    deposit(limbs, sign * (high * low), place + 28)
    deposit(limbs, sign * (high * high), place + 54)


@jit
def _resolved(limbs: Any, squares: Any, left: Any) -> Any:
    """How many elements may enter or leave before both are resolved, which they are if none may."""
    if left > 0:
        return left
    resolve(limbs)
    resolve(squares)
    return np.int64(CARRY)


@jit
def slide_squares(
    patterns: Any, begins: Any, ends: Any, begin: Any, end: Any, limbs: Any, squares: Any, origin: Any,
    of_values: Any, of_squares: Any,
) -> None:  # fmt: skip
    """of_values[i] and of_squares[i] = the sums of elements[begins[i] : ends[i]] and of their squares, resolved.
    `limbs` and `squares` are those from `begin` to `end`, in units of 2**`origin` and of its square, and stay so."""
    left = CARRY
    for i in range(begins.size):
        while end < ends[i]:
            if patterns[end] & MAGNITUDE:
                add_pattern(limbs, patterns[end], 1, origin)
                _add_square(squares, patterns[end], 1, 2 * origin)
            end += 1
            left = _resolved(limbs, squares, left - 1)
        while begin < begins[i]:
            if patterns[begin] & MAGNITUDE:
                add_pattern(limbs, patterns[begin], -1, origin)
                _add_square(squares, patterns[begin], -1, 2 * origin)
            begin += 1
            left = _resolved(limbs, squares, left - 1)
        for k in range(limbs.size):
            of_values[i, k] = limbs[k]
        for k in range(squares.size):
            of_squares[i, k] = squares[k]
        resolve(of_values[i])
        resolve(of_squares[i])


@jit
def _plus(high: Any, low: Any, other: Any, rest: Any) -> Any:
    """The sum of two pairs."""
    total, lost = two_sum(high, other)
    return two_sum(total, lost + (low + rest))


@jit
def _moved(new: Any, old: Any, centred: Any, state: Any) -> Any:
    """The state of `slide_pairs` after one element enters and another leaves, either of which may be 0."""
    s_high, s_low, s_error, q_high, q_low, q_error = state
    p, e = product(new, new)
    r, f = product(old, old)
    q_error += (np.abs(q_high) + p + r) * _STEP
    d, g = two_sum(p, -r)
    q_high, q_low = _plus(q_high, q_low, d, g + (e - f))
    if centred:
        s_error += (np.abs(s_high) + np.abs(new) + np.abs(old)) * _STEP
        d, g = two_sum(new, -old)
        s_high, s_low = _plus(s_high, s_low, d, g)
    return s_high, s_low, s_error, q_high, q_low, q_error


@jit
def _value(state: Any, count: Any, divisor: Any, centred: Any, root: Any, form: Any) -> Any:
    """Returns whether the value of a window is certain, and that value."""
    s_high, s_low, s_error, q_high, q_low, q_error = state
    m_high, m_low, doubt = 0.0, 0.0, q_error
    if centred:
        p, e = product(s_high, s_high)
        m_high, m_low = quotient(p, e + 2.0 * s_high * s_low, count)
        doubt += (2.0 * np.abs(s_high) + s_error) * s_error / count * (1.0 + 2.0**-40)
    return near_quotient(q_high, q_low, m_high, m_low, doubt, divisor, 0, root, form)


@jit
def slide_pairs(
    elements: Any, begins: Any, ends: Any, begin: Any, end: Any, sums: Any, run: Any, counts: Any, divisors: Any,
    shape: Any, form: Any, values: Any, left: Any,
) -> Any:  # fmt: skip
    """values[i] = (q − m) ÷ divisors[i], or its root, rounded once, where q is the sum of the squares of
    elements[begins[i] : ends[i]], and m is the square of their sum over counts[i], or 0; left[i] is set where that is
    not certain. Nothing is done where the divisor is not above 0. `shape` says whether there is m, and whether the root
    is taken.

    `sums` are those of the elements from `begin` to `end` and of their squares, as pairs, each with a bound of its
    error, and are changed to those of the last window. All elements from `run` to `end` are equal; returns the same
    place for the last window."""
    centred, root = shape
    state = (sums[0], sums[1], sums[2], sums[3], sums[4], sums[5])
    spare = np.int64(0)
    for i in range(values.size):
        start, stop = begins[i], ends[i]
        while end < stop or begin < start:
            new, old = 0.0, 0.0
            if end < stop:
                new = elements[end]
                if end == 0 or new != elements[end - 1]:
                    run = end
                end += 1
                spare += 1
            if begin < start:
                old = elements[begin]
                begin += 1
            state = _moved(new, old, centred, state)
        divisor = divisors[i]
        if not divisor > 0.0:
            continue
        if run <= start and (centred or elements[start] == 0.0):
            values[i] = 0.0
            continue
        count = np.float64(counts[i])
        known, value = _value(state, count, divisor, centred, root, form)
        if not known and spare >= stop - start:
            # What has left may have been so large that its error hides the rest: the window is added up anew.
            spare = np.int64(0)
            state = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for k in range(start, stop):
                state = _moved(elements[k], 0.0, centred, state)
            known, value = _value(state, count, divisor, centred, root, form)
        values[i], left[i] = value, not known
    for k in range(6):
        sums[k] = state[k]
    return run
