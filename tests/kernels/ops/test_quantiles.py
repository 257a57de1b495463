"""Quantiles lie where their definitions say, in exact fractions of the decimals that are written."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.ops.quantiles import METHODS, Between, between


@pytest.mark.parametrize("method", METHODS)
def test_a_quantile_of_a_dyadic_q_lies_where_numpy_has_it(method: Any) -> None:
    for count in range(1, 12):
        places = np.arange(count, dtype=np.float64)
        for q in np.arange(17) / 16:
            at = between(method, q, count)
            assert at.low + at.weight * (at.high - at.low) == pytest.approx(np.quantile(places, q, method=method))
            assert at.weight.denominator == 1 or not METHODS[method].chooses


def test_a_q_is_the_decimal_that_is_written() -> None:
    assert between("linear", 0.1, 11) == Between(1, 1, Fraction(0))
    assert between("linear", 0.3, 2) == Between(0, 1, Fraction(3, 10))
    assert between("inverted_cdf", 0.1, 10).low == 0
    assert between("inverted_cdf", 0.7, 10).low == 6
    assert between("weibull", 1e-300, 5) == Between(0, 0, Fraction(0))
