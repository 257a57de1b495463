"""The true value of an op on an array, as a fraction, and how hard it is to compute."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, round_ratio
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.ops import Terms, op_named

MAX_FACTORS = 1 << 22
"""Factors of an exact product: a big integer takes about a microsecond a factor, so this many take a few seconds."""

PRODUCT_BITS = 512
"""Bits that are kept of an exact product's significand: after MAX_FACTORS truncations its relative error is below
2**-480."""

_ROOT_BITS = 512
_PIECE = 1 << 20


@dataclass(frozen=True)
class Truth:
    """The true value of an op, and the numbers that its bounds are made of.

    `total` is Σt and `magnitude` Σ|t| over the terms t that the op adds: x, x·y or x². `value` is the true result, the
    root of a sum of squares and a product to more than 450 bits, everything else exactly. `rounded` and `wide` are
    `value` rounded once to the dtype and to float64. `lowest` and `highest` are log₂ of bounds on all partial products
    in any order.
    """

    count: int
    dtype: DType
    value: Fraction
    total: Fraction
    magnitude: Fraction
    rounded: float
    wide: float
    lowest: float = 0.0
    highest: float = 0.0

    @property
    def condition(self) -> float:
        """Σ|t| ÷ |Σt|: 1 at best, infinite where the terms cancel, 1 where all are 0."""
        if not self.total:
            return math.inf if self.magnitude else 1.0
        return to_float(self.magnitude / abs(self.total))


def truth(op: str, x: NDArray[Any], y: NDArray[Any] | None, dtype: DType) -> Truth:
    """The true value of `op` over the finite elements of `x` (and `y` for dot), both of shape (n,), n ≥ 1.

    Raises InvalidInput for a product of more than MAX_FACTORS elements.
    """
    if op == "prod":
        return _product(x, dtype)
    row = op_named(op)
    state, magnitudes = _states(row.terms, x, y, dtype)
    total, magnitude = _fraction(state), _fraction(magnitudes)
    value = {"mean": total / x.size, "norm2": root(abs(total))}.get(op, total)
    rounded, wide = (float(value_of(row, [state], name)) for name in (dtype.name, "float64"))
    return Truth(x.size, dtype, value, total, magnitude, rounded, wide)


def ulp(value: Fraction, dtype: DType) -> Fraction:
    """The spacing of `dtype` at `value`: 2**(e − p + 1) for 2**e ≤ |value| < 2**(e + 1), that of subnormals below."""
    exponent = floor_log2(abs(value)) - dtype.precision + 1 if value else dtype.min_exponent
    return Fraction(2) ** max(exponent, dtype.min_exponent)


def floor_log2(x: Fraction) -> int:
    """⌊log₂ x⌋ for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    at_least = x.numerator >= x.denominator << guess if guess >= 0 else x.numerator << -guess >= x.denominator
    return guess if at_least else guess - 1


def root(square: Fraction) -> Fraction:
    """√square, truncated to at least _ROOT_BITS bits."""
    if not square:
        return Fraction(0)
    scale = max(0, 2 * _ROOT_BITS - floor_log2(square))
    scale += scale % 2
    return Fraction(math.isqrt((square.numerator << scale) // square.denominator), 1 << scale // 2)


def to_float(x: Fraction) -> float:
    """`x` rounded to float64; infinite beyond its range."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _states(terms: Terms, x: NDArray[Any], y: NDArray[Any] | None, dtype: DType) -> tuple[ExactState, ExactState]:
    """The exact sums of the terms and of their magnitudes."""
    arrays = (x,) if y is None else (x, y)
    signed, unsigned = (accumulator([dtype] * len(arrays), terms) for _ in range(2))
    for at in range(0, x.size, _PIECE):
        parts = [array[at : at + _PIECE] for array in arrays]
        signed.add(*parts)
        unsigned.add(*map(np.abs, parts))
    return signed.state(), unsigned.state()


def _fraction(state: ExactState) -> Fraction:
    return Fraction(state.units, 1 << -ORIGIN[state.terms])


def _product(x: NDArray[Any], dtype: DType) -> Truth:
    if x.size > MAX_FACTORS:
        raise InvalidInput(f"an exact product takes up to {MAX_FACTORS:,} factors, and there are {x.size:,}", "sizes")
    wide = x.astype(np.float64)
    if not wide.all():
        return Truth(x.size, dtype, Fraction(0), Fraction(0), Fraction(0), 0.0, 0.0)
    fractions, exponents = np.frexp(wide)
    significands = np.ldexp(fractions, 53).astype(np.int64)
    logs = np.log2(np.abs(wide))
    significand, exponent = _multiply(significands.tolist())
    exponent += int(exponents.sum(dtype=np.int64)) - 53 * x.size
    value = significand * Fraction(2) ** exponent
    rounded, nearest = (round_ratio(significand, 1, exponent, DTYPES[name]) for name in (dtype.name, "float64"))
    margin = 1e-12 * x.size * 1100  # the error of the rounded logarithms and their sums
    lowest, highest = float(logs[logs < 0].sum()) - margin, float(logs[logs > 0].sum()) + margin
    magnitude = abs(value)
    return Truth(x.size, dtype, value, value, magnitude, rounded, nearest, lowest, highest)


def _multiply(factors: list[int]) -> tuple[int, int]:
    """The product as significand · 2**exponent, by a tree whose numbers are cut to PRODUCT_BITS."""
    exponent = 0
    while len(factors) > 1:
        joined = []
        for k in range(0, len(factors) - 1, 2):
            product = factors[k] * factors[k + 1]
            drop = max(0, product.bit_length() - PRODUCT_BITS)
            joined.append(product >> drop)
            exponent += drop
        factors = joined + factors[len(joined) * 2 :]
    return factors[0], exponent
