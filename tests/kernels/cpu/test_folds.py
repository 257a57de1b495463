"""Folds: the order of pieces and merges does not show."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.patterns import array_of_bits, patterns
from warpfold.kernels.aggregates.product import MAX_BITS
from warpfold.kernels.cpu.folds import AggregateFold, fold_for
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import OPS, NanPolicy, Op, Terms

F64 = DTYPES["float64"]


@given(
    st.sampled_from(list(DTYPES.values())).flatmap(lambda d: st.tuples(st.just(d), patterns(d))),
    st.sampled_from([op for op in OPS.values() if op.sources == 1 and op.terms is not Terms.TOTALS]),
    st.sampled_from((NanPolicy.PROPAGATE, NanPolicy.OMIT)),
    st.randoms(use_true_random=False),
)
def test_pieces_in_any_order_on_any_number_of_folds_give_one_value(
    drawn: tuple[DType, list[int]], op: Op, policy: NanPolicy, chance: random.Random
) -> None:
    dtype, bits = drawn
    if op.name == "prod" and dtype.is_float:
        return
    array = array_of_bits(bits, dtype)
    whole = fold_for(op, [dtype], policy)
    whole.add(0, array)
    cuts = sorted({0, len(bits), *(chance.randint(0, len(bits)) for _ in range(4))})
    pieces = list(itertools.pairwise(cuts))
    chance.shuffle(pieces)
    folds = [fold_for(op, [dtype], policy) for _ in range(3)]
    for start, stop in pieces:
        chance.choice(folds).add(start, array[start:stop])
    chance.shuffle(folds)
    for other in folds[1:]:
        folds[0].merge(other)
    assert folds[0].count == whole.count
    assert folds[0].state() == whole.state()
    if whole.count:
        assert repr(folds[0].value()) == repr(whole.value())


def folded(op: str, *parts: list[Any], dtype: DType = F64, policy: NanPolicy = NanPolicy.PROPAGATE) -> Any:
    fold = fold_for(OPS[op], [dtype], policy)
    start = 0
    for part in parts:
        fold.add(start, np.array(part, dtype=dtype.numpy))
        start += len(part)
    return fold.value()


def test_equal_extremes_have_the_lowest_index_whatever_their_sign_of_zero() -> None:
    assert folded("argmin", [3.0, 0.0], [-0.0, 0.0]) == 1
    assert folded("argmax", [-3.0, -0.0], [0.0]) == 1


def test_the_smallest_zero_is_minus_zero_and_the_largest_plus_zero() -> None:
    assert math.copysign(1, folded("min", [0.0], [-0.0])) == -1
    assert math.copysign(1, folded("max", [-0.0], [0.0])) == 1
    assert math.copysign(1, folded("max", [-0.0], [-0.0])) == -1
    assert math.copysign(1, folded("norm_inf", [-0.0], [-0.0])) == 1


def test_the_first_nan_is_where_extremes_are() -> None:
    assert folded("argmax", [1.0, 9.0], [2.0, math.nan, math.nan]) == 3
    assert math.isnan(folded("norm_inf", [1.0], [math.nan]))


def test_omitted_nans_keep_the_indices_of_the_others() -> None:
    assert folded("argmin", [math.nan, 5.0, math.nan], [math.nan, 4.0], policy=NanPolicy.OMIT) == 4


@pytest.mark.parametrize("op", ["sum", "min", "argmax", "count_nonzero"])
def test_a_refused_nan_is_named_by_its_index_in_the_array(op: str) -> None:
    with pytest.raises(InvalidInput, match="element 3 is NaN, and nan_policy is raise") as raised:
        folded(op, [1.0, 2.0], [3.0, math.nan, math.nan], policy=NanPolicy.RAISE)
    assert raised.value.field == "nan_policy"


def test_the_largest_magnitude_of_the_smallest_integer_is_beyond_its_dtype() -> None:
    assert folded("norm_inf", [-128, 5], dtype=DTYPES["int8"]) == 128
    assert folded("norm_inf", [-(2**63)], dtype=DTYPES["int64"]) == 2**63


def product(*parts: list[int]) -> AggregateFold:
    fold = AggregateFold(OPS["prod"], DTYPES["int64"], NanPolicy.PROPAGATE)
    for part in parts:
        fold.add(0, np.array(part, dtype=np.int64))
    return fold


def test_products_go_far_beyond_64_bits() -> None:
    assert product([3] * 1000, [-7] * 999).value() == 3**1000 * (-7) ** 999


def test_a_product_may_have_65536_bits_and_not_one_more() -> None:
    assert product([2] * (MAX_BITS - 1)).value() == 2 ** (MAX_BITS - 1)
    with pytest.raises(InvalidInput, match="more than 65,536 bits"):
        product([2] * MAX_BITS).value()


def test_a_zero_anywhere_makes_even_a_product_beyond_all_bounds_zero() -> None:
    assert product([2] * (2 * MAX_BITS), [1, 0]).value() == 0
    assert product([0], [2] * (2 * MAX_BITS)).value() == 0
    large, other = product([2] * (2 * MAX_BITS)), product([0])
    large.merge(other)
    assert large.value() == 0


def test_ones_cost_a_product_no_size() -> None:
    assert product([1] * 1_000_000, [-1, -1, -1]).value() == -1
