"""The element formulas of `kernels.generate.plan`, compiled: each fills out[k] for element index start + k.

Philox4x32-10 is the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3" (SC'11): key = the seed's two words, counter = (index low, index high, stream 0, 0).

The CUDA generator repeats these operations in this order, so only correctly rounded ones occur (+, −, ×, ÷, sqrt) and
none may be fused: Numba compiles without fastmath, hence without contraction.
"""

# ruff: noqa: PLR0917 - Numba dispatches positional arguments faster, and these are called once a tile

import math
from typing import Any

import numba
import numpy as np

from warpfold.kernels.machine.jit import jit

_WORD = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_11 = np.uint64(11)
_ONE = np.uint64(1)

# Philox4x32: the two multipliers and the two Weyl increments of the key.
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)

_FRACTION = np.int64(0x000FFFFFFFFFFFFF)
_EXPONENT_OF_ONE = np.int64(0x3FF0000000000000)
_LN2 = math.log(2.0)  # 0x1.62e42fefa39efp-1
_SQRT2 = math.sqrt(2.0)  # 0x1.6a09e667f3bcdp+0
_TWO_PI = 2.0 * math.pi  # 0x1.921fb54442d18p+2
_LOG2_E = 1.0 / math.log(2.0)  # 0x1.71547652b82fep+0
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 32 bits: its product with an integer below 2**21 is exact
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")  # ln 2 − _LN2_HIGH, rounded
_ROUND = 1.5 * 2.0**52  # adding and subtracting it rounds to an integer
_ULP = 2.0**-53

