"""Exact sums of floats, compiled: what `kernels.exact.portable` defines, at the speed of the memory.

The method. A tile of at most 4096 elements is read twice from the first-level cache. The first pass finds the largest
and the smallest non-zero magnitude, which bound the tile: every element is a multiple of 2**unit and below 2**top. The
second adds fixed-point images of the elements. With M = 1.5·2**(52+b), the float64 sum t = d + M of an element
|d| ≤ 2**(b+50) lies strictly inside [2**(52+b), 2**(53+b)], where float64 is spaced 2**b; so t = M + k·2**b, k being d
rounded to a multiple of 2**b, |k| ≤ 2**50, and as patterns of bits, bits(t) = bits(M) + k. Adding the patterns as
integers modulo 2**64 and taking n·bits(M) away leaves Σ k exactly: |Σ k| ≤ 2**12 · 2**50 = 2**62. What a level does not
hold, r = d − (t − M), is exact (Dekker 1971, Sterbenz: t − M = k·2**b is a float64, and d − k·2**b is a multiple of d's
last place no larger than d) and |r| ≤ 2**(b−1) = 2**((b−51)+50): the next level, 51 binary places lower, takes it the
same way. The last level has b = unit, so that nothing is left.

    one level  holds top − unit ≤ 50, that is 27 binades of float32, 43 of bfloat16, and all of float16
    L levels   hold  top − unit ≤ 50 + 51·(L − 1); all of float32 needs 277: six levels

Integer additions may be reordered, so LLVM vectorises every loop without any licence to reorder floating point.

Squares and products of 24-bit significands are float64 numbers; those of 53 bits are split in two, exactly (Dekker
1971), each added by its own levels. A tile of products is bounded by the sums of its factors' exponents.

A limb is a digit of 32 bits in an int64. A deposit adds less than 2**33 to a limb, a call makes fewer than
4 · MAX_ELEMENTS = 2**26 of them on limbs below 2**32: no limb passes 2**60 before the carries are resolved.
All in one file, which makes it long, because Numba's cache of a function does not notice a change in another file.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.exact.terms import Flags
from warpfold.kernels.jit import jit

TILE32 = 4096  # 16 KiB of float32, 8 of the 16-bit formats
TILE64 = 2048  # 16 KiB of float64
MAX_ELEMENTS = 1 << 24
FIELDS64 = 1 << 12  # signs and exponent fields of float64
LIMBS = 136  # 134 digits of products, and two that a deposit's place may reach beyond

NAN, POS_INF, NEG_INF = int(Flags.NAN), int(Flags.POS_INF), int(Flags.NEG_INF)
NOT_NEGATIVE_ZERO = int(Flags.NOT_NEGATIVE_ZERO)
_IN_FIELDS = 1 << 8  # no flag of a state: some elements are in sums of fields, not yet in limbs

_HELD = 50  # binary places of the first level above its unit, and with rounding of every other
_STEP = 51
_WILD = 600  # places from which element by element is faster than level by level

_DIGIT = np.int64(0xFFFFFFFF)
_INFINITY64 = np.int64(0x7FF0000000000000)
_FRACTION64 = np.int64(0x000FFFFFFFFFFFFF)
_HIDDEN64 = np.int64(0x0010000000000000)
_SPLITTER = 2.0**27 + 1.0


@jit
def resolve(limbs: Any) -> None:
    """Carry, so that every limb but the last is in 0 … 2**32 − 1; the last takes the sign."""
    for k in range(limbs.size - 1):
        carry = limbs[k] >> 32
        limbs[k] &= _DIGIT
        limbs[k + 1] += carry


@jit
def _deposit(limbs: Any, value: Any, place: Any) -> None:
    """limbs += value · 2**place, for any int64 value and place ≥ 0."""
    at = place >> 5
    shift = place & 31
    low = (value & _DIGIT) << shift  # 0 … 2**63 − 1
    high = (value >> 32) << shift  # −2**62 … 2**62 − 1
    limbs[at] += low & _DIGIT
    limbs[at + 1] += (low >> 32) + (high & _DIGIT)
    limbs[at + 2] += high >> 32


@jit
def _field(exponent: Any) -> Any:
    """A biased exponent, where that of the subnormals counts as 1: they are spaced as the smallest normals are."""
    return exponent if exponent > 1 else np.int64(1)


@jit
def _anchor(b: Any) -> float:
    """M = 1.5·2**(52+b)."""
    return np.int64(((np.int64(b) + 1075) << 52) | 0x0008000000000000).view(np.float64)


@jit
def _counted(patterns: Any, count: Any, anchor: Any) -> Any:
    """Σ k from Σ bits(t): the anchors' own bits taken away, modulo 2**64."""
    return np.int64(patterns - np.uint64(count) * np.float64(anchor).view(np.uint64))


