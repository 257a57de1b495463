"""Exact sums of float64, and of products that are split in two, exactly."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import (
    DIGIT,
    HELD,
    NOT_NEGATIVE_ZERO,
    STEP,
    TILE64,
    add_levels,
    anchor_at,
    bounds,
    clamped_exponent,
    clean,
    counted,
    deposit,
    none_but_negative_zeros,
    padded,
    resolve,
    special_pairs,
)
from warpfold.kernels.cpu.windows.vector_code import LANES
from warpfold.kernels.cpu.windows.vectors import two_levels
from warpfold.kernels.machine.jit import jit

FIELDS64 = 1 << 12  # signs and exponent fields of float64

_IN_FIELDS = 1 << 8  # no flag of a state: some elements are in sums of fields, not yet in limbs
_LIKELY = -85  # the unit of the window that a first tile is tried with
_WILD = 600  # places from which element by element is faster than level by level

INFINITY64 = np.int64(0x7FF0000000000000)
_FRACTION64 = np.int64(0x000FFFFFFFFFFFFF)
_HIDDEN64 = np.int64(0x0010000000000000)
SPLITTER = 2.0**27 + 1.0
"""A product with it cuts a float64 into two halves of 26 bits (Dekker 1971)."""


@jit
def _empty(k: Any, sums: Any, counts: Any, origin: Any, limbs: Any) -> None:
    """Deposit Σ of the significands whose patterns are in sums[k]: without their sign and exponent field, which are k,
    and with their hidden bits."""
    field, count = k & 0x7FF, np.int64(counts[k])
    sign = np.int64(-1) if k >> 11 else np.int64(1)
    place = clamped_exponent(field) - 1075 - origin
    deposit(limbs, sign * np.int64(sums[k] - np.uint64(count) * (np.uint64(k) << np.uint64(52))), place)
    deposit(limbs, sign * (count << 20 if field else np.int64(0)), place + 32)
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
def each64_squared(tile: Any, origin: Any, limbs: Any) -> None:
    """Add the squares of the elements to `limbs` one by one, whatever their exponents are."""
    for i in range(tile.size):
        field = (tile[i] & INFINITY64) >> 52
        m = tile[i] & _FRACTION64
        m = m | _HIDDEN64 if field else m
        low, high = m & DIGIT, m >> 32  # high < 2**21
        place = 2 * (clamped_exponent(field) - 1075) - origin
        square = np.uint64(low) * np.uint64(low)
        deposit(limbs, np.int64(square & np.uint64(0xFFFFFFFF)), place)
        deposit(limbs, np.int64(square >> np.uint64(32)) + 2 * high * low, place + 32)
        deposit(limbs, high * high, place + 64)


@jit
def _squares64(tile: Any, top: Any, unit: Any, origin: Any, limbs: Any, rest: Any, other: Any) -> None:
    """Add the squares of multiples of 2**unit below 2**top."""
    # Dekker's product x² = p + e needs x² below 2**1024 and e, a multiple of 2**(2 unit), above 2**−1074.
    if top > 500 or unit < -530 or top - unit > _WILD // 2:
        each64_squared(tile, origin, limbs)
        return
    for i in range(tile.size):
        d = np.int64(tile[i]).view(np.float64)
        c = SPLITTER * d
        high = c - (c - d)
        low = d - high
        p = d * d
        rest[i] = p
        other[i] = ((high * high - p) + 2.0 * high * low) + low * low
    # p is a multiple of its own last place, ≥ 2**(2(unit+52)−52); |e| is at most half that of the largest p.
    add_levels(rest, tile.size, 2 * top, 2 * unit + 52, origin, limbs)
    add_levels(other, tile.size, 2 * top - 53, 2 * unit, origin, limbs)


@jit
def _outside64(
    tile: Any,
    top: Any,
    unit: Any,
    keep: Any,
    squares: Any,
    origin: Any,
    limbs: Any,
    rest: Any,
    other: Any,
    fields: Any,
) -> Any:
    """Add a tile of multiples of 2**unit below 2**top that has no window, or its squares; returns _IN_FIELDS or 0."""
    if squares:
        _squares64(tile, top, unit, origin, limbs, rest, other)
    elif top > 1000 or top - unit > _WILD:
        # The anchors would overflow, or the levels be many.
        _each64(tile, keep, origin, limbs, fields)
        return _IN_FIELDS
    else:
        for i in range(tile.size):
            rest[i] = np.int64(tile[i] & keep).view(np.float64)
        add_levels(rest, tile.size, top, unit, origin, limbs)
    return 0


@jit
def add_float64(
    bits: Any, keep: Any, squares: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, fields: Any
) -> Any:
    """Do what `add_float32` does for float64 elements (int64) masked by `keep`. `rest`, `other` (float64) and `spare`
    (int64) have TILE64 elements; `fields` are two arrays (uint64, int16) of FIELDS64 zeros."""
    flags = 0
    windowed, certain, unit = not squares, False, np.int64(_LIKELY)
    for at in range(0, bits.size, TILE64):
        tile = bits[at : at + TILE64]
        if tile.size % LANES:
            tile = padded(tile, spare)
        while True:
            if windowed:
                first, last = anchor_at(unit + STEP), anchor_at(unit)
                upper, lower, most, least = two_levels(tile, keep, first, last)
                # The upper halves of the doubled magnitudes: the smaller less 1 has the exponent of one below it where
                # it is a power of two, so that the bound is one place too low at most.
                top, low = clamped_exponent(most >> 21) - 1022, clamped_exponent(least >> 21) - 1075
                if certain or (most and unit <= low and top <= unit + HELD + STEP):  # no window holds an infinity
                    deposit(limbs, counted(upper, tile.size, first), unit + STEP - origin)
                    deposit(limbs, counted(lower, tile.size, last), unit - origin)
                    flags |= NOT_NEGATIVE_ZERO
                    certain = False
                    break
            most, least = bounds(tile)
            if most >= INFINITY64:
                flags |= clean(tile, INFINITY64, spare) | NOT_NEGATIVE_ZERO
                tile = spare[: tile.size]
                most, least = bounds(tile)
            if most == 0:
                flags |= NOT_NEGATIVE_ZERO if 0 in tile else 0
                break
            flags |= NOT_NEGATIVE_ZERO
            top, low = clamped_exponent(most >> 52) - 1022, clamped_exponent((least + 1) >> 52) - 1075
            # Anchors overflow from a top of 1000 on, and the first is above it by the room for the next tiles.
            windowed = not squares and top <= 990 and top - low <= HELD + STEP
            if not windowed:
                flags |= _outside64(tile, top, low, keep, squares, origin, limbs, rest, other, fields)
                break
            unit = max(min(low - 1, top + 8 - HELD - STEP), top - HELD - STEP, np.int64(-1074))
            certain = True
    if flags & _IN_FIELDS:
        sums, counts = fields
        for k in range(FIELDS64):
            if counts[k]:
                _empty(np.int64(k), sums, counts, origin, limbs)
    resolve(limbs)
    return flags & ~_IN_FIELDS


@jit
def _each64_products(x: Any, y: Any, origin: Any, limbs: Any) -> None:
    """Element by element, in integers: significands in a low half of 32 bits and a high one of 21."""
    for i in range(x.size):
        field_x, field_y = (x[i] & INFINITY64) >> 52, (y[i] & INFINITY64) >> 52
        m, n = x[i] & _FRACTION64, y[i] & _FRACTION64
        m = m | _HIDDEN64 if field_x else m
        n = n | _HIDDEN64 if field_y else n
        m_low, m_high, n_low, n_high = m & DIGIT, m >> 32, n & DIGIT, n >> 32
        place = clamped_exponent(field_x) + clamped_exponent(field_y) - 2 * 1075 - origin
        low = np.uint64(m_low) * np.uint64(n_low)
        middle = np.int64(low >> np.uint64(32)) + m_high * n_low + m_low * n_high  # below 2**55
        sign = np.int64(-1) if (x[i] ^ y[i]) < 0 else np.int64(1)
        deposit(limbs, sign * np.int64(low & np.uint64(0xFFFFFFFF)), place)
        deposit(limbs, sign * middle, place + 32)
        deposit(limbs, sign * (m_high * n_high), place + 64)


@jit
def _tile64_products(x: Any, y: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, spare_y: Any) -> Any:
    flags = 0
    most_x, least_x = bounds(x)
    most_y, least_y = bounds(y)
    if most_x >= INFINITY64 or most_y >= INFINITY64:
        flags = special_pairs(x, y, INFINITY64, INFINITY64, spare, spare_y) | NOT_NEGATIVE_ZERO
        x, y = spare[: x.size], spare_y[: y.size]
        most_x, least_x = bounds(x)
        most_y, least_y = bounds(y)
    elif not none_but_negative_zeros(x, y):
        flags = NOT_NEGATIVE_ZERO
    if most_x == 0 or most_y == 0:
        return flags
    count = x.size
    top_x, top_y = clamped_exponent(most_x >> 52) - 1022, clamped_exponent(most_y >> 52) - 1022
    unit_x, unit_y = clamped_exponent((least_x + 1) >> 52) - 1075, clamped_exponent((least_y + 1) >> 52) - 1075
    top, unit = top_x + top_y, unit_x + unit_y
    # As for squares: the bounds on each factor are those under which Dekker's product neither over- nor underflows.
    if max(top_x, top_y) > 500 or min(unit_x, unit_y) < -530 or top - unit > _WILD:
        _each64_products(x, y, origin, limbs)
        return flags
    for i in range(count):
        d, f = np.int64(x[i]).view(np.float64), np.int64(y[i]).view(np.float64)
        c, g = SPLITTER * d, SPLITTER * f
        d_high, f_high = c - (c - d), g - (g - f)
        d_low, f_low = d - d_high, f - f_high
        p = d * f
        rest[i] = p
        other[i] = ((d_high * f_high - p) + d_high * f_low + d_low * f_high) + d_low * f_low
    # p is a multiple of its own last place, ≥ 2**(unit + 104 − 52); |e| is at most half that of the largest p.
    add_levels(rest, count, top, unit + 52, origin, limbs)
    add_levels(other, count, top - 53, unit, origin, limbs)
    return flags


@jit
def add_float64_products(
    x: Any, y: Any, origin: Any, limbs: Any, rest: Any, other: Any, spare: Any, spare_y: Any
) -> Any:
    """Do what `add_float32_products` does for float64 elements (int64). `rest`, `other` (float64), `spare` and
    `spare_y` (int64) have TILE64 elements."""
    flags = 0
    for at in range(0, x.size, TILE64):
        tile, factor = x[at : at + TILE64], y[at : at + TILE64]
        flags |= _tile64_products(tile, factor, origin, limbs, rest, other, spare, spare_y)
    resolve(limbs)
    return flags