_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17, _S19, _S21 = (
    (-1.0) ** (k // 2) / math.factorial(k) for k in range(3, 22, 2)
)
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19, _L21 = (1.0 / k for k in range(3, 22, 2))
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13, _E14 = (1.0 / math.factorial(k) for k in range(2, 15))

_inline = numba.njit(nogil=True, inline="always", error_model="numpy")


@_inline
def _words(index: Any, key0: Any, key1: Any) -> Any:
    """The four 32-bit words of Philox4x32-10 at counter (index, stream 0), each in a uint64."""
    c0, c1, c2, c3 = index & _WORD, index >> _32, np.uint64(0), np.uint64(0)
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ key0, p1 & _WORD, (p0 >> _32) ^ c3 ^ key1, p0 & _WORD
        key0 = (key0 + _W0) & _WORD
        key1 = (key1 + _W1) & _WORD
    return c0, c1, c2, c3


@_inline
def _unit(high: Any, low: Any) -> Any:
    """u: 53 bits of two words as a multiple of 2**-53 in [0, 1)."""
    return np.float64(np.int64(((high << _32) | low) >> _11)) * _ULP


@_inline
def _log(v: Any) -> Any:
    """ln v for a normal v > 0: v = m·2**e with m in [√½, √2), ln m = 2 artanh((m−1)/(m+1)) to the term s²¹.

    |s| ≤ 0.1716, so the first term left out is below 6e-19 of the sum.
    """
    bits = np.float64(v).view(np.int64)
    m = np.int64((bits & _FRACTION) | _EXPONENT_OF_ONE).view(np.float64)
    e = np.float64((bits >> np.int64(52)) - np.int64(1023))
    large = m >= _SQRT2
    m = m * 0.5 if large else m
    e = e + 1.0 if large else e
    f = m - 1.0
    s = f / (2.0 + f)
    t = s * s
    p = _L19 + t * _L21
    p = _L17 + t * p
    p = _L15 + t * p
    p = _L13 + t * p
    p = _L11 + t * p
    p = _L9 + t * p
    p = _L7 + t * p
    p = _L5 + t * p
    p = _L3 + t * p
    p = 1.0 + t * p
    return e * _LN2 + (s + s) * p


@_inline
def _cos_turn(u: Any) -> Any:
    """cos(2π u) for u in [0, 1) as sin(2π w), w = |u − ½| − ¼ in [−¼, ¼] exactly; Taylor's series to the term x²¹.

    |x| ≤ π/2, so the first term left out is below 2e-18.
    """
    x = _TWO_PI * (abs(u - 0.5) - 0.25)
    t = x * x
    p = _S19 + t * _S21
    p = _S17 + t * p
    p = _S15 + t * p
    p = _S13 + t * p
    p = _S11 + t * p
    p = _S9 + t * p
    p = _S7 + t * p
    p = _S5 + t * p
    p = _S3 + t * p
    return x + x * (t * p)


@_inline
def _exp(y: Any) -> Any:
    """e**y for |y| < 1100: y = k·ln 2 + r with |r| ≤ 0.35, Taylor's series to r¹⁴, scaled in two exact steps but the
    last (which rounds once where the result is subnormal). The first term left out is below 2e-19."""
    shifted = y * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (y - k * _LN2_HIGH) - k * _LN2_LOW
    p = _E13 + r * _E14
    p = _E12 + r * p
    p = _E11 + r * p
    p = _E10 + r * p
    p = _E9 + r * p
    p = _E8 + r * p
    p = _E7 + r * p
    p = _E6 + r * p
    p = _E5 + r * p
    p = _E4 + r * p
    p = _E3 + r * p
    p = _E2 + r * p
    p = 1.0 + r * p
    p = 1.0 + r * p
    whole = np.int64(k)
    half = whole >> np.int64(1)
    first = np.int64((half + np.int64(1023)) << np.int64(52)).view(np.float64)
    second = np.int64((whole - half + np.int64(1023)) << np.int64(52)).view(np.float64)
    return (p * first) * second


@_inline
def _gauss(index: Any, key0: Any, key1: Any) -> Any:
    """z: one normal an index, the cosine half of Box and Muller's pair."""
    w0, w1, w2, w3 = _words(index, key0, key1)
    v = np.float64(np.int64((((w2 << _32) | w3) >> _11) + _ONE)) * _ULP
    return math.sqrt(-2.0 * _log(v)) * _cos_turn(_unit(w0, w1))


@jit
def fill_words(out: Any, start: Any, key0: Any, key1: Any) -> None:
    """out, shape (n, 4), uint32: the Philox words themselves."""
    for k in range(out.shape[0]):
        w0, w1, w2, w3 = _words(start + np.uint64(k), key0, key1)
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = w0, w1, w2, w3


@jit
def fill_uniform(out: Any, start: Any, key0: Any, key1: Any, a: float, b: float, c: float) -> None:
    for k in range(out.size):
        w0, w1, _w2, _w3 = _words(start + np.uint64(k), key0, key1)
        x = a + b * _unit(w0, w1)
        out[k] = x if x < c else c


@jit
def fill_normal(out: Any, start: Any, key0: Any, key1: Any, a: float, b: float) -> None:
    for k in range(out.size):
        out[k] = a + b * _gauss(start + np.uint64(k), key0, key1)


@jit
def fill_lognormal(out: Any, start: Any, key0: Any, key1: Any, a: float, b: float) -> None:
    for k in range(out.size):
        out[k] = _exp(a + b * _gauss(start + np.uint64(k), key0, key1))


@jit
def fill_mixed(out: Any, start: Any, key0: Any, key1: Any, a: float, b: float) -> None:
    for k in range(out.size):
        w0, w1, _w2, w3 = _words(start + np.uint64(k), key0, key1)
        u = _unit(w0, w1)
        large = 1e6 + a * u
        small = 1e-3 + b * u
        out[k] = large if w3 & _ONE else small


@jit
def fill_ill_conditioned(out: Any, start: Any, key0: Any, key1: Any, a: float, third: Any) -> None:
    for k in range(out.size):
        index = start + np.uint64(k)
        plus = index < third
        minus = (not plus) and index < third + third
        source = index - third if minus else index
        w0, w1, _w2, _w3 = _words(source, key0, key1)
        x = 1.0 + _unit(w0, w1)
        scaled = a * x
        out[k] = scaled if plus else (-scaled if minus else x)


@jit
def fill_integers(out: Any, start: Any, key0: Any, key1: Any, low: Any, span: Any) -> None:
    """out, uint64: low + ⌊word·span / 2⁶⁴⌋ mod 2⁶⁴, the 128-bit product from four 32-bit ones; span 0 means 2⁶⁴.

    Each value's probability is within 2⁻⁶⁴ of 1/span.
    """
    s0, s1 = span & _WORD, span >> _32
    whole = span == np.uint64(0)
    for k in range(out.size):
        w0, w1, _w2, _w3 = _words(start + np.uint64(k), key0, key1)
        middle = w0 * s0 + ((w1 * s0) >> _32)
        other = w1 * s1 + (middle & _WORD)
        high = w0 * s1 + (middle >> _32) + (other >> _32)
        out[k] = low + (((w0 << _32) | w1) if whole else high)


@jit
def fill_bits(out: Any, start: Any, key0: Any, key1: Any, width: Any, fraction: Any, span: Any) -> None:
    """out, uint64: the bits of a float of `width` bits with `fraction` significand bits, exponent field below span."""
    mask = (_ONE << fraction) - _ONE
    for k in range(out.size):
        w0, w1, w2, w3 = _words(start + np.uint64(k), key0, key1)
        sign = (w1 >> np.uint64(31)) << (width - _ONE)
        out[k] = sign | (((w0 * span) >> _32) << fraction) | (((w2 << _32) | w3) & mask)