@jit
def _levels(rest: Any, count: Any, top: Any, unit: Any, origin: Any, limbs: Any) -> None:
    """Deposit Σ rest[:count], multiples of 2**unit below 2**top, level by level; spoils `rest`."""
    b = max(top - _HELD, unit)
    while b > unit:
        anchor = _anchor(b)
        patterns = np.uint64(0)
        for i in range(count):
            t = rest[i] + anchor
            patterns += np.float64(t).view(np.uint64)
            rest[i] -= t - anchor
        _deposit(limbs, _counted(patterns, count, anchor), b - origin)
        b = max(b - _STEP, unit)
    anchor = _anchor(b)
    patterns = np.uint64(0)
    for i in range(count):
        patterns += np.float64(rest[i] + anchor).view(np.uint64)
    _deposit(limbs, _counted(patterns, count, anchor), b - origin)


# patterns of any width, as signed integers -------------------------------------------------------------------------


@jit
def _infinity(tile: Any, fraction: Any) -> Any:
    """The pattern of infinity in a format whose significand has `fraction` bits behind the point."""
    return np.iinfo(tile.dtype).max >> fraction << fraction


@jit
def _bounds(tile: Any) -> Any:
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
def _clean(tile: Any, infinity: Any, out: Any) -> Any:
    """Copy with NaN and infinities as +0; returns the flags they raise."""
    magnitude = np.iinfo(tile.dtype).max
    flags = 0
    for i in range(tile.size):
        a = tile[i] & magnitude
        out[i] = tile[i] if a < infinity else 0
        if a > infinity:
            flags |= NAN
        elif a == infinity:
            flags |= NEG_INF if tile[i] < 0 else POS_INF
    return flags


# float32, and the 16-bit formats, whose fields a shift brings into a float32's place --------------------------------


@jit
def _term(word: Any, shift: Any, keep: Any, squares: Any) -> Any:
    """A pattern, shifted and masked to one of float32, as a float64, or its square."""
    # With the 31 the compiler sees that 32 bits are enough.
    placed = word if shift is None else np.int32(word) << (shift & 31)
    d = np.float64(np.int32(placed & keep).view(np.float32))
    return d * d if squares else d


@jit
def _one32(tile: Any, shift: Any, keep: Any, squares: Any, anchor: Any) -> Any:
    patterns = np.uint64(0)
    for i in range(tile.size):
        patterns += np.float64(_term(tile[i], shift, keep, squares) + anchor).view(np.uint64)
    return patterns


@jit
def _two32(tile: Any, shift: Any, keep: Any, squares: Any, anchor: Any, second: Any) -> Any:
    patterns = np.uint64(0)
    others = np.uint64(0)
    for i in range(tile.size):
        d = _term(tile[i], shift, keep, squares)
        t = d + anchor
        patterns += np.float64(t).view(np.uint64)
        others += np.float64((d - (t - anchor)) + second).view(np.uint64)
    return patterns, others


@jit
def _tile32(tile: Any, layout: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any) -> Any:
    flags = 0
    shift, keep, fraction = layout
    infinity = _infinity(tile, fraction)
    most, least = _bounds(tile)
    if most >= infinity:
        flags = _clean(tile, infinity, spare) | NOT_NEGATIVE_ZERO
        tile = spare[: tile.size]
        most, least = _bounds(tile)
    if most == 0:
        return flags | NOT_NEGATIVE_ZERO if 0 in tile else flags
    count = tile.size
    # Biased exponent e (0 counts as 1): 2**(e−127) ≤ |x| < 2**(e−126) but for subnormals, all multiples of
    # 2**(e−127−fraction). Squares of 24-bit significands are float64 numbers.
    times = 2 if squares else 1
    top = times * (_field(most >> fraction) - 126)
    unit = times * (_field((least + 1) >> fraction) - 127 - fraction)
    if top - unit <= _HELD:
        anchor = _anchor(unit)
        _deposit(limbs, _counted(_one32(tile, shift, keep, squares, anchor), count, anchor), unit - origin)
    elif top - unit <= _HELD + _STEP:
        anchor, second = _anchor(top - _HELD), _anchor(unit)
        patterns, others = _two32(tile, shift, keep, squares, anchor, second)
        _deposit(limbs, _counted(patterns, count, anchor), top - _HELD - origin)
        _deposit(limbs, _counted(others, count, second), unit - origin)
    else:
        for i in range(count):
            rest[i] = _term(tile[i], shift, keep, squares)
        _levels(rest, count, top, unit, origin, limbs)
    return flags | NOT_NEGATIVE_ZERO


