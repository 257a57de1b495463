"""Sums of float32 as float64, which are used where they are exact, compiled.

Of n elements that are multiples of 2**low and below 2**top, every sum in between is a multiple of 2**low below
n · 2**top. It is a float64 where these are at most 53 binary places apart, and then no addition rounds. Where they are
further apart, each addition may tell what it rounded (`two_sum`): sums without such a rest are exact all the same.
"""

# ruff: noqa: PLR0917 - compiled calls are positional

from typing import Any

import numpy as np

from warpfold.kernels.cpu.windows.levels import clamped_exponent
from warpfold.kernels.cpu.windows.nearest import length_of, odd, two_sum
from warpfold.kernels.cpu.windows.row_vectors import COLUMNS, add_rows_plainly
from warpfold.kernels.machine.jit import jit

BLOCK_WIDTH = 1 << 12
"""Columns that are added at a time: their sums stay in the cache, and a row of them is long enough to be asked for
ahead."""

MOST_ROWS = 1 << 6
"""Of more rows sums are less likely to be exact."""

NOTHING = 1 << 12
"""The exponents `low` and −`top` where all elements are 0."""

_PRECISION = 53
_BIAS, _FRACTION = 127, 23
_INFINITE = 255


@jit
def _single(word: Any, keep: Any) -> Any:
    return np.float64(np.int32(word & keep).view(np.float32))


@jit
def add_plain_rows(words: Any, start: Any, rows: Any, stride: Any, keep: Any, plain: Any) -> Any:
    """plain[c] = the sum of `rows` elements of each column, in float64; −0 of −0 alone. Returns twice the largest
    magnitude's pattern, and twice the smallest one's but zero, less 1."""
    step, size = np.uint32(1), plain.size
    for c in range(size):
        plain[c] = -0.0
    most, least = add_rows_plainly(words, start, rows, stride, size, keep, plain)
    for c in range(size - size % COLUMNS, size):
        for r in range(rows):
            kept = np.uint32(words[start + r * stride + c] & keep)
            doubled = np.uint32(kept + kept)
            most, least = max(most, np.int64(doubled)), min(least, np.int64(np.uint32(doubled - step)))
            plain[c] += _single(words[start + r * stride + c], keep)
    return most, least


@jit
def places_of(most: Any, least: Any, rows: Any) -> Any:
    """low and top, where all elements with these bounds are multiples of 2**low, and the sums of `rows` of them below
    2**top in magnitude."""
    if most == 0:
        return np.int64(NOTHING), np.int64(-NOTHING)
    top = clamped_exponent(most >> (_FRACTION + 1)) - _BIAS + 1
    low = clamped_exponent((least + 1) >> (_FRACTION + 1)) - _BIAS - _FRACTION
    return low, top + length_of(np.uint64(rows))


@jit
def are_finite(most: Any) -> Any:
    """Whether all elements are, of which this is twice the largest magnitude's pattern."""
    return most >> (_FRACTION + 1) < _INFINITE


@jit
def never_round(low: Any, top: Any) -> Any:
    """Whether multiples of 2**low below 2**top are float64 numbers."""
    return top - low <= _PRECISION


@jit
def _checked(words: Any, start: Any, rows: Any, stride: Any, keep: Any, plain: Any) -> Any:
    """As `add_plain_rows`; returns whether no addition rounded."""
    rests = np.uint64(0)
    for c in range(plain.size):
        plain[c] = -0.0
    for r in range(rows):
        row = words[start + r * stride : start + r * stride + plain.size]
        for c in range(plain.size):
            total, rest = two_sum(plain[c], _single(row[c], keep))
            plain[c] = total
            rests |= np.float64(rest).view(np.uint64) << np.uint64(1)
    return rests == 0


@jit
def add_plain_columns(
    words: Any, starts: Any, places: Any, rows: Any, stride: Any, width: Any, keep: Any, sums: Any
) -> Any:
    """Set sums[places[i]] and following to the sums of `width` columns of `rows` rows of float32, which are `stride`
    apart, from words[starts[i]] on, for every i. Returns whether all sums are exact, and `low` and `top` of
    `places_of`."""
    low, top = np.int64(NOTHING), np.int64(-NOTHING)
    for i in range(starts.size):
        for left in range(0, width, BLOCK_WIDTH):
            size, start = min(BLOCK_WIDTH, width - left), starts[i] + left
            part = sums[places[i] + left : places[i] + left + size]
            most, least = add_plain_rows(words, start, rows, stride, keep, part)
            lowest, highest = places_of(most, least, rows)
            if not are_finite(most) or (
                not never_round(lowest, highest) and not _checked(words, start, rows, stride, keep, part)
            ):
                return False, low, top
            low, top = min(low, lowest), max(top, highest)
    return True, low, top


@jit
def add_pairs(part: Any, totals: Any, rests: Any) -> None:
    """Add sums to those that are totals[i] + rests[i]. What an addition rounds goes into the rests, which are to hold
    it."""
    for i in range(part.size):
        total, rest = two_sum(totals[i], part[i])
        totals[i] = total
        rests[i] += rest


@jit
def round_pairs(totals: Any, rests: Any, scale: Any, values: Any) -> None:
    """values[i] = (totals[i] + rests[i]) · scale, a power of two, rounded once to float32."""
    for i in range(values.size):
        total, rest = totals[i] * scale, rests[i] * scale
        high, low = two_sum(total, rest)
        values[i] = odd(total if rest == 0.0 else high, low)
