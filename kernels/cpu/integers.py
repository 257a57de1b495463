"""Exact sums of integers, compiled: each in 32-bit halves, so that no partial sum overflows.

A function returns partial sums s₀, s₁, … with Σ = Σ sₖ · 2**(32 k). Every addend is below 2**33 in magnitude and there
are at most MAX_ELEMENTS = 2**28 elements: no partial sum passes 2**61. Of products of two arrays an addend is below
3 · 2**32: none passes 2**62.
"""

from typing import Any

import numpy as np

from warpfold.kernels.jit import jit

MAX_ELEMENTS = 1 << 28

_LOW = np.int64(0xFFFFFFFF)
_LOWU = np.uint64(0xFFFFFFFF)
_32U = np.uint64(32)


@jit
def add_signed(x: Any) -> Any:
    """Σ x of signed integers."""
    middle, low = np.int64(0), np.int64(0)
    for i in range(x.size):
        v = np.int64(x[i])
        low += v & _LOW
        middle += v >> 32
    return low, middle


@jit
def add_unsigned(x: Any) -> Any:
    """Σ x of unsigned integers."""
    middle, low = np.uint64(0), np.uint64(0)
    for i in range(x.size):
        v = np.uint64(x[i])
        low += v & _LOWU
        middle += v >> _32U
    return low, middle


@jit
def add_magnitudes(x: Any) -> Any:
    """Σ |x| of signed integers; |−2**63| is 2**63 as an unsigned integer."""
    middle, low = np.uint64(0), np.uint64(0)
    for i in range(x.size):
        v = np.int64(x[i])
        sign = v >> 63
        m = np.uint64((v ^ sign) - sign)
        low += m & _LOWU
        middle += m >> _32U
    return low, middle


@jit
def _square(m: Any) -> Any:
    """Digits of m² in base 2**32, not carried: m = h·2**32 + l, m² = h²·2**64 + 2hl·2**32 + l²."""
    h, l = m >> _32U, m & _LOWU  # noqa: E741 - high and low
    hh, hl, ll = h * h, h * l, l * l
    twice = hl << np.uint64(1)
    middle = (ll >> _32U) + (twice & _LOWU)
    high = (twice >> _32U) + (hh & _LOWU)
    return ll & _LOWU, middle, high, (hl >> np.uint64(63)) + (hh >> _32U)


@jit
def add_unsigned_squares(x: Any) -> Any:
    """Σ x² of unsigned integers."""
    a, b, c, d = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(x.size):
        low, middle, high, top = _square(np.uint64(x[i]))
        a, b, c, d = a + low, b + middle, c + high, d + top
    return a, b, c, d


@jit
def add_signed_squares(x: Any) -> Any:
    """Σ x² of signed integers: the squares of their magnitudes."""
    a, b, c, d = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(x.size):
        v = np.int64(x[i])
        sign = v >> 63
        low, middle, high, top = _square(np.uint64((v ^ sign) - sign))
        a, b, c, d = a + low, b + middle, c + high, d + top
    return a, b, c, d


@jit
def add_products(x: Any, y: Any, x_signed: Any, y_signed: Any) -> Any:
    """Σ x·y of 64-bit patterns (int64), each array signed or unsigned: products of magnitudes, with signs."""
    a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(x.size):
        x_sign = x[i] >> 63 if x_signed else np.int64(0)
        y_sign = y[i] >> 63 if y_signed else np.int64(0)
        m, n = np.uint64((x[i] ^ x_sign) - x_sign), np.uint64((y[i] ^ y_sign) - y_sign)
        m_low, m_high, n_low, n_high = m & _LOWU, m >> _32U, n & _LOWU, n >> _32U
        low, cross, other, high = m_low * n_low, m_low * n_high, m_high * n_low, m_high * n_high
        sign = np.int64(1) + 2 * (x_sign ^ y_sign)
        a += sign * np.int64(low & _LOWU)
        b += sign * np.int64((low >> _32U) + (cross & _LOWU) + (other & _LOWU))
        c += sign * np.int64((cross >> _32U) + (other >> _32U) + (high & _LOWU))
        d += sign * np.int64(high >> _32U)
    return a, b, c, d
