"""Products of elements as sums of float64, over all exponents."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.patterns import array_of_bits
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.expansion import Expansion, Scales

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=1, max_size=6)


def products(factors: str, arrays: Sequence[NDArray[Any]]) -> list[Fraction]:
    """What an expansion says that the products are, of all classes together."""
    letters = sorted(set(factors.strip("|")))
    dtypes = {letter: DTYPES[array.dtype.name] for letter, array in zip(letters, arrays, strict=True)}
    expansion, made = Expansion(factors, dtypes), dict[Scales, list[Fraction]]()
    left = [expansion.base]
    while left:
        scales = left.pop()
        parts = expansion.of(arrays, scales)
        assert parts.shape == (expansion.width, arrays[0].size)
        up = Fraction(2) ** expansion.places(scales)
        made[scales] = [up * sum(map(Fraction, column)) for column in parts.T.tolist()]
        left = [each for each in expansion.met if each not in made]
    return [sum(each, Fraction(0)) for each in zip(*made.values(), strict=True)]


@given(st.sampled_from(["xxx", "xxxx", "|xxx|", "xy", "wxx", "wxy"]), ROWS)
def test_a_product_is_the_sum_of_its_floats_at_any_exponent(factors: str, rows: list[tuple[float, ...]]) -> None:
    letters = sorted(set(factors.strip("|")))
    arrays = [np.array(column) for column in zip(*rows, strict=True)][: len(letters)]
    for at, made in enumerate(products(factors, arrays)):
        true = Fraction(1)
        for letter in factors.strip("|"):
            true *= Fraction(arrays[letters.index(letter)][at].item())
        assert made == (abs(true) if "|" in factors else true)


@pytest.mark.parametrize("dtype", [name for name, row in DTYPES.items() if name != "float64"])
def test_products_of_every_dtype_are_exact_at_its_ends(dtype: str) -> None:
    row = DTYPES[dtype]
    width = 8 * row.itemsize
    infinity = (2 * row.max_exponent - 1) << (row.precision - 1) if row.is_float else 0
    ends = [1, infinity - 1, (1 << (width - 1)) + 1] if row.is_float else [1, (1 << (width - 1)) - 1, (1 << width) - 1]
    array = array_of_bits([0, 1] if dtype == "bool" else [*ends, 0], row)
    for factors in ("xxx", "xxxx", "|xxx|"):
        true = [Fraction(int(each) if not row.is_float else float(each)) for each in array.tolist()]
        power = len(factors.strip("|"))
        assert products(factors, [array]) == [abs(each) ** power if "|" in factors else each**power for each in true]


def test_infinities_and_nans_are_those_of_ieee_754() -> None:
    w, x = np.array([0.0, -1e300, np.inf, np.nan, -2.0]), np.array([np.inf, np.inf, -5e-324, 1.0, 1e300])
    dtypes = {"w": DTYPES["float64"], "x": DTYPES["float64"]}
    first, *others = Expansion("wx", dtypes).of([w, x], (0, 0)).tolist()
    assert str(first[:4]) == "[nan, -inf, -inf, nan]"
    assert not np.any(others)
    assert Expansion("wx", dtypes, omit=True).of([w, x], (0, 0))[0, 3] == 0
