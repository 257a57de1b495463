"""Distances between computed and true values."""

import math
from fractions import Fraction

from warpfold.kernels.accuracy.errors import distance, relative, written

THIRD = Fraction(1, 3)


def test_a_distance_is_exact_and_there_is_none_from_what_is_not_finite() -> None:
    assert distance(0.5, THIRD) == Fraction(1, 6)
    assert distance(math.inf, THIRD) is None
    assert distance(math.nan, THIRD) is None


def test_an_error_of_an_infinity_is_infinite_and_of_nan_nan() -> None:
    assert written(None, -math.inf) == math.inf
    assert math.isnan(written(None, math.nan))
    assert written(Fraction(10) ** 400, 1.0) == math.inf
    assert written(THIRD, 1.0) == 1 / 3


def test_a_relative_error_of_nothing_is_infinite_unless_there_is_no_error() -> None:
    assert relative(Fraction(1, 6), THIRD, 0.5) == 0.5
    assert relative(Fraction(1), Fraction(0), 1.0) == math.inf
    assert relative(Fraction(0), Fraction(0), 0.0) == 0.0
    assert relative(None, THIRD, math.inf) == math.inf
