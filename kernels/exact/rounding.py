"""Correct rounding of exact numbers to a float dtype: to nearest, ties to even, as IEEE 754-2019, 4.3.1.

Overflow gives an infinity, small results are subnormal, and a result that underflows keeps its sign.
"""

import math

from warpfold.kernels.dtypes import DType

_GUARD = 3


def round_ratio(numerator: int, denominator: int, exponent: int, dtype: DType) -> float:
    """`numerator` / `denominator` · 2**`exponent` rounded once to `dtype`, as the Python float of the same value.

    `denominator` is positive. Zero is +0.
    """
    return round_root(numerator, denominator, exponent, 1, dtype)


def round_sqrt(numerator: int, denominator: int, exponent: int, dtype: DType) -> float:
    """√(`numerator` / `denominator` · 2**`exponent`) rounded once to `dtype`; `numerator` ≥ 0, `denominator` > 0."""
    return round_root(numerator, denominator, exponent, 2, dtype)


def round_root(numerator: int, denominator: int, exponent: int, degree: int, dtype: DType) -> float:
    """± (|`numerator`| / `denominator` · 2**`exponent`) ** (1 / `degree`), with the sign of `numerator`, rounded once
    to `dtype`. `denominator` is positive, and `degree` is 1, 2, 3 or 4. Zero is +0."""
    magnitude = abs(numerator)
    if not magnitude:
        return 0.0
    # 2**(top − 1) < magnitude / denominator · 2**exponent < 2**(top + 1), and its root is about 2**(top / degree).
    top = magnitude.bit_length() - denominator.bit_length() + exponent
    unit = _unit(top // degree, dtype)
    # ⌊ᵏ√⌊x⌋⌋ = ⌊ᵏ√x⌋, so flooring the quotient first loses only the information whether it was exact.
    dividend, divisor = _scaled(magnitude, denominator, exponent - degree * unit)
    radicand, remainder = divmod(dividend, divisor)
    root = _floor_root(radicand, degree)
    rounded = _round(root, bool(remainder) or root**degree != radicand, unit, dtype)
    return rounded if numerator > 0 else -rounded


def _floor_root(radicand: int, degree: int) -> int:
    """The largest integer whose power is no more than `radicand`."""
    if degree == 1:
        return radicand
    if degree % 2 == 0:
        return _floor_root(math.isqrt(radicand), degree // 2)
    # Newton's steps fall from above to the floor of the cube root.
    root = 1 << -(-radicand.bit_length() // 3)
    while (lower := (2 * root + radicand // (root * root)) // 3) < root:
        root = lower
    return root


def _unit(top: int, dtype: DType) -> int:
    """An exponent so low that a number of about 2**top is rounded at least three bits above it."""
    return max(top - dtype.precision - 1, dtype.min_exponent) - _GUARD


def _scaled(numerator: int, denominator: int, shift: int) -> tuple[int, int]:
    return (numerator << shift, denominator) if shift >= 0 else (numerator, denominator << -shift)


def _round(floor: int, inexact: bool, unit: int, dtype: DType) -> float:
    """(`floor` + a fraction, which is 0 unless `inexact`) · 2**`unit`, rounded."""
    # The kept part has `precision` bits, or counts units of the smallest subnormal. At least _GUARD bits are dropped.
    drop = max(floor.bit_length() - dtype.precision, dtype.min_exponent - unit)
    kept = floor >> drop
    rest = floor & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and (inexact or kept & 1)):
        kept += 1
    exponent = unit + drop
    if kept.bit_length() + exponent > dtype.max_exponent:
        return math.inf
    return math.ldexp(kept, exponent)
