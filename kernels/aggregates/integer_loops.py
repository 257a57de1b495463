"""Compiled sums of integers: exact, in digits of 32 bits.

A row of `sums` (int64) has the digits s₀, s₁, … of a group, whose sum is Σ sₖ · 2**(32 k), and behind them how many
elements it has. The last digit has the sign. Every addend of a digit is below 3 · 2**32 in magnitude, and digits are
carried after MAX_ELEMENTS of them, so that none passes 2**62.

Words are int32, or int64 of integers that int32 does not hold; with `unsigned` the latter are patterns of uint64. What
is added up are the words (VALUES), their magnitudes or their squares.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.machine.jit import jit

VALUES, MAGNITUDES, SQUARES = 0, 1, 2
"""What is added up."""

MAX_ELEMENTS = 1 << 28
_MOST = MAX_ELEMENTS - 1

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else
_LOW = np.int64(0xFFFFFFFF)
_LOWU = np.uint64(0xFFFFFFFF)
_32U = np.uint64(32)


@jit
def _carry(digits: Any) -> None:
    for k in range(digits.size - 2):
        digits[k + 1] += digits[k] >> 32
        digits[k] &= _LOW


@jit
def _halves(x: Any, unsigned: Any, magnitudes: Any) -> Any:
    """Σ of the lower halves of words, and of the upper ones."""
    low, high = np.int64(0), np.int64(0)
    if magnitudes:
        for i in range(x.size):
            v = np.int64(x[i])
            sign = v >> 63
            v = (v ^ sign) - sign  # |−2**63| has the pattern of 2**63
            low += v & _LOW
            high += np.int64(_U(v) >> _32U)
    elif unsigned:
        for i in range(x.size):
            v = np.int64(x[i])
            low += v & _LOW
            high += np.int64(_U(v) >> _32U)
    else:
        for i in range(x.size):
            v = np.int64(x[i])
            low += v & _LOW
            high += v >> 32
    return low, high


@jit
def _square(v: Any, unsigned: Any) -> Any:
    """Digits of v² in base 2**32, not carried: |v| = h·2**32 + l, v² = h²·2**64 + 2hl·2**32 + l²."""
    sign = np.int64(0) if unsigned else v >> 63
    m = _U((v ^ sign) - sign)
    h, l = m >> _32U, m & _LOWU  # noqa: E741 - high and low
    hh, hl, ll = h * h, h * l, l * l
    twice = hl << np.uint64(1)
    middle = (ll >> _32U) + (twice & _LOWU)
    high = (twice >> _32U) + (hh & _LOWU)
    top = (hl >> np.uint64(63)) + (hh >> _32U)
    return np.int64(ll & _LOWU), np.int64(middle), np.int64(high), np.int64(top)


@jit
def add_rows(words: Any, edges: Any, outputs: Any, what: Any, unsigned: Any, sums: Any) -> None:
    """Add words[edges[r]:edges[r + 1]] to the group outputs[r] of `sums`, for every row r. A row has at most
    MAX_ELEMENTS words."""
    for r in range(outputs.size):
        row, digits = words[edges[r] : edges[r + 1]], sums[outputs[r]]
        if what == SQUARES:
            a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            for i in range(row.size):
                e, f, g, h = _square(np.int64(row[i]), unsigned)
                a, b, c, d = a + e, b + f, c + g, d + h
            digits[2] += c
            digits[3] += d
        else:
            a, b = _halves(row, unsigned, what == MAGNITUDES)
        digits[0] += a
        digits[1] += b
        digits[digits.size - 1] += row.size
        _carry(digits)


@jit
def add_products_of_rows(x: Any, y: Any, edges: Any, outputs: Any, x_unsigned: Any, y_unsigned: Any, sums: Any) -> None:
    """Do what `add_rows` does for products of int64, of whose factors each is signed or unsigned: products of
    magnitudes, with signs."""
    for r in range(outputs.size):
        left, right, digits = x[edges[r] : edges[r + 1]], y[edges[r] : edges[r + 1]], sums[outputs[r]]
        a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for i in range(left.size):
            x_sign = np.int64(0) if x_unsigned else left[i] >> 63
            y_sign = np.int64(0) if y_unsigned else right[i] >> 63
            m, n = _U((left[i] ^ x_sign) - x_sign), _U((right[i] ^ y_sign) - y_sign)
            m_low, m_high, n_low, n_high = m & _LOWU, m >> _32U, n & _LOWU, n >> _32U
            low, cross, other, high = m_low * n_low, m_low * n_high, m_high * n_low, m_high * n_high
            sign = np.int64(1) + 2 * (x_sign ^ y_sign)
            a += sign * np.int64(low & _LOWU)
            b += sign * np.int64((low >> _32U) + (cross & _LOWU) + (other & _LOWU))
            c += sign * np.int64((cross >> _32U) + (other >> _32U) + (high & _LOWU))
            d += sign * np.int64(high >> _32U)
        digits[0] += a
        digits[1] += b
        digits[2] += c
        digits[3] += d
        digits[digits.size - 1] += left.size
        _carry(digits)


@jit
def add_ids(words: Any, ids: Any, what: Any, unsigned: Any, sums: Any) -> None:
    """Add words[i] to the group ids[i] of `sums`, for every i."""
    if what == SQUARES:
        for i in range(words.size):
            g = _U(ids[i])
            a, b, c, d = _square(np.int64(words[i]), unsigned)
            sums[g, _U(0)] += a
            sums[g, _U(1)] += b
            sums[g, _U(2)] += c
            sums[g, _U(3)] += d
            count = sums[g, _U(5)] + 1
            sums[g, _U(5)] = count
            if count & _MOST == 0:
                _carry(sums[g])
        return
    magnitudes = what == MAGNITUDES
    logical = unsigned or magnitudes
    for i in range(words.size):
        g, v = _U(ids[i]), np.int64(words[i])
        if magnitudes and v < 0:
            v = -v  # |−2**63| has the pattern of 2**63
        sums[g, _U(0)] += v & _LOW
        sums[g, _U(1)] += np.int64(_U(v) >> _32U) if logical else v >> 32
        count = sums[g, _U(3)] + 1
        sums[g, _U(3)] = count
        if count & _MOST == 0:
            _carry(sums[g])


@jit
def merge_sums(theirs: Any, ids: Any, mine: Any) -> None:
    """Add row g of `theirs` to row ids[g] of `mine`."""
    last = mine.shape[1] - 2
    for g in range(ids.size):
        digits, carry = mine[ids[g]], np.int64(0)
        for k in range(last):
            carry += theirs[g, k]
            digits[k] += carry & _LOW
            carry >>= 32
        digits[last] += theirs[g, last] + carry
        digits[last + 1] += theirs[g, last + 1]
        _carry(digits)


@jit
def carry_all(sums: Any) -> None:
    """Bring all digits of all groups but the last one of each into 0 … 2**32 − 1."""
    for g in range(sums.shape[0]):
        _carry(sums[g])
