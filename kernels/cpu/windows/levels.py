"""Exact sums of floats level by level, compiled: what the sums of every format have in common.

The method. A tile of at most 4096 elements is bounded by its largest and its smallest non-zero magnitude: every element
is a multiple of 2**unit and below 2**top. What is added are fixed-point images of the elements, in most cases while the
bounds are found (`vectors`). With M = 1.5·2**(52+b), the float64 sum t = d + M of an element
|d| ≤ 2**(b+50) lies strictly inside [2**(52+b), 2**(53+b)], where float64 is spaced 2**b; so t = M + k·2**b, k being d
rounded to a multiple of 2**b, |k| ≤ 2**50, and as patterns of bits, bits(t) = bits(M) + k. Adding the patterns as
integers modulo 2**64 and taking n·bits(M) away leaves Σ k exactly: |Σ k| ≤ 2**12 · 2**50 = 2**62. What a level does not
hold, r = d − (t − M), is exact (Dekker 1971, Sterbenz: t − M = k·2**b is a float64, and d − k·2**b is a multiple of d's
last place no larger than d) and |r| ≤ 2**(b−1) = 2**((b−51)+50): the next level, 51 binary places lower, takes it the
same way. The last level has b = unit, so that nothing is left.

    one level  holds top − unit ≤ 50, that is 27 binades of float32, 43 of bfloat16, and all of float16
    L levels   hold  top − unit ≤ 50 + 51·(L − 1); all of float32 needs 277: six levels

Integer additions may be reordered, so every loop is one of vectors without any licence to reorder floating point.

Squares and products of 24-bit significands are float64 numbers; those of 53 bits are split in two, exactly (Dekker
1971), each added by its own levels. A tile of products is bounded by the sums of its factors' exponents.

A limb is a digit of 32 bits in an int64. A deposit adds less than 2**33 to a limb, a call makes fewer than
4 · MAX_ELEMENTS = 2**26 of them on limbs below 2**32: no limb passes 2**60 before the carries are resolved.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.vector_code import LANES
from warpfold.kernels.cpu.windows.vectors import take_two_levels
from warpfold.kernels.exact.encoding import Flags
from warpfold.kernels.machine.jit import jit

TILE32 = 4096  # 16 KiB of float32, 8 of the 16-bit formats
TILE64 = 2048  # 16 KiB of float64
MAX_ELEMENTS = 1 << 24
LIMBS = 136  # 134 digits of products, and two that a deposit's place may reach beyond

NAN, POS_INF, NEG_INF = int(Flags.NAN), int(Flags.POS_INF), int(Flags.NEG_INF)
NOT_NEGATIVE_ZERO = int(Flags.NOT_NEGATIVE_ZERO)

HELD = 50  # binary places of the first level above its unit, and with rounding of every other
STEP = 51

DIGIT = np.int64(0xFFFFFFFF)


@jit
def resolve(limbs: Any) -> None:
    """Carry, so that every limb but the last is in 0 … 2**32 − 1; the last takes the sign."""
    for k in range(limbs.size - 1):
        carry = limbs[k] >> 32
        limbs[k] &= DIGIT
        limbs[k + 1] += carry


@jit
def deposit(limbs: Any, value: Any, place: Any) -> None:
    """limbs += value · 2**place, for any int64 value and place ≥ 0."""
    at = place >> 5
    shift = place & 31
    low = (value & DIGIT) << shift  # 0 … 2**63 − 1
    high = (value >> 32) << shift  # −2**62 … 2**62 − 1
    limbs[at] += low & DIGIT
    limbs[at + 1] += (low >> 32) + (high & DIGIT)
    limbs[at + 2] += high >> 32


@jit
def clamped_exponent(exponent: Any) -> Any:
    """A biased exponent, where that of the subnormals counts as 1: they are spaced as the smallest normals are."""
    return exponent if exponent > 1 else np.int64(1)


@jit
def anchor_at(b: Any) -> float:
    """M = 1.5·2**(52+b)."""
    return np.int64(((np.int64(b) + 1075) << 52) | 0x0008000000000000).view(np.float64)


@jit
def counted(patterns: Any, count: Any, anchor: Any) -> Any:
    """Σ k from Σ bits(t): the anchors' own bits taken away, modulo 2**64."""
    return np.int64(patterns - np.uint64(count) * np.float64(anchor).view(np.uint64))


