"""Exact sums of the columns of an array, compiled: neighbouring elements of neighbouring values.

A block of rows is read twice from the cache, row after row, so that a vector register holds elements of neighbouring
columns. The first pass bounds the exponents of every column, and the second adds two levels (`levels`), whose anchors
are the column's own. A column whose exponents need more than two levels, or that holds NaN or an infinity, is gathered
and added by itself.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.float32 import add_float32, term_of
from warpfold.kernels.cpu.windows.float64 import INFINITY64, add_float64
from warpfold.kernels.cpu.windows.levels import (
    HELD,
    NOT_NEGATIVE_ZERO,
    STEP,
    anchor_at,
    clamped_exponent,
    counted,
    deposit,
    infinity_of,
)
from warpfold.kernels.machine.jit import jit

BLOCK_ROWS = 256
BLOCK_WIDTH = 1024
"""A block of float32 is 1 MiB, in the second-level cache, and what is kept of its columns is some 40 KiB."""

_APART = np.int64(-(1 << 40))  # in place of a unit: the column is added by itself, or all of it is zero


@jit
def _bound_columns(flat: Any, at: Any, stride: Any, rows: Any, most: Any, least: Any) -> None:
    """`levels.bounds` of each of most.size columns."""
    word = flat.dtype.type
    magnitude = word(np.iinfo(flat.dtype).max)
    for c in range(most.size):
        most[c] = word(0)
        least[c] = magnitude
    for r in range(rows):
        row = flat[at + r * stride : at + r * stride + most.size]
        for c in range(most.size):
            a = word(row[c] & magnitude)
            most[c] = a if a > most[c] else most[c]
            b = word(word(a - word(1)) & magnitude)
            least[c] = b if b < least[c] else least[c]


@jit
def _gather(flat: Any, at: Any, stride: Any, column: Any) -> None:
    for r in range(column.size):
        column[r] = flat[at + r * stride]


@jit
def _plan_columns(
    flat: Any,
    at: Any,
    stride: Any,
    rows: Any,
    first: Any,
    fraction: Any,
    infinity: Any,
    bias: Any,
    flags: Any,
    most: Any,
    least: Any,
    units: Any,
    anchors: Any,
    seconds: Any,
    apart: Any,
) -> Any:
    """The unit and the anchors of each column, and how far its two levels are apart; returns whether any column needs
    two levels."""
    two = False
    for c in range(most.size):
        units[c], anchors[c], seconds[c], apart[c] = _APART, 0.0, 0.0, 0
        if most[c] == 0:
            for r in range(rows):
                if flat[at + r * stride + c] == 0:
                    flags[first + c] |= NOT_NEGATIVE_ZERO
                    break
            continue
        top = clamped_exponent(np.int64(most[c]) >> fraction) - (bias - 1)
        unit = clamped_exponent((np.int64(least[c]) + 1) >> fraction) - bias - fraction
        if most[c] >= infinity or top - unit > HELD + STEP or top > 1000:
            apart[c] = -1
            continue
        upper = max(top - HELD, unit)
        two |= upper > unit
        units[c], anchors[c], seconds[c], apart[c] = unit, anchor_at(upper), anchor_at(unit), upper - unit
        flags[first + c] |= NOT_NEGATIVE_ZERO
    return two


@jit
def _deposit_columns(
    rows: Any,
    first: Any,
    adjusted: Any,
    limbs: Any,
    units: Any,
    anchors: Any,
    seconds: Any,
    apart: Any,
    sums: Any,
    others: Any,
    two: Any,
) -> None:
    for c in range(units.size):
        if units[c] == _APART:
            continue
        place = units[c] - adjusted
        deposit(limbs[first + c], counted(sums[c], rows, anchors[c]), place + apart[c])
        if two:
            deposit(limbs[first + c], counted(others[c], rows, seconds[c]), place)


@jit
def _two_level_columns32(
    flat: Any,
    at: Any,
    stride: Any,
    rows: Any,
    shift: Any,
    keep: Any,
    anchors: Any,
    seconds: Any,
    sums: Any,
    others: Any,
) -> None:
    for r in range(rows):
        row = flat[at + r * stride : at + r * stride + sums.size]
        for c in range(sums.size):
            d = term_of(row[c], shift, keep, False)
            t = d + anchors[c]
            sums[c] += np.float64(t).view(np.uint64)
            others[c] += np.float64((d - (t - anchors[c])) + seconds[c]).view(np.uint64)


@jit
def _one_level_columns32(
    flat: Any, at: Any, stride: Any, rows: Any, shift: Any, keep: Any, anchors: Any, sums: Any
) -> None:
    for r in range(rows):
        row = flat[at + r * stride : at + r * stride + sums.size]
        for c in range(sums.size):
            sums[c] += np.float64(term_of(row[c], shift, keep, False) + anchors[c]).view(np.uint64)


@jit
def add_columns32(
    flat: Any,
    height: Any,
    width: Any,
    first: Any,
    layout: Any,
    adjusted: Any,
    limbs: Any,
    flags: Any,
    space: Any,
    column: Any,
    rest: Any,
    spare: Any,
) -> None:
    """limbs[first + c] += Σ of column c of `flat`, which is `height` rows of `width` elements as `add_float32` reads
    them. `limbs`, of shape (values, LIMBS), are left unresolved: there may be 2**24 calls of BLOCK_ROWS rows before
    they are resolved. `space` are eight arrays of BLOCK_WIDTH, and `column` has BLOCK_ROWS elements as `flat`."""
    shift, keep, fraction = layout
    infinity = infinity_of(flat, fraction)
    for left in range(0, width, BLOCK_WIDTH):
        n = min(BLOCK_WIDTH, width - left)
        for at in range(0, height, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, height - at)
            most, least, units = space[0][:n], space[1][:n], space[2][:n]
            anchors, seconds, apart = space[3][:n], space[4][:n], space[5][:n]
            sums, others = space[6][:n], space[7][:n]
            begin, to = at * width + left, first + left
            _bound_columns(flat, begin, width, rows, most, least)
            two = _plan_columns(
                flat, begin, width, rows, to, fraction, infinity, 127, flags, most, least, units, anchors, seconds,
                apart,
            )  # fmt: skip
            sums[:] = 0
            others[:] = 0
            if two:
                _two_level_columns32(flat, begin, width, rows, shift, keep, anchors, seconds, sums, others)
            else:
                _one_level_columns32(flat, begin, width, rows, shift, keep, anchors, sums)
            _deposit_columns(rows, to, adjusted, limbs, units, anchors, seconds, apart, sums, others, two)
            for c in range(n):
                if apart[c] < 0:
                    _gather(flat, begin + c, width, column[:rows])
                    flags[to + c] |= add_float32(column[:rows], layout, False, adjusted, limbs[to + c], rest, spare)


@jit
def add_columns64(
    flat: Any,
    height: Any,
    width: Any,
    first: Any,
    keep: Any,
    adjusted: Any,
    limbs: Any,
    flags: Any,
    space: Any,
    column: Any,
    rest: Any,
    other: Any,
    spare: Any,
    fields: Any,
) -> None:
    """Do what `add_columns32` does for float64 elements, as `add_float64` reads them."""
    for left in range(0, width, BLOCK_WIDTH):
        n = min(BLOCK_WIDTH, width - left)
        for at in range(0, height, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, height - at)
            most, least, units = space[0][:n], space[1][:n], space[2][:n]
            anchors, seconds, apart = space[3][:n], space[4][:n], space[5][:n]
            sums, others = space[6][:n], space[7][:n]
            begin, to = at * width + left, first + left
            _bound_columns(flat, begin, width, rows, most, least)
            two = _plan_columns(
                flat, begin, width, rows, to, 52, INFINITY64, 1023, flags, most, least, units, anchors, seconds, apart
            )
            sums[:] = 0
            others[:] = 0
            for r in range(rows):
                row = flat[begin + r * width : begin + r * width + n]
                for c in range(n):
                    d = np.int64(row[c] & keep).view(np.float64)
                    t = d + anchors[c]
                    sums[c] += np.float64(t).view(np.uint64)
                    others[c] += np.float64((d - (t - anchors[c])) + seconds[c]).view(np.uint64)
            _deposit_columns(rows, to, adjusted, limbs, units, anchors, seconds, apart, sums, others, two)
            for c in range(n):
                if apart[c] < 0:
                    _gather(flat, begin + c, width, column[:rows])
                    flags[to + c] |= add_float64(
                        column[:rows], keep, False, adjusted, limbs[to + c], rest, other, spare, fields
                    )