@jit
def add_float32(bits: Any, layout: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the elements `bits`, or of their squares; returns their Flags as an
    integer. `bits` are at most MAX_ELEMENTS patterns of float32 (int32) or of a 16-bit format (int16), read as `layout`
    says (`kernels.cpu.layouts`): its shift, its mask, the bits of a significand behind the point. `rest` (float64) and
    `spare` (as `bits`) are working space of TILE32 elements."""
    flags = 0
    for at in range(0, bits.size, TILE32):
        flags |= _tile32(bits[at : at + TILE32], layout, squares, origin, limbs, rest, spare)
    resolve(limbs)
    return flags


# float64 ---------------------------------------------------------------------------------------------------------


@jit
def _two64(tile: Any, keep: Any, anchor: Any, second: Any) -> Any:
    patterns = np.uint64(0)
    others = np.uint64(0)
    for i in range(tile.size):
        d = np.int64(tile[i] & keep).view(np.float64)
        t = d + anchor
        patterns += np.float64(t).view(np.uint64)
        others += np.float64((d - (t - anchor)) + second).view(np.uint64)
    return patterns, others


@jit
def _empty(k: Any, sums: Any, counts: Any, origin: Any, limbs: Any) -> None:
    """Deposit Σ of the significands whose patterns are in sums[k]: without their sign and exponent field, which are k,
    and with their hidden bits."""
    field, count = k & 0x7FF, np.int64(counts[k])
    sign = np.int64(-1) if k >> 11 else np.int64(1)
    place = _field(field) - 1075 - origin
    _deposit(limbs, sign * np.int64(sums[k] - np.uint64(count) * (np.uint64(k) << np.uint64(52))), place)
    _deposit(limbs, sign * (count << 20 if field else np.int64(0)), place + 32)
    sums[k], counts[k] = 0, 0


@jit
def _each64(tile: Any, keep: Any, origin: Any, limbs: Any, fields: Any) -> None:
    """Element by element, each pattern to the sum of its sign and exponent field: Neal's large superaccumulator (2015).
    The fractions of 2**11 patterns are together below 2**63."""
    sums, counts = fields
    for i in range(tile.size):
        pattern = np.uint64(tile[i] & keep)
        k = pattern >> np.uint64(52)
        if counts[k] == 1 << 11:
            _empty(np.int64(k), sums, counts, origin, limbs)
        sums[k] += pattern
        counts[k] += 1


@jit
def _each64_squared(tile: Any, origin: Any, limbs: Any) -> None:
    for i in range(tile.size):
        field = (tile[i] & _INFINITY64) >> 52
        m = tile[i] & _FRACTION64
        m = m | _HIDDEN64 if field else m
        low, high = m & _DIGIT, m >> 32  # high < 2**21
        place = 2 * (_field(field) - 1075) - origin
        square = np.uint64(low) * np.uint64(low)
        _deposit(limbs, np.int64(square & np.uint64(0xFFFFFFFF)), place)
        _deposit(limbs, np.int64(square >> np.uint64(32)) + 2 * high * low, place + 32)
        _deposit(limbs, high * high, place + 64)


@jit
def _tile64(
    tile: Any, keep: Any, squares: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, fields: Any
) -> Any:
    flags = 0
    most, least = _bounds(tile)
    if most >= _INFINITY64:
        flags = _clean(tile, _INFINITY64, spare) | NOT_NEGATIVE_ZERO
        tile = spare[: tile.size]
        most, least = _bounds(tile)
    if most == 0:
        return flags | NOT_NEGATIVE_ZERO if 0 in tile else flags
    count = tile.size
    top = _field(most >> 52) - 1022
    unit = _field((least + 1) >> 52) - 1075
    if squares:
        # Dekker's product x² = p + e needs x² below 2**1024 and e, a multiple of 2**(2 unit), above 2**−1074.
        if top > 500 or unit < -530 or top - unit > _WILD // 2:
            _each64_squared(tile, origin, limbs)
        else:
            for i in range(count):
                d = np.int64(tile[i]).view(np.float64)
                c = _SPLITTER * d
                high = c - (c - d)
                low = d - high
                p = d * d
                rest[i] = p
                other[i] = ((high * high - p) + 2.0 * high * low) + low * low
            # p is a multiple of its own last place, ≥ 2**(2(unit+52)−52); |e| is at most half that of the largest p.
            _levels(rest, count, 2 * top, 2 * unit + 52, origin, limbs)
            _levels(other, count, 2 * top - 53, 2 * unit, origin, limbs)
    elif top > 1000 or top - unit > _WILD:
        # The anchors would overflow, or the levels be many.
        _each64(tile, keep, origin, limbs, fields)
        flags |= _IN_FIELDS
    elif top - unit <= _HELD + _STEP:
        first = max(top - _HELD, unit)
        anchor, second = _anchor(first), _anchor(unit)
        patterns, others = _two64(tile, keep, anchor, second)
        _deposit(limbs, _counted(patterns, count, anchor), first - origin)
        _deposit(limbs, _counted(others, count, second), unit - origin)
    else:
        for i in range(count):
            rest[i] = np.int64(tile[i] & keep).view(np.float64)
        _levels(rest, count, top, unit, origin, limbs)
    return flags | NOT_NEGATIVE_ZERO


@jit
def add_float64(
    bits: Any, keep: Any, squares: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, fields: Any
) -> Any:
    """As `add_float32`, of float64 elements (int64) masked by `keep`; `rest`, `other` (float64) and `spare` (int64)
    have TILE64; `fields` are two arrays (uint64, int16) of FIELDS64 zeros."""
    flags = 0
    for at in range(0, bits.size, TILE64):
        flags |= _tile64(bits[at : at + TILE64], keep, squares, origin, limbs, rest, other, spare, fields)
    if flags & _IN_FIELDS:
        sums, counts = fields
        for k in range(FIELDS64):
            if counts[k]:
                _empty(np.int64(k), sums, counts, origin, limbs)
    resolve(limbs)
    return flags & ~_IN_FIELDS


# products of two arrays ------------------------------------------------------------------------------------------


@jit
def _special_pairs(x: Any, y: Any, infinity_x: Any, infinity_y: Any, out_x: Any, out_y: Any) -> Any:
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
def _none_but_negative_zeros(x: Any, y: Any) -> bool:
    """Whether every product is −0; the first that is not ends the search."""
    for i in range(x.size):
        zero = (x[i] & np.iinfo(x.dtype).max) == 0 or (y[i] & np.iinfo(y.dtype).max) == 0
        if not (zero and (x[i] ^ y[i]) < 0):
            return False
    return True


@jit
def _tile32_products(
    x: Any, y: Any, layout_x: Any, layout_y: Any, origin: Any, limbs: Any, rest: Any, spare_x: Any, spare_y: Any
) -> Any:
    flags = 0
    shift_x, keep_x, fraction_x = layout_x
    shift_y, keep_y, fraction_y = layout_y
    infinity_x, infinity_y = _infinity(x, fraction_x), _infinity(y, fraction_y)
    most_x, least_x = _bounds(x)
    most_y, least_y = _bounds(y)
    if most_x >= infinity_x or most_y >= infinity_y:
        flags = _special_pairs(x, y, infinity_x, infinity_y, spare_x, spare_y) | NOT_NEGATIVE_ZERO
        x, y = spare_x[: x.size], spare_y[: y.size]
        most_x, least_x = _bounds(x)
        most_y, least_y = _bounds(y)
    elif not _none_but_negative_zeros(x, y):
        flags = NOT_NEGATIVE_ZERO
    if most_x == 0 or most_y == 0:
        return flags
    count = x.size
    top = _field(most_x >> fraction_x) + _field(most_y >> fraction_y) - 2 * 126
    unit = _field((least_x + 1) >> fraction_x) - 127 - fraction_x
    unit += _field((least_y + 1) >> fraction_y) - 127 - fraction_y
    for i in range(count):
        rest[i] = _term(x[i], shift_x, keep_x, False) * _term(y[i], shift_y, keep_y, False)
    _levels(rest, count, top, unit, origin, limbs)
    return flags


@jit
def add_float32_products(
    x: Any, y: Any, layout_x: Any, layout_y: Any, origin: Any, limbs: Any, rest: Any, spare_x: Any, spare_y: Any
) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the products of the elements `x` and `y`, equally many, each read
    as in `add_float32`; returns the products' Flags as an integer. `rest` (float64), `spare_x` and `spare_y` (as `x`
    and `y`) are working space of TILE32 elements."""
    flags = 0
    for at in range(0, x.size, TILE32):
        tile, other = x[at : at + TILE32], y[at : at + TILE32]
        flags |= _tile32_products(tile, other, layout_x, layout_y, origin, limbs, rest, spare_x, spare_y)
    resolve(limbs)
    return flags


@jit
def _each64_products(x: Any, y: Any, origin: Any, limbs: Any) -> None:
    """Element by element, in integers: significands in a low half of 32 bits and a high one of 21."""
    for i in range(x.size):
        field_x, field_y = (x[i] & _INFINITY64) >> 52, (y[i] & _INFINITY64) >> 52
        m, n = x[i] & _FRACTION64, y[i] & _FRACTION64
        m = m | _HIDDEN64 if field_x else m
        n = n | _HIDDEN64 if field_y else n
        m_low, m_high, n_low, n_high = m & _DIGIT, m >> 32, n & _DIGIT, n >> 32
        place = _field(field_x) + _field(field_y) - 2 * 1075 - origin
        low = np.uint64(m_low) * np.uint64(n_low)
        middle = np.int64(low >> np.uint64(32)) + m_high * n_low + m_low * n_high  # below 2**55
        sign = np.int64(-1) if (x[i] ^ y[i]) < 0 else np.int64(1)
        _deposit(limbs, sign * np.int64(low & np.uint64(0xFFFFFFFF)), place)
        _deposit(limbs, sign * middle, place + 32)
        _deposit(limbs, sign * (m_high * n_high), place + 64)


@jit
def _tile64_products(x: Any, y: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, spare_y: Any) -> Any:
    flags = 0
    most_x, least_x = _bounds(x)
    most_y, least_y = _bounds(y)
    if most_x >= _INFINITY64 or most_y >= _INFINITY64:
        flags = _special_pairs(x, y, _INFINITY64, _INFINITY64, spare, spare_y) | NOT_NEGATIVE_ZERO
        x, y = spare[: x.size], spare_y[: y.size]
        most_x, least_x = _bounds(x)
        most_y, least_y = _bounds(y)
    elif not _none_but_negative_zeros(x, y):
        flags = NOT_NEGATIVE_ZERO
    if most_x == 0 or most_y == 0:
        return flags
    count = x.size
    top_x, top_y = _field(most_x >> 52) - 1022, _field(most_y >> 52) - 1022
    unit_x, unit_y = _field((least_x + 1) >> 52) - 1075, _field((least_y + 1) >> 52) - 1075
    top, unit = top_x + top_y, unit_x + unit_y
    # As for squares: the bounds on each factor are those under which Dekker's product neither over- nor underflows.
    if max(top_x, top_y) > 500 or min(unit_x, unit_y) < -530 or top - unit > _WILD:
        _each64_products(x, y, origin, limbs)
        return flags
    for i in range(count):
        d, f = np.int64(x[i]).view(np.float64), np.int64(y[i]).view(np.float64)
        c, g = _SPLITTER * d, _SPLITTER * f
        d_high, f_high = c - (c - d), g - (g - f)
        d_low, f_low = d - d_high, f - f_high
        p = d * f
        rest[i] = p
        other[i] = ((d_high * f_high - p) + d_high * f_low + d_low * f_high) + d_low * f_low
    # p is a multiple of its own last place, ≥ 2**(unit + 104 − 52); |e| is at most half that of the largest p.
    _levels(rest, count, top, unit + 52, origin, limbs)
    _levels(other, count, top - 53, unit, origin, limbs)
    return flags


@jit
def add_float64_products(
    x: Any, y: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, spare_y: Any
) -> Any:
    """As `add_float32_products`, of float64 elements (int64); `rest`, `other` (float64), `spare` and `spare_y` (int64)
    have TILE64."""
    flags = 0
    for at in range(0, x.size, TILE64):
        tile, factor = x[at : at + TILE64], y[at : at + TILE64]
        flags |= _tile64_products(tile, factor, origin, limbs, rest, other, spare, spare_y)
    resolve(limbs)
    return flags
