"""Values between two elements, (1 − w) · a + w · b, each rounded once.

Nearly all are made in NumPy, in two words of float64, with a bound of what these lose. Where the bound reaches a tie
between two numbers of the result, the value is made in fractions.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import round_ratio

_FEW = 64
"""Values that are made in fractions at once."""

_LOST = 2.0**-98
"""What two words lose, as a share of the larger element."""

_SPLIT = 134_217_729.0  # 2**27 + 1
_WIDEST, _NARROWEST = 2.0**900, 2.0**-900  # within these no product of words overflows, and none loses bits
_HALF = Fraction(1, 2)


def interpolated(
    low: NDArray[Any], high: NDArray[Any], weights: Sequence[Fraction], which: NDArray[np.int64], dtype: DType
) -> NDArray[np.float64]:
    """The values between the elements `low` and `high` of `dtype` with the weights weights[which], as numbers of the
    result's dtype. Between −∞ and ∞ lies NaN, and between −0 and 0 lies 0."""
    to = dtype if dtype.is_float else DTYPES["float64"]
    if low.size <= _FEW:
        made = [_exactly(*each, weights, to) for each in zip(low.tolist(), high.tolist(), which.tolist(), strict=True)]
        return np.array(made, np.float64)
    halves = np.array([weight == _HALF for weight in weights])
    with np.errstate(all="ignore"):
        if dtype.is_float and all(weight in (0, _HALF) for weight in weights):  # those of medians
            return np.asarray(np.where(halves[which], _halved(low, high), low), np.float64)
        a, b = low.astype(np.float64), high.astype(np.float64)
        values, sure = _in_two_words(a, b, weights, which, to)
        if not dtype.is_float:
            sure &= (np.abs(a) <= 2.0**53) & (np.abs(b) <= 2.0**53)  # else the elements themselves were rounded
        elif halves.any():
            values = np.where(halves[which], _halved(low, high).astype(np.float64), values)
            sure |= halves[which]
    for at in np.flatnonzero(~sure).tolist():
        values[at] = _exactly(low[at].item(), high[at].item(), int(which[at]), weights, to)
    return values


def _exactly(a: Any, b: Any, which: int, weights: Sequence[Fraction], to: DType) -> float:
    weight = weights[which]
    if isinstance(a, float) and (weight == 0 or a == b == 0 or not math.isfinite(a) or not math.isfinite(b)):
        return a if weight == 0 else a + b
    true = (1 - weight) * Fraction(a) + weight * Fraction(b)
    return round_ratio(true.numerator, true.denominator, 0, to)


def _halved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """(a + b) / 2 in the elements' own dtype. A sum below twice the least normal number is exact, and of all others
    the half is; a sum that overflows has elements whose halves are exact."""
    half = a.dtype.type(0.5)
    whole = a + b
    over = np.isinf(whole) & np.isfinite(a) & np.isfinite(b)
    return np.asarray(np.where(over, a * half + b * half, whole * half))


def _in_two_words(
    a: NDArray[np.float64], b: NDArray[np.float64], weights: Sequence[Fraction], which: NDArray[np.int64], to: DType
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The values, and which of them are right for sure."""
    words = [(float(weight), float(weight - Fraction(float(weight)))) for weight in weights]
    upper, lower = (np.array(each)[which] for each in zip(*words, strict=True))
    distance, rest = _sum(b, -a)
    product, more = _product(distance, upper)
    value, less = _sum(a, product)
    less += more + distance * lower + rest * upper
    value, less = _sum(value, less)
    size = np.maximum(np.abs(a), np.abs(b))
    lost = np.abs(less) + size * _LOST
    if to.numpy == np.float64:
        sure = (value + (less + size * _LOST) == value) & (value + (less - size * _LOST) == value)
    else:
        near = value if to.native else value.astype(np.float32)  # by way of which ml_dtypes rounds
        ends = (np.nextafter(near, near.dtype.type(end)) for end in (-np.inf, np.inf))
        below, above = (each.astype(to.numpy).astype(np.float64) for each in ends)
        sure = (below == above) & (lost < np.spacing(np.abs(value)))
        value = below
    inside = np.isfinite(size) & (size < _WIDEST)
    for each in (a, b, distance, value):
        inside &= np.abs(each) > _NARROWEST
    infinite = ~np.isfinite(a) | ~np.isfinite(b)
    alone, equal = upper == 0, a == b
    value = np.where(infinite | (equal & (a == 0)), a + b, value)
    value = np.where(alone | (equal & (a != 0)), a, value)
    return value, (sure & inside) | infinite | equal | alone


def _sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a + b, and what its rounding lost (Knuth)."""
    whole = a + b
    part = whole - a
    return whole, (a - (whole - part)) + (b - part)


def _product(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a · b, and what its rounding lost (Dekker)."""
    whole = a * b
    wide, other = a * _SPLIT, b * _SPLIT
    high, above = wide - (wide - a), other - (other - b)
    low, below = a - high, b - above
    return whole, low * below - (((whole - high * above) - low * above) - high * below)
