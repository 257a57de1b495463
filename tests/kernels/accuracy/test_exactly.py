"""The true value of an op, held to arithmetic in fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from tests.support.kernels.study_arrays import arrays, fractions, row
from warpfold.kernels.accuracy import exactly
from warpfold.kernels.accuracy.exactly import floor_log2, root, truth, ulp
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops.reference import nearest

FLOAT64 = DTYPES["float64"]


@given(arrays)
def test_sums_means_and_dot_products_are_the_fractions(x: NDArray[Any]) -> None:
    elements, y = fractions(x), x[::-1]
    pairs = [a * b for a, b in zip(elements, fractions(y), strict=True)]
    for op, terms, other in (("sum", elements, None), ("mean", elements, None), ("dot", pairs, y)):
        exact = truth(op, x, other, row(x))
        whole = sum(terms, Fraction(0))
        assert (exact.total, exact.magnitude) == (whole, sum(map(abs, terms), Fraction(0)))
        assert exact.value == (whole / x.size if op == "mean" else whole)
        assert (exact.rounded, exact.wide) == (nearest(exact.value, row(x)), nearest(exact.value, FLOAT64))


@given(arrays)
def test_a_norm_is_the_root_to_hundreds_of_bits(x: NDArray[Any]) -> None:
    exact = truth("norm2", x, None, row(x))
    square = sum((value * value for value in fractions(x)), Fraction(0))
    assert exact.total == exact.magnitude == square
    step = Fraction(1, 1 << 450)
    assert (exact.value * (1 - step)) ** 2 <= square <= (exact.value * (1 + step)) ** 2


@given(arrays)
def test_a_product_is_the_product(x: NDArray[Any]) -> None:
    exact = truth("prod", x, None, row(x))
    whole = Fraction(math.prod(fractions(x)))
    assert abs(exact.value - whole) <= abs(whole) / (1 << 450)
    assert exact.rounded == nearest(whole, row(x))


def test_a_long_product_is_right_to_its_last_bit_although_its_numbers_are_cut() -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, 5000)
    exact = truth("prod", x, None, FLOAT64)
    whole = Fraction(math.prod(fractions(x)))
    assert exact.rounded == nearest(whole, FLOAT64)
    assert 0 < abs(exact.value - whole) / whole < Fraction(1, 1 << 490)


def test_partial_products_are_bounded_whatever_their_order() -> None:
    x = np.array([0.25, 8.0, 0.5, 4.0, 1.0])
    exact = truth("prod", x, None, FLOAT64)
    assert (exact.lowest, exact.highest) == pytest.approx((-3, 5))
    assert exact.lowest <= -3
    assert exact.highest >= 5


def test_a_product_of_too_many_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"up to 4,194,304 factors, and there are 4,194,305"):
        truth("prod", np.ones(exactly.MAX_FACTORS + 1, dtype=np.float32), None, DTYPES["float32"])


def test_the_condition_is_one_without_cancellation_and_infinite_where_nothing_is_left() -> None:
    def condition(*numbers: float) -> float:
        return truth("sum", np.array(numbers, dtype=np.float64), None, FLOAT64).condition

    assert condition(1, 2, 3) == 1
    assert condition(1e8, 1, -1e8) == 2e8 + 1
    assert condition(1, -1) == math.inf
    assert condition(0.0, -0.0) == 1


@given(arrays)
def test_an_ulp_is_the_distance_to_the_next_number(x: NDArray[Any]) -> None:
    dtype = row(x)
    for element in x:
        following = np.nextafter(abs(element), dtype.numpy.type(np.inf))
        if np.isfinite(following):
            assert ulp(Fraction(float(element)), dtype) == Fraction(float(following)) - abs(Fraction(float(element)))


def test_logarithms_and_roots_of_fractions() -> None:
    for x in (Fraction(1), Fraction(3, 2), Fraction(1, 3), Fraction(2) ** -70, Fraction(2) ** 70 - 1):
        assert Fraction(2) ** floor_log2(x) <= x < Fraction(2) ** (floor_log2(x) + 1)
    assert root(Fraction(0)) == 0
    assert root(Fraction(9, 4)) == Fraction(3, 2)
