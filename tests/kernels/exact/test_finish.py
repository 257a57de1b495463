"""From states to values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.patterns import FLOATS, array_of_bits, patterns
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import (
    ExactState,
    Flags,
    StateError,
    deviation,
    integer,
    value_of,
    variance,
)
from warpfold.kernels.exact.finish import mean, root
from warpfold.kernels.ops import OPS, Terms, reference

F32, F64 = DTYPES["float32"], DTYPES["float64"]
FINITE = st.sampled_from(FLOATS).flatmap(lambda d: st.tuples(st.just(d), patterns(d, finite=True).filter(bool)))


def values(*numbers: float) -> ExactState:
    return ExactState.empty(Terms.VALUES).add(np.array(numbers, dtype=np.float64))


def squares(*numbers: float) -> ExactState:
    return ExactState.empty(Terms.PRODUCTS).add(np.array(numbers, dtype=np.float64))


def test_what_cancels_in_float_is_there_in_the_end() -> None:
    assert values(1e8, 1.0, -1e8).round_to(F32) == 1.0
    assert values(1e308, 1e308, -1e308, -1e308, 5e-324).round_to(F64) == 5e-324


def test_a_sum_beyond_the_dtype_is_infinite_though_its_state_is_not() -> None:
    assert values(1e308, 1e308).round_to(F64) == math.inf
    assert values(-1e300).round_to(F32) == -math.inf


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        ((math.inf, 1.0), math.inf),
        ((-math.inf, 1.0), -math.inf),
        ((math.inf, -math.inf), math.nan),
        ((math.nan, math.inf), math.nan),
        ((math.nan,), math.nan),
    ],
)
def test_infinities_and_nan_follow_ieee_754(terms: tuple[float, ...], wanted: float) -> None:
    for value in (values(*terms).round_to(F32), mean(values(*terms), F32)):
        assert value == wanted or (math.isnan(value) and math.isnan(wanted))


@pytest.mark.parametrize(
    ("terms", "sign"), [((-0.0, -0.0), -1.0), ((-0.0, 0.0), 1.0), ((0.0,), 1.0), ((1.0, -1.0), 1.0), ((), 1.0)]
)
def test_a_zero_sum_is_negative_only_where_every_term_is(terms: tuple[float, ...], sign: float) -> None:
    value = values(*terms).round_to(F64)
    assert value == 0.0
    assert math.copysign(1.0, value) == sign


def test_integers_come_out_whole_at_any_size() -> None:
    big = np.full(1000, 2**63 - 1, dtype=np.int64)
    assert integer(ExactState.empty(Terms.VALUES).add(big)) == 1000 * (2**63 - 1)
    assert integer(ExactState.empty(Terms.PRODUCTS).add(big)) == 1000 * (2**63 - 1) ** 2


def test_a_fraction_is_no_integer() -> None:
    with pytest.raises(StateError, match="not a whole number"):
        integer(values(1.5))
    with pytest.raises(StateError, match="not a whole number"):
        integer(values(math.inf))


def test_a_state_of_other_terms_than_the_op_adds_is_refused() -> None:
    with pytest.raises(StateError, match="sum_squares adds products, the state holds values"):
        value_of(OPS["sum_squares"], [values(1.0)], "float64")


def test_the_mean_of_nothing_is_undefined() -> None:
    with pytest.raises(InvalidInput, match="mean of no elements"):
        mean(ExactState.empty(Terms.VALUES), F64)


def test_a_negative_sum_has_no_root() -> None:
    products = ExactState.empty(Terms.PRODUCTS).add_products(np.array([1.0]), np.array([-1.0]))
    with pytest.raises(StateError, match="not negative"):
        root(products, F64)


@given(FINITE, st.integers(0, 2))
def test_variance_and_deviation_are_correctly_rounded(drawn: tuple[DType, list[int]], ddof: int) -> None:
    dtype, bits = drawn
    array = array_of_bits(bits, dtype)
    added, squared = ExactState.empty(Terms.VALUES).add(array), ExactState.empty(Terms.PRODUCTS).add(array)
    if len(bits) <= ddof:
        with pytest.raises(InvalidInput, match="undefined"):
            variance(added, squared, ddof, dtype)
        return
    exact = [reference.element(pattern, dtype).value for pattern in bits]
    centre = sum(exact, Fraction(0)) / len(exact)
    wanted = sum(((x - centre) ** 2 for x in exact), Fraction(0)) / (len(exact) - ddof)
    assert variance(added, squared, ddof, dtype) == reference.nearest(wanted, dtype)
    assert deviation(added, squared, ddof, dtype) == reference.nearest_root(wanted, dtype)


def test_the_variance_of_data_far_from_zero_does_not_cancel() -> None:
    data = (1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0)
    assert variance(values(*data), squares(*data), 1, F64) == 30.0


def test_the_variance_of_what_is_not_finite_is_nan() -> None:
    for data in ((math.inf, 1.0), (math.nan, 1.0)):
        assert math.isnan(variance(values(*data), squares(*data), 0, F64))
        assert math.isnan(deviation(values(*data), squares(*data), 0, F64))


def test_a_variance_needs_both_states_of_the_same_elements() -> None:
    with pytest.raises(StateError, match="the values and the squares of the same elements"):
        variance(values(1.0, 2.0), squares(1.0), 0, F64)
    with pytest.raises(StateError, match="the values and the squares of the same elements"):
        variance(values(1.0), values(1.0), 0, F64)
    with pytest.raises(StateError, match="not the values and the squares"):
        variance(values(3.0), squares(1.0), 0, F64)


def test_a_state_from_limbs_finishes_as_one_from_data() -> None:
    made = ExactState.from_limbs(Terms.VALUES, [0, 0, 3], -64, 1, Flags.NOT_NEGATIVE_ZERO)
    assert made.round_to(F32) == 3.0
