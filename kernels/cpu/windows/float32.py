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
    padded,
    resolve,
    special_pairs,
)
from warpfold.kernels.cpu.windows.vector_code import LANES
from warpfold.kernels.cpu.windows.vectors import one_level, two_levels, two_levels_of_squares
from warpfold.kernels.machine.jit import jit

_LIKELY = -40
"""The unit of the window that a first tile is tried with."""
_FAR = 1 << 20
"""More places than any format has."""


@jit
def term_of(word: Any, shift: Any, keep: Any, squares: Any) -> Any:
    """A pattern, shifted and masked to one of float32, as a float64, or its square."""
    # With the 31 the compiler sees that 32 bits are enough.
    placed = word if shift is None else np.int32(word) << (shift & 31)
    d = np.float64(np.int32(placed & keep).view(np.float32))
    return d * d if squares else d


@jit
def _sums32(tile: Any, layout: Any, squares: Any, levels: Any, unit: Any) -> Any:
    """Σ k of both levels of a window, where a window of one level has only the second, and the tile's bounds as
    `two_levels` gives them."""
    shift, keep, _ = layout
    first, last = anchor_at(unit + STEP), anchor_at(unit)
    if levels < 2:
        lower, _, most, least = one_level(tile, shift, keep, last, None)
        return np.int64(0), counted(lower, tile.size, last), most, least
    if squares:
        upper, lower, most, least = two_levels_of_squares(tile, shift, keep, first, last)
    else:
        upper, lower, most, least = two_levels(tile, shift, keep, first, last)
    return counted(upper, tile.size, first), counted(lower, tile.size, last), most, least


@jit
def _window32(top: Any, unit: Any, lowest: Any, squares: Any) -> Any:
    """Levels and unit of a window for a tile and, likely, for those that follow; no levels where it would take more
    than two. What room there is lies below the tile: the smallest of many differ more than the largest."""
    if top - unit <= HELD - 2 and not squares:
        return 1, max(min(unit, top + 2 - HELD), lowest)
    if top - unit <= HELD + STEP:
        return 2, max(min(unit, top + 8 - HELD - STEP), lowest)
    return 0, lowest


@jit
def add_float32(bits: Any, layout: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the elements `bits`, or of their squares; returns their Flags as an
    integer. `bits` are at most MAX_ELEMENTS patterns of float32 (int32) or of a 16-bit format (int16), read as `layout`
    says (`kernels.cpu.accumulator`): its shift, its mask, the bits of a significand behind the point. `rest` (float64)
    and `spare` (as `bits`) are working space of TILE32 elements."""
    shift, keep, fraction = layout
    infinity = infinity_of(bits, fraction)
    times = 2 if squares else 1
    lowest = times * (1 - 127 - fraction)
    levels, unit = times, max(times * _LIKELY, lowest)
    before_top, before_low = -_FAR, _FAR
    flags = 0
    for at in range(0, bits.size, TILE32):
        tile = bits[at : at + TILE32]
        if tile.size % LANES:
            tile = padded(tile, spare)
        while True:
            upper, lower, most, least = _sums32(tile, layout, squares, levels, unit)
            if most >> 24 >= infinity >> fraction:
                flags |= clean(tile, infinity, spare) | NOT_NEGATIVE_ZERO
                tile = spare[: tile.size]
                continue
            if most == 0:
                if not flags & NOT_NEGATIVE_ZERO and 0 in tile:
                    flags |= NOT_NEGATIVE_ZERO
                break
            flags |= NOT_NEGATIVE_ZERO
            # Biased exponent e (0 counts as 1): 2**(e−127) ≤ |x| < 2**(e−126) but for subnormals, all multiples of
            # 2**(e−127−fraction). Squares of 24-bit significands are float64 numbers.
            top = times * (clamped_exponent(most >> 24) - 126)
            low = times * (clamped_exponent((least + 1) >> 24) - 127 - fraction)
            if levels and unit <= low and top <= unit + (HELD if levels == 1 else HELD + STEP):
                if levels == 2:
                    deposit(limbs, upper, unit + STEP - origin)
                deposit(limbs, lower, unit - origin)
                before_top, before_low = top, low
                break
            # Tiles of two kinds by turns have one window if it can hold both.
            levels, unit = _window32(max(top, before_top), min(low, before_low), lowest, squares)
            if levels == 0:
                levels, unit = _window32(top, low, lowest, squares)
            before_top, before_low = top, low
            if levels == 0:
                for i in range(tile.size):
                    rest[i] = term_of(tile[i], shift, keep, squares)
                add_levels(rest, tile.size, top, low, origin, limbs)
                break
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
        rest[i] = term_of(x[i], shift_x, keep_x, False) * term_of(y[i], shift_y, keep_y, False)
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
