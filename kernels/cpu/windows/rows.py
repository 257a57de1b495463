"""Exact sums of the rows of an array, compiled: neighbouring elements of one value each.

A row whose exponents fit into two levels (`levels`), as nearly all do, is summed in two integers and rounded at once;
any other row is summed in limbs. Both are exact, so that they give the same bits.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.float32 import INFINITY32, add_float32, add_float32_products, term_of
from warpfold.kernels.cpu.windows.float64 import INFINITY64, add_float64, add_float64_products
from warpfold.kernels.cpu.windows.levels import (
    HELD,
    NAN,
    NEG_INF,
    NOT_NEGATIVE_ZERO,
    POS_INF,
    STEP,
    TILE32,
    TILE64,
    anchor_at,
    bounds,
    clamped_exponent,
    counted,
)
from warpfold.kernels.cpu.windows.nearest import rounded_levels, rounded_limbs, two_sum
from warpfold.kernels.machine.jit import jit


@jit
def unsigned_flags(flags: Any) -> Any:
    """The flags of squares or magnitudes, which are neither −0 nor −∞, of at least one element."""
    infinite = POS_INF if flags & (POS_INF | NEG_INF) else 0
    return (flags & NAN) | infinite | NOT_NEGATIVE_ZERO


SHORT = 8
"""Elements of a row that is summed in float64 numbers first."""

_U = np.uint64  # Numba wraps signed indices, which takes longer than all else
_TIES = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


@jit
def _certified(s: Any, rest: Any, size: Any, count: Any) -> Any:
    """The sum of `count` ≤ SHORT numbers, rounded once, and whether it is certain; `s` is their sum as it came, `rest`
    the sum of the errors of the additions, and `size` that of their magnitudes.

    s + rest = r + rho exactly. What `rest` itself lost is at most (count − 2) · 2**−53 · size (Higham 2002, 4.2);
    `lost` is about four times that, and 2**−50 · |rho|. Where rho ± lost, added to r, give r again, so does all that
    lies between.
    """
    r, rho = two_sum(s, rest)
    lost = size * count * 2.0**-51 + abs(rho) * 2.0**-50
    sure = 2.0**-900 < abs(r) < 2.0**1000 and r + (rho + lost) == r and r + (rho - lost) == r
    return r, rho, sure


@jit
def _short64(flat: Any, start: Any, stop: Any, keep: Any) -> Any:
    """The sum of elements `start` … `stop` − 1 of float64 (int64), a short row, and whether it is certain."""
    s, rest, size = np.int64(flat[_U(start)] & keep).view(np.float64), 0.0, 0.0
    for i in range(start + 1, stop):
        s, error = two_sum(s, np.int64(flat[_U(i)] & keep).view(np.float64))
        rest += error
        size += abs(error)
    r, _, sure = _certified(s, rest, size, stop - start)
    return r, sure


@jit
def _short32(flat: Any, start: Any, stop: Any, keep: Any) -> Any:
    """Do what `_short64` does for float32 (int32). A float64 halfway between two float32 is rounded again only where
    nothing was lost before."""
    s, rest, size = np.float64(np.int32(flat[_U(start)] & keep).view(np.float32)), 0.0, 0.0
    for i in range(start + 1, stop):
        s, error = two_sum(s, np.float64(np.int32(flat[_U(i)] & keep).view(np.float32)))
        rest += error
        size += abs(error)
    r, rho, sure = _certified(s, rest, size, stop - start)
    tie = np.float64(r).view(np.int64) & _TIES == _TIE
    sure &= 2.0**-120 < abs(r) < 2.0**120 and not (tie and (rho != 0.0 or size != 0.0))
    return np.float64(np.float32(r)), sure


@jit
def _one32(tile: Any, keep: Any, squares: Any, anchor: Any) -> Any:
    patterns = np.uint64(0)
    for i in range(tile.size):
        patterns += np.float64(term_of(tile[i], keep, squares) + anchor).view(np.uint64)
    return patterns


@jit
def _two32(tile: Any, keep: Any, squares: Any, anchor: Any, second: Any) -> Any:
    patterns = np.uint64(0)
    others = np.uint64(0)
    for i in range(tile.size):
        d = term_of(tile[i], keep, squares)
        t = d + anchor
        patterns += np.float64(t).view(np.uint64)
        others += np.float64((d - (t - anchor)) + second).view(np.uint64)
    return patterns, others


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
def sum_rows32(
    flat: Any,
    edges: Any,
    keep: Any,
    squares: Any,
    unsigned: Any,
    mean: Any,
    origin: Any,
    form: Any,
    space: Any,
    values: Any,
) -> None:
    """values[r] = Σ of the elements of `flat` from edges[r] to edges[r + 1], or of their squares, or the mean, rounded
    to `form` (`nearest`); the value of no elements is left as it is.

    `space` is limbs, of which the first counts 2**origin, and what `add_float32` takes besides.
    """
    limbs, rest, spare = space
    times = 2 if squares else 1
    for r in range(edges.size - 1):
        start, stop = edges[r], edges[r + 1]
        if stop == start:
            continue
        if stop - start <= SHORT and form[0] == 24 and not squares and not mean:
            value, sure = _short32(flat, start, stop, keep)
            if sure:
                values[r] = value
                continue
        row = flat[start:stop]
        count = row.size if mean else np.int64(1)
        if row.size <= TILE32:
            most, least = bounds(row)
            if most == 0:
                values[r] = 0.0 if unsigned or 0 in row else -0.0
                continue
            top = times * (clamped_exponent(most >> 23) - 126)
            unit = times * (clamped_exponent((least + 1) >> 23) - 127 - 23)
            if most < INFINITY32 and top - unit <= HELD + STEP:
                if top - unit <= HELD:
                    anchor = anchor_at(unit)
                    first = counted(_one32(row, keep, squares, anchor), row.size, anchor)
                    values[r] = rounded_levels(first, 0, np.int64(0), unit, count, form)
                else:
                    anchor, second = anchor_at(top - HELD), anchor_at(unit)
                    patterns, others = _two32(row, keep, squares, anchor, second)
                    upper, lower = counted(patterns, row.size, anchor), counted(others, row.size, second)
                    values[r] = rounded_levels(upper, top - HELD - unit, lower, unit, count, form)
                continue
        limbs[:] = 0
        flags = add_float32(row, keep, squares, origin, limbs, rest, spare)
        flags = unsigned_flags(flags) if unsigned else flags
        values[r] = rounded_limbs(limbs, origin, flags, count, form)


@jit
def sum_rows64(
    flat: Any,
    edges: Any,
    keep: Any,
    squares: Any,
    unsigned: Any,
    mean: Any,
    origin: Any,
    form: Any,
    space: Any,
    values: Any,
) -> None:
    """Do what `sum_rows32` does for float64 elements (int64) masked by `keep`. `space` has limbs, and the arrays that
    `add_float64` takes."""
    limbs, rest, other, spare, fields = space
    for r in range(edges.size - 1):
        start, stop = edges[r], edges[r + 1]
        if stop == start:
            continue
        if stop - start <= SHORT and not squares and not mean:
            value, sure = _short64(flat, start, stop, keep)
            if sure:
                values[r] = value
                continue
        row = flat[start:stop]
        count = row.size if mean else np.int64(1)
        if row.size <= TILE64 and not squares:
            most, least = bounds(row)
            if most == 0:
                values[r] = 0.0 if unsigned or 0 in row else -0.0
                continue
            top = clamped_exponent(most >> 52) - 1022
            unit = clamped_exponent((least + 1) >> 52) - 1075
            if most < INFINITY64 and top <= 1000 and top - unit <= HELD + STEP:
                first = max(top - HELD, unit)
                anchor, second = anchor_at(first), anchor_at(unit)
                patterns, others = _two64(row, keep, anchor, second)
                upper, lower = counted(patterns, row.size, anchor), counted(others, row.size, second)
                values[r] = rounded_levels(upper, first - unit, lower, unit, count, form)
                continue
        limbs[:] = 0
        flags = add_float64(row, keep, squares, origin, limbs, rest, other, spare, fields)
        flags = unsigned_flags(flags) if unsigned else flags
        values[r] = rounded_limbs(limbs, origin, flags, count, form)


@jit
def add_rows32(
    flat: Any,
    edges: Any,
    outputs: Any,
    keep: Any,
    squares: Any,
    origin: Any,
    limbs: Any,
    flags: Any,
    rest: Any,
    spare: Any,
) -> None:
    """limbs[outputs[r]] += Σ of the elements of `flat` from edges[r] to edges[r + 1], as `add_float32` adds them;
    `limbs` has the shape (values, LIMBS), `flags` (values,)."""
    for r in range(outputs.size):
        row = flat[edges[r] : edges[r + 1]]
        o = outputs[r]
        flags[o] |= add_float32(row, keep, squares, origin, limbs[o], rest, spare)


@jit
def add_rows64(
    flat: Any,
    edges: Any,
    outputs: Any,
    keep: Any,
    squares: Any,
    origin: Any,
    limbs: Any,
    flags: Any,
    rest: Any,
    other: Any,
    spare: Any,
    fields: Any,
) -> None:
    """Do what `add_rows32` does, with elements that `add_float64` adds."""
    for r in range(outputs.size):
        row = flat[edges[r] : edges[r + 1]]
        o = outputs[r]
        flags[o] |= add_float64(row, keep, squares, origin, limbs[o], rest, other, spare, fields)


@jit
def add_row_products32(
    x: Any,
    y: Any,
    edges: Any,
    outputs: Any,
    origin: Any,
    limbs: Any,
    flags: Any,
    rest: Any,
    spare_x: Any,
    spare_y: Any,
    fraction: Any,
) -> None:
    """Do what `add_rows32` does for the products x[i] · y[i], as `add_float32_products` adds them."""
    for r in range(outputs.size):
        o = outputs[r]
        left, right = x[edges[r] : edges[r + 1]], y[edges[r] : edges[r + 1]]
        flags[o] |= add_float32_products(left, right, origin, limbs[o], rest, spare_x, spare_y, fraction)


@jit
def add_row_products64(
    x: Any,
    y: Any,
    edges: Any,
    outputs: Any,
    origin: Any,
    limbs: Any,
    flags: Any,
    rest: Any,
    other: Any,
    spare: Any,
    spare_y: Any,
) -> None:
    """Do what `add_row_products32` does for float64 elements, as `add_float64_products` adds their products."""
    for r in range(outputs.size):
        o = outputs[r]
        left, right = x[edges[r] : edges[r + 1]], y[edges[r] : edges[r + 1]]
        flags[o] |= add_float64_products(left, right, origin, limbs[o], rest, other, spare, spare_y)


SUM_ROWS = {4: sum_rows32, 8: sum_rows64}
ADD_ROWS = {4: add_rows32, 8: add_rows64}
ADD_ROW_PRODUCTS = {4: add_row_products32, 8: add_row_products64}
"""The functions for patterns of so many bytes."""