@jit
def add_levels(rest: Any, count: Any, top: Any, unit: Any, origin: Any, limbs: Any) -> None:
    """Deposit Σ rest[:count], multiples of 2**unit below 2**top, two levels at a time; spoils `rest`, which has room
    for a multiple of LANES."""
    size = (count + LANES - 1) // LANES * LANES
    for i in range(count, size):
        rest[i] = 0.0
    b = max(top - HELD, unit)
    while True:
        below = max(b - STEP, unit)
        anchor, second = anchor_at(b), anchor_at(below)
        upper, lower = take_two_levels(rest, size, anchor, second)
        deposit(limbs, counted(upper, size, anchor), b - origin)
        deposit(limbs, counted(lower, size, second), below - origin)
        if below == unit:
            return
        b = max(below - STEP, unit)


@jit
def bounds(tile: Any) -> Any:
    """Largest magnitude's bits, and the smallest non-zero one's less 1 (that of a zero is the largest there is)."""
    word = tile.dtype.type  # Numba computes in 64 bits unless told, and a vector would hold fewer
    magnitude = word(np.iinfo(tile.dtype).max)
    most = word(0)
    least = magnitude
    for i in range(tile.size):
        a = word(tile[i] & magnitude)
        most = a if a > most else most
        c = word(word(a - word(1)) & magnitude)
        least = c if c < least else least
    return np.int64(most), np.int64(least)


@jit
def padded(tile: Any, spare: Any) -> Any:
    """A copy of a tile in `spare`, with −0 behind it, so that its size is a multiple of LANES."""
    size = (tile.size + LANES - 1) // LANES * LANES
    for i in range(size):  # Numba takes seconds to compile the assignment of a slice
        spare[i] = tile[i] if i < tile.size else np.iinfo(tile.dtype).min
    return spare[:size]


@jit
def clean(tile: Any, infinity: Any, out: Any) -> Any:
    """Copy with NaN and infinities as +0, to `out` or in place; returns the flags they raise."""
    magnitude = np.iinfo(tile.dtype).max
    flags = 0
    for i in range(tile.size):
        pattern = tile[i]
        a = pattern & magnitude
        out[i] = pattern if a < infinity else 0
        if a > infinity:
            flags |= NAN
        elif a == infinity:
            flags |= NEG_INF if pattern < 0 else POS_INF
    return flags


@jit
def special_pairs(x: Any, y: Any, infinity_x: Any, infinity_y: Any, out_x: Any, out_y: Any) -> Any:
    """Copy pairs, those with NaN or ∞ as zeros; returns the flags these raise. NaN · y and ∞ · 0 are NaN."""
    flags = 0
    for i in range(x.size):
        a, b = x[i] & np.iinfo(x.dtype).max, y[i] & np.iinfo(y.dtype).max
        if a < infinity_x and b < infinity_y:
            out_x[i], out_y[i] = x[i], y[i]
            continue
        out_x[i], out_y[i] = 0, 0
        if a > infinity_x or b > infinity_y or a == 0 or b == 0:
            flags |= NAN
        else:
            flags |= NEG_INF if (x[i] ^ y[i]) < 0 else POS_INF
    return flags


@jit
def none_but_negative_zeros(x: Any, y: Any) -> bool:
    """Whether every product is −0; the first that is not ends the search."""
    for i in range(x.size):
        zero = (x[i] & np.iinfo(x.dtype).max) == 0 or (y[i] & np.iinfo(y.dtype).max) == 0
        if not (zero and (x[i] ^ y[i]) < 0):
            return False
    return True
