"""Exact sums of float32 and of the 16-bit formats, which are made patterns of float32 first."""

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
    none_but_negative_zeros,
    padded,
    resolve,
    special_pairs,
)
from warpfold.kernels.cpu.windows.vector_code import LANES
from warpfold.kernels.cpu.windows.vectors import one_level, two_levels, two_levels_of_squares
from warpfold.kernels.machine.jit import jit
from warpfold.kernels.machine.machine_code import read_only

NARROW = 1 << 12
"""Elements of 16 bits that are made words at a time, which stay in the second-level cache."""

_LIKELY = -40
"""The unit of the window that a first tile is tried with."""
_FAR = 1 << 20
"""More places than any format has."""

INFINITY32 = np.int64(0x7F800000)
_INFINITY, _HALF, _HALF_INFINITY = np.int32(0x7F800000), np.int32(-0x70002000), np.int32(0x0F800000)
_TIMES = np.float32(2.0**112)


@jit
def widen(bits: Any, half: Any, words: Any) -> None:
    """words[i] = the pattern of a float32 (int32) with the value of bits[i] (int16), of bfloat16 or with `half` of
    float16."""
    if half:
        for i in range(bits.size):
            # With its fields in the places of a float32, a float16 is 2**112 times too small.
            pattern = np.int32((np.int32(bits[i]) << 13) & _HALF)
            special = _INFINITY if pattern & _HALF_INFINITY == _HALF_INFINITY else np.int32(0)
            words[i] = np.float32(pattern.view(np.float32) * _TIMES).view(np.int32) | special
    else:
        for i in range(bits.size):
            words[i] = np.int32(bits[i]) << 16


@jit
def term_of(word: Any, keep: Any, squares: Any) -> Any:
    """A pattern of float32, masked, as a float64, or its square."""
    d = np.float64(np.int32(word & keep).view(np.float32))
    return d * d if squares else d


@jit
def _sums32(tile: Any, keep: Any, squares: Any, levels: Any, unit: Any) -> Any:
    """Σ k of both levels of a window, where a window of one level has only the second, and the tile's bounds as
    `two_levels` gives them."""
    first, last = anchor_at(unit + STEP), anchor_at(unit)
    if levels < 2:
        lower, _, most, least = one_level(tile, keep, last, None)
        return np.int64(0), counted(lower, tile.size, last), most, least
    if squares:
        upper, lower, most, least = two_levels_of_squares(tile, keep, first, last)
    else:
        upper, lower, most, least = two_levels(tile, keep, first, last)
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
def add_float32(bits: Any, keep: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the elements `bits`, or of their squares; returns their Flags as an
    integer. `bits` are at most MAX_ELEMENTS patterns of float32 (int32), masked by `keep`. `rest` (float64) and `spare`
    (as `bits`) are working space of TILE32 elements."""
    times = 2 if squares else 1
    lowest = times * (1 - 127 - 23)
    levels, unit = times, max(times * _LIKELY, lowest)
    before_top, before_low = -_FAR, _FAR
    flags = 0
    for at in range(0, bits.size, TILE32):
        tile = bits[at : at + TILE32]
        if tile.size % LANES:
            tile = padded(tile, spare)
        while True:
            upper, lower, most, least = _sums32(tile, keep, squares, levels, unit)
            if most >> 24 >= INFINITY32 >> 23:
                flags |= clean(tile, INFINITY32, spare) | NOT_NEGATIVE_ZERO
                tile = spare[: tile.size]
                continue
            if most == 0:
                if not flags & NOT_NEGATIVE_ZERO and 0 in tile:
                    flags |= NOT_NEGATIVE_ZERO
                break
            flags |= NOT_NEGATIVE_ZERO
            # Biased exponent e (0 counts as 1): 2**(e−127) ≤ |x| < 2**(e−126) but for subnormals, all multiples of
            # 2**(e−150). Squares of 24-bit significands are float64 numbers.
            top = times * (clamped_exponent(most >> 24) - 126)
            low = times * (clamped_exponent((least + 1) >> 24) - 127 - 23)
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
                    rest[i] = term_of(tile[i], keep, squares)
                add_levels(rest, tile.size, top, low, origin, limbs)
                break
    resolve(limbs)
    return flags


@jit
def add_narrow(
    bits: Any, keep: Any, squares: Any, origin: Any, limbs: Any, rest: Any, spare: Any, words: Any, half: Any
) -> Any:
    """Do what `add_float32` does for patterns of 16 bits, as `widen` reads them; `words` (int32) has room for some."""
    flags = 0
    for at in range(0, bits.size, words.size):
        some = bits[at : at + words.size]
        widen(some, half, words)
        flags |= add_float32(read_only(words[: some.size]), keep, squares, origin, limbs, rest, spare)
    return flags


@jit
def _tile32_products(
    x: Any, y: Any, fraction: Any, origin: Any, limbs: Any, rest: Any, spare_x: Any, spare_y: Any
) -> Any:
    flags = 0
    most_x, least_x = bounds(x)
    most_y, least_y = bounds(y)
    if most_x >= INFINITY32 or most_y >= INFINITY32:
        flags = special_pairs(x, y, INFINITY32, INFINITY32, spare_x, spare_y) | NOT_NEGATIVE_ZERO
        x, y = spare_x[: x.size], spare_y[: y.size]
        most_x, least_x = bounds(x)
        most_y, least_y = bounds(y)
    elif not none_but_negative_zeros(x, y):
        flags = NOT_NEGATIVE_ZERO
    if most_x == 0 or most_y == 0:
        return flags
    count = x.size
    top = clamped_exponent(most_x >> 23) + clamped_exponent(most_y >> 23) - 2 * 126
    unit = clamped_exponent((least_x + 1) >> 23) + clamped_exponent((least_y + 1) >> 23) - 2 * 127 - fraction
    for i in range(count):
        rest[i] = np.float64(np.int32(x[i]).view(np.float32)) * np.float64(np.int32(y[i]).view(np.float32))
    add_levels(rest, count, top, unit, origin, limbs)
    return flags


@jit
def add_float32_products(
    x: Any, y: Any, origin: Any, limbs: Any, rest: Any, spare_x: Any, spare_y: Any, fraction: Any
) -> Any:
    """limbs (int64, of 2**origin, resolved) += Σ of the products of the elements `x` and `y`, equally many patterns as
    in `add_float32`; returns the products' Flags as an integer. `fraction` are the bits behind the points of two
    significands that their dtypes have: without it products of 16-bit formats would need more levels. `rest` (float64),
    `spare_x` and `spare_y` (as `x` and `y`) are working space of TILE32 elements."""
    flags = 0
    for at in range(0, x.size, TILE32):
        tile, other = x[at : at + TILE32], y[at : at + TILE32]
        flags |= _tile32_products(tile, other, fraction, origin, limbs, rest, spare_x, spare_y)
    resolve(limbs)
    return flags
