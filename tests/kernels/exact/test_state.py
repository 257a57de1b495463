"""The exact accumulator as a value."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.patterns import array_of_bits, patterns
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, StateError
from warpfold.kernels.ops import Terms, reference

EVERY = st.sampled_from(list(DTYPES.values()))
TERMS = st.sampled_from((Terms.VALUES, Terms.PRODUCTS))


@st.composite
def states(draw: st.DrawFn, terms: Terms = Terms.VALUES) -> ExactState:
    dtype = draw(EVERY)
    return ExactState.empty(terms).add(array_of_bits(draw(patterns(dtype)), dtype))


@given(states(), states(), states())
def test_merging_is_associative(a: ExactState, b: ExactState, c: ExactState) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@given(states(), states())
def test_merging_is_commutative_down_to_the_bytes(a: ExactState, b: ExactState) -> None:
    assert a.merge(b).to_bytes() == b.merge(a).to_bytes()


@given(states())
def test_merging_the_empty_state_changes_nothing(state: ExactState) -> None:
    assert state.merge(ExactState.empty(Terms.VALUES)) == state


@given(
    EVERY.flatmap(lambda dtype: st.tuples(st.just(dtype), patterns(dtype))), TERMS, st.randoms(use_true_random=False)
)
def test_any_order_in_any_chunks_gives_the_same_bytes(
    drawn: tuple[DType, list[int]], terms: Terms, chance: random.Random
) -> None:
    dtype, bits = drawn
    array = array_of_bits(bits, dtype)
    whole = ExactState.empty(terms).add(array)
    shuffled = list(bits)
    chance.shuffle(shuffled)
    parts = np.array_split(array_of_bits(shuffled, dtype), chance.randint(1, 5))
    merged = ExactState.empty(terms)
    for part in parts:
        merged = ExactState.empty(terms).add(part).merge(merged)
    assert merged.to_bytes() == whole.to_bytes()


def test_values_of_different_dtypes_merge_into_one_sum() -> None:
    state = ExactState.empty(Terms.VALUES)
    for name in DTYPES:
        state = state.add(np.ones(3, dtype=DTYPES[name].numpy))
    assert state.count == 3 * len(DTYPES)
    assert state.units == (3 * len(DTYPES)) << 1074


def test_values_and_products_do_not_merge() -> None:
    with pytest.raises(StateError, match="products cannot be merged with one of values") as raised:
        ExactState.empty(Terms.VALUES).merge(ExactState.empty(Terms.PRODUCTS))
    assert raised.value.part == "terms"
    assert raised.value.reason == "invalid_input"


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=70), st.integers(-1074, 900), st.integers(1, 2**40))
def test_limbs_with_unresolved_carries_give_their_sum(limbs: list[int], exponent: int, count: int) -> None:
    exact = sum((Fraction(limb) * 2 ** (32 * index) for index, limb in enumerate(limbs)), Fraction(0))
    exact *= Fraction(2) ** exponent
    if abs(exact) > count * Fraction(2) ** 1023:  # refused, as another test shows
        return
    state = ExactState.from_limbs(Terms.VALUES, limbs, exponent, count)
    assert state.units * Fraction(2) ** ORIGIN[Terms.VALUES] == exact
    assert (state.flags == Flags.NOT_NEGATIVE_ZERO) == (exact != 0)


def test_limbs_below_the_unit_are_taken_where_their_low_bits_are_zero() -> None:
    state = ExactState.from_limbs(Terms.VALUES, [3 << 26, 0], -1100, 1)
    assert state.units == 3
    with pytest.raises(StateError, match="no multiple of"):
        ExactState.from_limbs(Terms.VALUES, [3 << 25], -1100, 1)


@given(states())
def test_limbs_are_digits_of_the_sum_in_twos_complement(state: ExactState) -> None:
    total = sum(digit << (32 * index) for index, digit in enumerate(state.limbs))
    if state.limbs and state.limbs[-1] >> 31:
        total -= 1 << (32 * len(state.limbs))
    assert total == state.units
    assert all(0 <= digit < 1 << 32 for digit in state.limbs)


@given(states())
def test_a_state_and_its_negation_cancel(state: ExactState) -> None:
    cancelled = state.merge(state.negate())
    assert cancelled.units == 0
    assert cancelled.count == 2 * state.count
    assert bool(cancelled.flags & Flags.POS_INF) == bool(cancelled.flags & Flags.NEG_INF)


def test_negating_swaps_the_infinities() -> None:
    state = ExactState.empty(Terms.VALUES).add(np.array([np.inf, 2.0]))
    assert state.negate().flags == Flags.NEG_INF | Flags.NOT_NEGATIVE_ZERO
    assert state.negate().units == -state.units


@given(st.sampled_from(list(DTYPES.values())).flatmap(lambda d: st.tuples(st.just(d), patterns(d), patterns(d))))
def test_dot_products_are_exact(drawn: tuple[DType, list[int], list[int]]) -> None:
    dtype, left, right = drawn
    size = min(len(left), len(right))
    left, right = left[:size], right[:size]
    state = ExactState.empty(Terms.PRODUCTS).add_products(array_of_bits(left, dtype), array_of_bits(right, dtype))
    pairs = zip(left, right, strict=True)
    products = [reference.product(reference.element(a, dtype), reference.element(b, dtype)) for a, b in pairs]
    assert state.to_bytes() == reference.state_bytes(reference.total(products, dtype), Terms.PRODUCTS)


def test_a_product_of_zeros_of_unlike_sign_is_minus_zero() -> None:
    state = ExactState.empty(Terms.PRODUCTS).add_products(np.array([-0.0]), np.array([0.0]))
    assert state.flags == Flags.NONE
    assert state.count == 1


def test_arrays_of_unlike_shape_and_floats_with_integers_have_no_products() -> None:
    empty = ExactState.empty(Terms.PRODUCTS)
    with pytest.raises(InvalidInput, match="undefined"):
        empty.add_products(np.ones(3), np.ones(4))
    with pytest.raises(InvalidInput, match="undefined"):
        empty.add_products(np.ones(3), np.ones(3, dtype=np.int32))


@pytest.mark.parametrize(
    ("units", "count", "flags", "part"),
    [
        (1, 0, Flags.NOT_NEGATIVE_ZERO, "limbs"),
        (1 << 2099, 1, Flags.NOT_NEGATIVE_ZERO, "limbs"),
        (0, -1, Flags.NONE, "count"),
        (0, 1 << 64, Flags.NONE, "count"),
        (0, 0, Flags.NAN, "flags"),
        (1, 1, Flags.NONE, "flags"),
        (0, 1, Flags.NAN, "flags"),
    ],
)
def test_a_state_that_no_terms_can_have_is_refused(units: int, count: int, flags: Flags, part: str) -> None:
    with pytest.raises(StateError) as raised:
        ExactState(Terms.VALUES, units, count, flags)
    assert raised.value.part == part


def test_selecting_ops_have_no_state() -> None:
    with pytest.raises(StateError, match="values or products"):
        ExactState(Terms.NONE, 0, 0, Flags.NONE)
