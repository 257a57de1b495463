"""Correct rounding, against fractions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.patterns import FLOATS
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import round_ratio, round_sqrt
from warpfold.kernels.ops import reference

DTYPE = st.sampled_from(FLOATS)
BIG = st.integers(1, 2**200) | st.integers(1, 2**2200) | st.integers(1, 10)


@given(BIG, BIG, st.integers(-2400, 1200), DTYPE, st.booleans())
def test_a_ratio_is_rounded_to_the_nearest_float(
    numerator: int, denominator: int, exponent: int, dtype: DType, negative: bool
) -> None:
    signed = -numerator if negative else numerator
    wanted = reference.nearest(Fraction(signed, denominator) * Fraction(2) ** exponent, dtype)
    rounded = round_ratio(signed, denominator, exponent, dtype)
    assert rounded == wanted
    assert math.copysign(1.0, rounded) == math.copysign(1.0, wanted)


@given(BIG, BIG, st.integers(-4400, 2200), DTYPE)
def test_a_root_is_rounded_to_the_nearest_float(numerator: int, denominator: int, exponent: int, dtype: DType) -> None:
    wanted = reference.nearest_root(Fraction(numerator, denominator) * Fraction(2) ** exponent, dtype)
    assert round_sqrt(numerator, denominator, exponent, dtype) == wanted


@given(st.integers(0, 2**54), st.integers(-1200, 1100), DTYPE, st.sampled_from((-1, 0, 1)))
def test_a_tie_goes_to_even_and_next_to_a_tie_does_not(
    significand: int, exponent: int, dtype: DType, beside: int
) -> None:
    # Half an integer of `precision` bits, and a hair beside it.
    odd = (2 * (significand >> (54 - dtype.precision)) + 1 << 300) + beside
    wanted = reference.nearest(Fraction(odd) * Fraction(2) ** (exponent - 300), dtype)
    assert round_ratio(odd, 1, exponent - 300, dtype) == wanted


@given(st.integers(1, 2**53 - 1), st.integers(-300, 300), DTYPE)
def test_the_root_of_a_square_is_exact(root: int, exponent: int, dtype: DType) -> None:
    wanted = reference.nearest(Fraction(root) * Fraction(2) ** exponent, dtype)
    assert round_sqrt(root * root, 1, 2 * exponent, dtype) == wanted


@given(st.fractions(min_value=0), DTYPE)
def test_rounding_a_ratio_to_float64_is_what_python_does(ratio: Fraction, dtype: DType) -> None:
    assert round_ratio(ratio.numerator, ratio.denominator, 0, DTYPES["float64"]) == float(ratio)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_overflow_begins_half_an_ulp_beyond_the_largest(dtype: DType) -> None:
    largest = (1 << dtype.precision) - 1
    exponent = dtype.max_exponent - dtype.precision
    assert math.isfinite(round_ratio(largest, 1, exponent, dtype))
    assert round_ratio(2 * largest + 1, 1, exponent - 1, dtype) == math.inf
    assert round_ratio(-(4 * largest + 1), 1, exponent - 2, dtype) == -math.ldexp(largest, exponent)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_below_half_the_smallest_subnormal_is_a_zero_that_keeps_its_sign(dtype: DType) -> None:
    smallest = math.ldexp(1.0, dtype.min_exponent)
    assert round_ratio(1, 2, dtype.min_exponent, dtype) == 0.0
    assert math.copysign(1.0, round_ratio(-1, 2, dtype.min_exponent, dtype)) == -1.0
    assert round_ratio(3, 4, dtype.min_exponent, dtype) == smallest
    assert round_ratio(3, 2, dtype.min_exponent, dtype) == 2 * smallest
    assert round_sqrt(1, 1, -6000, dtype) == 0.0


def test_zero_is_positive() -> None:
    assert math.copysign(1.0, round_ratio(0, 7, 5, DTYPES["float32"])) == 1.0
    assert round_sqrt(0, 7, 5, DTYPES["float32"]) == 0.0
