"""Exact sums of float32 and of the 16-bit formats, whose fields a shift brings into a float32's place."""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import (
    HELD,
    NOT_NEGATIVE_ZERO,
    STEP,
    TILE32,
    add_levels,
    anchor_at,
    bounds,
    clamped_exponent,
    clean,
    counted,
    deposit,
    infinity_of,
    none_but_negative_zeros,
    resolve,
    special_pairs,
)
from warpfold.kernels.jit import jit


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
    infinity = infinity_of(tile, fraction)
    most, least = bounds(tile)
    if most >= infinity:
        flags = clean(tile, infinity, spare) | NOT_NEGATIVE_ZERO
        tile = spare[: tile.size]
        most, least = bounds(tile)
    if most == 0:
        return flags | NOT_NEGATIVE_ZERO if 0 in tile else flags
    count = tile.size
    # Biased exponent e (0 counts as 1): 2**(e−127) ≤ |x| < 2**(e−126) but for subnormals, all multiples of
    # 2**(e−127−fraction). Squares of 24-bit significands are float64 numbers.
    times = 2 if squares else 1
    top = times * (clamped_exponent(most >> fraction) - 126)
    unit = times * (clamped_exponent((least + 1) >> fraction) - 127 - fraction)
    if top - unit <= HELD:
        anchor = anchor_at(unit)
        deposit(limbs, counted(_one32(tile, shift, keep, squares, anchor), count, anchor), unit - origin)
    elif top - unit <= HELD + STEP:
        anchor, second = anchor_at(top - HELD), anchor_at(unit)
        patterns, others = _two32(tile, shift, keep, squares, anchor, second)
        deposit(limbs, counted(patterns, count, anchor), top - HELD - origin)
        deposit(limbs, counted(others, count, second), unit - origin)
    else:
        for i in range(count):
            rest[i] = _term(tile[i], shift, keep, squares)
        add_levels(rest, count, top, unit, origin, limbs)
    return flags | NOT_NEGATIVE_ZERO


@jit
def add_float32(bits: Any, layout: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the elements `bits`, or of their squares; returns their Flags as an
    integer. `bits` are at most MAX_ELEMENTS patterns of float32 (int32) or of a 16-bit format (int16), read as `layout`
    says (`kernels.cpu.accumulator`): its shift, its mask, the bits of a significand behind the point. `rest` (float64)
    and `spare` (as `bits`) are working space of TILE32 elements."""
    flags = 0
    for at in range(0, bits.size, TILE32):
        flags |= _tile32(bits[at : at + TILE32], layout, squares, origin, limbs, rest, spare)
    resolve(limbs)
    return flags


@jit
def _tile32_products(
    x: Any, y: Any, layout_x: Any, layout_y: Any, origin: Any, limbs: Any, rest: Any, spare_x: Any, spare_y: Any
) -> Any:
    flags = 0
    shift_x, keep_x, fraction_x = layout_x
    shift_y, keep_y, fraction_y = layout_y
    infinity_x, infinity_y = infinity_of(x, fraction_x), infinity_of(y, fraction_y)
    most_x, least_x = bounds(x)
    most_y, least_y = bounds(y)
    if most_x >= infinity_x or most_y >= infinity_y:
        flags = special_pairs(x, y, infinity_x, infinity_y, spare_x, spare_y) | NOT_NEGATIVE_ZERO
        x, y = spare_x[: x.size], spare_y[: y.size]
        most_x, least_x = bounds(x)
        most_y, least_y = bounds(y)
    elif not none_but_negative_zeros(x, y):
        flags = NOT_NEGATIVE_ZERO
    if most_x == 0 or most_y == 0:
        return flags
    count = x.size
    top = clamped_exponent(most_x >> fraction_x) + clamped_exponent(most_y >> fraction_y) - 2 * 126
    unit = clamped_exponent((least_x + 1) >> fraction_x) - 127 - fraction_x
    unit += clamped_exponent((least_y + 1) >> fraction_y) - 127 - fraction_y
    for i in range(count):
        rest[i] = _term(x[i], shift_x, keep_x, False) * _term(y[i], shift_y, keep_y, False)
    add_levels(rest, count, top, unit, origin, limbs)
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
