"""Distances between computed and true values, and three numbers in every order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.accuracy.errors import add_three, distance, relative, written
from warpfold.kernels.dtypes import DTYPES

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


ONE = Fraction(1)


def test_only_where_the_large_ones_meet_first_is_the_one_kept() -> None:
    added = add_three(np.float32(1e8), np.float32(1), np.float32(-1e8), DTYPES["float32"])
    assert (added.exact, added.rounded) == (ONE, 1.0)
    kept = {order.expression for order in added.orders if order.value == 1.0}
    assert kept == {"(a + c) + b", "(c + a) + b", "b + (a + c)", "b + (c + a)"}
    for order in added.orders:
        meets = order.expression in kept
        assert (order.value, order.inner == 0.0) == ((1.0, True) if meets else (0.0, False))
        assert (order.absolute_error, order.relative_error) == ((0.0, 0.0) if meets else (1.0, 1.0))


def test_the_published_pair_of_sums_is_zero_twice() -> None:
    added = add_three(np.float32(1e8), np.float32(1), np.float32(-1e8), DTYPES["float32"])
    by_name = {order.expression: order for order in added.orders}
    assert [by_name[name].value for name in ("(a + b) + c", "a + (b + c)")] == [0.0, 0.0]
    assert [by_name[name].inner for name in ("(a + b) + c", "a + (b + c)")] == [1e8, -1e8]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@given(st.lists(st.floats(-60000, 60000, width=16), min_size=3, max_size=3))
def test_there_are_twelve_orders_and_small_integers_agree_in_all(name: str, numbers: list[float]) -> None:
    dtype = DTYPES[name]
    a, b, c = np.array([round(number) % 64 for number in numbers]).astype(dtype.numpy)
    added = add_three(a, b, c, dtype)
    assert len({order.expression for order in added.orders}) == 12
    assert {order.value for order in added.orders} == {float(added.exact)}


def test_an_order_that_overflows_has_an_infinite_error() -> None:
    added = add_three(np.float16(60000), np.float16(60000), np.float16(-60000), DTYPES["float16"])
    assert added.rounded == 60000.0
    overflowed = [order for order in added.orders if order.value == float("inf")]
    assert overflowed
    assert {order.absolute_error for order in overflowed} == {float("inf")}
