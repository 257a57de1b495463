"""Variances and deviations from pairs of float64: whatever is said to be known has the bits of the definition, and most
are known."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.cpu.windows import estimates
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ExactState, Flags, deviation, variance
from warpfold.kernels.ops import Terms

FORMATS = ("float16", "float32", "float64", "bfloat16")


def limbs_of(units: int, width: int) -> NDArray[np.int64]:
    """Resolved limbs, of which the last takes the sign and may be longer than a digit."""
    limbs = np.empty(width, np.int64)
    for place in range(width - 1):
        limbs[place] = units & 0xFFFFFFFF
        units >>= 32
    limbs[-1] = units
    return limbs


def near(values: int, squares: int, count: int, ddof: int, name: str, *, root: bool, low: int = 0) -> float | None:
    """What is known of the spread of `count` elements, multiples of 2**(32 low − 1074), by their sums in such units."""
    dtype = DTYPES[name]
    form = dtype.precision, dtype.min_exponent, dtype.max_exponent
    width = max(2, values.bit_length() // 32 + 1, squares.bit_length() // 32 + 1)
    arguments = limbs_of(values, width), limbs_of(squares, width), (low, 2 * low), -2148
    known, value = estimates.near_spread(*arguments, count, ddof, root, form)
    return float(value) if known else None


def defined(values: int, squares: int, count: int, ddof: int, name: str, *, root: bool, low: int = 0) -> float:
    flags = Flags.NOT_NEGATIVE_ZERO
    states = (
        ExactState(Terms.VALUES, values << 32 * low, count, flags),
        ExactState(Terms.PRODUCTS, squares << 64 * low, count, flags),
    )
    value: Any = (deviation if root else variance)(*states, ddof, DTYPES[name])
    return float(value)


INTEGERS = st.integers(0, 400).flatmap(lambda bits: st.integers(-(1 << bits), 1 << bits))


@settings(max_examples=600, deadline=None)
@given(
    st.lists(INTEGERS, min_size=2, max_size=6),
    INTEGERS,
    st.sampled_from(FORMATS),
    st.booleans(),
    st.integers(20, 40),
)
def test_what_is_known_is_the_definition(elements: list[int], shift: int, name: str, root: bool, low: int) -> None:
    """Elements of any size, and such that lie close together and far from 0."""
    for ddof, moved in enumerate((elements, [element + (shift << 200) for element in elements])):
        sums = sum(moved), sum(element**2 for element in moved), len(moved), ddof, name
        value = near(*sums, root=root, low=low)
        assert value is None or value.hex() == defined(*sums, root=root, low=low).hex()


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_the_values_of_random_groups_are_known(name: str, root: bool) -> None:
    dtype, chance = DTYPES[name], np.random.default_rng(3)
    known = 0
    for _ in range(500):
        count = int(chance.integers(3, 30))
        array = chance.normal(chance.normal(), 1.0, count).astype(np.float32 if name == "bfloat16" else dtype.numpy)
        units = [int(Fraction(float(x)) * (1 << 1074 - 32 * 20)) for x in array]
        sums = sum(units), sum(x * x for x in units), count, 1, name
        value = near(*sums, root=root, low=20)
        assert value is None or value.hex() == defined(*sums, root=root, low=20).hex()
        known += value is not None
    assert known >= 495


@pytest.mark.parametrize("exponent", [0, 31, 200])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_what_lies_half_way_is_left_or_right(name: str, exponent: int, beside: int) -> None:
    """The variance of two elements is their squares' mean where their sum is 0, and lies half-way between two floats or
    one unit in 2**-120 of it beside that."""
    middle = (1 << DTYPES[name].precision + 1) + 1
    squares = 2 * ((middle << 120) + beside) << 2 * exponent
    value = near(0, squares, 2, 0, name, root=False, low=30)
    assert value is None or value.hex() == defined(0, squares, 2, 0, name, root=False, low=30).hex()


@pytest.mark.parametrize("units", [0, 1, -1, (1 << 106) - 1, 1 << 106, -(1 << 105) - 1, (1 << 62) - 1, -(1 << 200) + 1])
@pytest.mark.parametrize("width", [2, 3, 7, 20])
def test_a_pair_is_exact_below_106_bits_and_near_above(units: int, width: int) -> None:
    if units.bit_length() > 32 * width + 30:
        return
    high, low, place = estimates.pair_of(limbs_of(units, width))
    pair = (Fraction(float(high)) + Fraction(float(low))) * 2 ** (32 * int(place))
    assert abs(pair - units) <= abs(units) * Fraction(1, 1 << 104)
    if abs(units) < 1 << 106:
        assert pair == units
