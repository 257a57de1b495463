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
    magnitude = abs(numerator)
    if not magnitude:
        return 0.0
    # 2**(top − 1) < magnitude / denominator · 2**exponent < 2**(top + 1)
    top = magnitude.bit_length() - denominator.bit_length() + exponent
    unit = _unit(top, dtype)
    dividend, divisor = _scaled(magnitude, denominator, exponent - unit)
    quotient, remainder = divmod(dividend, divisor)
    rounded = _round(quotient, bool(remainder), unit, dtype)
    return rounded if numerator > 0 else -rounded


def round_sqrt(numerator: int, denominator: int, exponent: int, dtype: DType) -> float:
    """√(`numerator` / `denominator` · 2**`exponent`) rounded once to `dtype`; `numerator` ≥ 0, `denominator` > 0."""
    if not numerator:
        return 0.0
    top = (numerator.bit_length() - denominator.bit_length() + exponent) // 2
    unit = _unit(top, dtype)
    # ⌊√⌊x⌋⌋ = ⌊√x⌋, so flooring the quotient first loses only the information whether it was exact.
    dividend, divisor = _scaled(numerator, denominator, exponent - 2 * unit)
    radicand, remainder = divmod(dividend, divisor)
    root = math.isqrt(radicand)
    return _round(root, bool(remainder) or root * root != radicand, unit, dtype)


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
