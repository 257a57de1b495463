"""Sums of float32 that are float64 numbers are exact, and others are refused."""

import numpy as np
import pytest

from tests.support.kernels.columns import exact_sums, lying
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.plain import PlainSums
from warpfold.kernels.cpu.grouped.together import as_digits
from warpfold.kernels.cpu.windows import plain


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 8, 23, 64])
@pytest.mark.parametrize("width", [2, 15, 16, 33, 4_100])
@pytest.mark.parametrize("magnitudes", [False, True])
def test_sums_of_few_rows_are_exact_for_any_width(rows: int, width: int, magnitudes: bool) -> None:
    array = np.random.default_rng(1).uniform(-4, 4, (rows, width)).astype(np.float32)
    sums = PlainSums.of(array, (0,), magnitudes=magnitudes)
    assert sums is not None
    expected = exact_sums(np.abs(array) if magnitudes else array, (0,))
    assert sums.sums.tolist() == expected
    assert all(abs(value) < 2**sums.top and value % 2**sums.low == 0 for value in expected)


def test_values_are_in_the_order_of_the_array_however_it_lies() -> None:
    array = np.random.default_rng(2).standard_normal((6, 13, 21)).astype(np.float32)
    served = 0
    for axes in ((0,), (1,), (2,), (0, 1)):
        expected = exact_sums(array, axes)
        for laid in lying(array):
            sums = PlainSums.of(laid, axes, magnitudes=False)
            served += sums is not None
            assert sums is None or sums.sums.tolist() == expected
    assert served >= 6


def test_elements_far_apart_have_plain_sums_as_long_as_no_addition_rounds() -> None:
    array = np.zeros((6, 40), np.float32)
    array[:, :20], array[:, 20:] = 3 * 2.0**30, 5 * 2.0**-40
    sums = PlainSums.of(array, (0,), magnitudes=False)
    assert sums is not None
    assert sums.sums.tolist() == [6 * 3 * 2.0**30] * 20 + [6 * 5 * 2.0**-40] * 20
    units = as_digits(sums).sums(slice(30, 31)).state(0, 6).units
    assert units == 30 << (1074 - 40)


@pytest.mark.parametrize("column", [0, 15, 16, 39])
def test_one_addition_that_rounds_is_noticed(column: int) -> None:
    array = np.ones((6, 40), np.float32)
    array[2, column], array[4, column] = 2.0**-60, -(2.0**-60)
    assert PlainSums.of(array, (0,), magnitudes=False) is None
    assert PartialResults.of(array, (0,), "sum").values(np.dtype(np.float32)).ravel().tolist() == [
        4.0 if at == column else 6.0 for at in range(40)
    ]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [3, 36])
def test_elements_that_are_not_finite_have_no_plain_sums(bad: float, column: int) -> None:
    array = np.ones((5, 40), np.float32)
    array[1, column] = bad
    assert PlainSums.of(array, (0,), magnitudes=False) is None


def test_sums_of_negative_zeros_alone_are_negative_zeros() -> None:
    array = np.full((7, 40), -0.0, np.float32)
    array[3, ::2] = 0.0
    array[4, 1], array[5, 1] = 2.0, -2.0
    sums = PlainSums.of(array, (0,), magnitudes=False)
    assert sums is not None
    negative = sums.negative()
    assert negative is not None
    assert negative.tolist() == [at % 2 == 1 and at != 1 for at in range(40)]
    positive = PlainSums.of(array, (0,), magnitudes=True)
    assert positive is not None
    assert positive.negative() is None


def test_many_rows_long_rows_and_other_dtypes_are_left_to_two_levels() -> None:
    ones = np.ones((plain.MOST_ROWS + 1, 40))
    assert PlainSums.of(ones[1:].astype(np.float32), (0,), magnitudes=False) is not None
    assert PlainSums.of(ones.astype(np.float32), (0,), magnitudes=False) is None
    assert PlainSums.of(ones.astype(np.float32), (1,), magnitudes=False) is None
    assert PlainSums.of(ones[1:], (0,), magnitudes=False) is None
    assert PlainSums.of(np.zeros((0, 40), np.float32), (0,), magnitudes=False) is None
