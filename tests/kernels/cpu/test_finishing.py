"""Values of many sums at once: bit for bit those that `kernels.exact` defines, wherever the limbs lie."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.hard import HARD, hard
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, StateError, value_of
from warpfold.kernels.ops import INTEGER, OPS, Terms, Value

ADDING = ("sum", "mean", "norm1", "sum_squares", "norm2", "var", "std")
EDGES = [0.0, -0.0, 5e-324, -5e-324, 1.5, 2.0**-537, 1e300, -1e300, 1.7976931348623157e308, np.inf, -np.inf, np.nan]
TIES = [
    *(((1 << 53) + odd, exponent) for odd in (1, 3) for exponent in (0, 400, -900)),
    ((1 << 54) - 1, 970),  # half-way from the largest float64 to what follows
    (1, -1075),
    (3, -1075),
    ((1 << 53) - 1, -1075),  # half-way from the largest subnormal number to the least normal one
]
"""Odd numbers times powers of 2 that lie half-way between two float64."""


def many(states: Sequence[ExactState], below: int = 0, above: int = 1) -> ManySums:
    """Sums in limbs from so many digits below the lowest digit of all to so many above the highest one."""
    low, high = 200, 0
    for state in states:
        digits = state.limbs
        low = min(low, next((at for at, digit in enumerate(digits) if digit), 200))
        high = max(high, len(digits))
    low = max(0, min(low, high) - below)
    width = high - low + above
    limbs = np.zeros((len(states), width), np.int64)
    for row, state in zip(limbs, states, strict=True):
        units = state.units >> 32 * low
        for place in range(width - 1):
            row[place] = units & 0xFFFFFFFF
            units >>= 32
        row[-1] = units
    flags = np.array([int(state.flags) for state in states], np.int64)
    return ManySums(states[0].terms, ORIGIN[states[0].terms] + 32 * low, limbs, flags)


def states_of(op: str, groups: Sequence[NDArray[Any]]) -> list[list[ExactState]]:
    """The states of all groups, for each kind of terms that the op adds up."""
    kinds = (Terms.VALUES, Terms.PRODUCTS) if OPS[op].terms is Terms.MOMENTS else (OPS[op].terms,)
    magnitudes = OPS[op].magnitudes
    return [[ExactState.of(group, terms, magnitudes=magnitudes) for group in groups] for terms in kinds]


def bits(value: Value) -> str:
    return float(value).hex()


def check(op: str, kinds: Sequence[Sequence[ExactState]], result: str, ddof: int, sums: Sequence[ManySums]) -> None:
    counts = np.array([state.count for state in kinds[0]])
    before = [each.limbs.copy() for each in sums]
    values = ValueFinish(OPS[op], result, ddof).values(sums, counts)
    assert all((each.limbs == kept).all() for each, kept in zip(sums, before, strict=True))
    for at, states in enumerate(zip(*kinds, strict=True)):
        if counts[at] > ddof:
            assert bits(values[at]) == bits(value_of(OPS[op], states, result, ddof)), (op, at)


@pytest.mark.parametrize("op", ADDING)
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_values_of_adversarial_elements_are_those_of_their_states(name: str, op: str) -> None:
    dtype, random = DTYPES[name], np.random.default_rng(5)
    groups = []
    for data in [*ADVERSARIAL, *HARD]:
        for size in random.integers(0, 30, 6).tolist():
            with np.errstate(over="ignore"):
                made = hard(data, size, name, random) if data in HARD else adversarial(data, dtype, size, size)
            groups.append(np.ascontiguousarray(made))
    kinds = states_of(op, groups)
    for ddof in (0, 2) if OPS[op].ddof else (0,):
        check(op, kinds, name, ddof, [many(states) for states in kinds])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(ADDING),
    st.lists(st.lists(st.one_of(st.sampled_from(EDGES), st.floats()), max_size=5), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=2, max_size=2),
    st.integers(0, 1),
)
def test_limbs_may_begin_and_end_anywhere(
    op: str, groups: list[list[float]], around: list[tuple[int, int]], ddof: int
) -> None:
    kinds = states_of(op, [np.array(group, np.float64) for group in groups])
    sums = [many(states, *room) for states, room in zip(kinds, around, strict=False)]
    check(op, kinds, "float64", ddof if OPS[op].ddof else 0, sums)


@pytest.mark.parametrize("moved", [-1, 0, 1])
@pytest.mark.parametrize(("odd", "exponent"), TIES)
def test_what_lies_half_way_between_two_floats_is_rounded_to_even(odd: int, exponent: int, moved: int) -> None:
    """The middle, and what lies one unit of a sum of squares beside it."""
    flags, unit = Flags.NOT_NEGATIVE_ZERO, 1 << 2148 + exponent
    values = ExactState(Terms.VALUES, 0, 2, flags)
    squares = ExactState(Terms.PRODUCTS, 2 * odd * unit + moved, 2, flags)  # the variance of two is half of them
    made = ValueFinish(OPS["var"], "float64").values([many([values]), many([squares])], np.array([2]))
    assert made.tolist() == [nearest(odd, exponent, moved)]
    if exponent > -1074:
        square = odd**2 << 2148 + 2 * exponent
        roots = [many([ExactState(Terms.PRODUCTS, square + moved, 2, flags)])]
        assert ValueFinish(OPS["norm2"], "float64").values(roots, np.array([2])).tolist() == made.tolist()
    if -1074 < exponent < 970:  # a deviation is no more than the largest element
        spreads = [many([values]), many([ExactState(Terms.PRODUCTS, 2 * square + moved, 2, flags)])]
        assert ValueFinish(OPS["std"], "float64").values(spreads, np.array([2])).tolist() == made.tolist()


def nearest(odd: int, exponent: int, moved: int) -> float:
    try:
        return float(Fraction(odd) * Fraction(2) ** exponent + moved * Fraction(2) ** -4000)
    except OverflowError:
        return inf


def test_elements_that_are_alike_have_no_variance() -> None:
    kinds = states_of("std", [np.full(7, 0.1), np.full(1, -1e300), np.full(3, 5e-324), np.zeros(4)])
    for op in ("var", "std"):
        sums = [many(states) for states in kinds]
        assert ValueFinish(OPS[op], "float64").values(sums, np.array([7, 1, 3, 4])).tolist() == [0.0] * 4


@pytest.mark.parametrize("op", ["mean", "norm2", "var", "std"])
@pytest.mark.parametrize("count", [(1 << 32) - 1, 1 << 32, 3 << 40])
def test_any_number_of_terms_may_be_divided_by(op: str, count: int) -> None:
    kinds = []
    for (state,) in states_of(op, [np.array([1.5, -1.25, 3.0])]):
        terms, units = state.terms, state.units
        kinds.append([ExactState(terms, units * (count // 3), count, Flags.NOT_NEGATIVE_ZERO), state])
    check(op, kinds, "float64", 1 if OPS[op].ddof else 0, [many(states) for states in kinds])


@pytest.mark.parametrize(
    ("op", "values", "words"),
    [
        ("norm2", [-(1 << 2148)], "a sum of squares is not negative"),
        ("var", [1 << 1075, 1 << 2148], "not the values and the squares of the same elements"),
        ("std", [0, -(1 << 2148)], "not the values and the squares of the same elements"),
    ],
)
def test_sums_that_no_elements_have_are_refused(op: str, values: list[int], words: str) -> None:
    kinds = (Terms.VALUES, Terms.PRODUCTS)[-len(values) :]
    sums = [
        many([ExactState(terms, units, 3, Flags.NOT_NEGATIVE_ZERO)]) for terms, units in zip(kinds, values, strict=True)
    ]
    with pytest.raises(StateError, match=words):
        ValueFinish(OPS[op], "float64").values(sums, np.array([3]))


def test_a_sum_that_is_no_whole_number_is_no_integer() -> None:
    for array in (np.array([0.5]), np.array([2.0**-1074, 1.0]), np.array([1.0, np.inf])):
        with pytest.raises(StateError, match="not a whole number"):
            ValueFinish(OPS["sum"], INTEGER).values([many([ExactState.of(array)])], np.array([array.size]))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-(1 << 190), 1 << 190) | st.integers(-(1 << 65), 1 << 65), min_size=1, max_size=5),
    st.sampled_from([0, 32, 320, 1024 + 18, 2048 + 18, 5]),
    st.integers(1, 3),
)
def test_whole_numbers_of_any_size_are_given_in_what_holds_all(numbers: list[int], below: int, above: int) -> None:
    for some in (numbers, [abs(number) for number in numbers], [number >> 130 for number in numbers]):
        width = (190 + below) // 32 + above
        limbs = np.zeros((len(some), width), np.int64)
        for row, number in zip(limbs, some, strict=True):
            units = number << below
            for place in range(width - 1):
                row[place] = units & 0xFFFFFFFF
                units >>= 32
            row[-1] = units
        sums = ManySums(Terms.PRODUCTS, -below, limbs, np.full(len(some), int(Flags.NOT_NEGATIVE_ZERO)))
        values = ValueFinish(OPS["sum_squares"], INTEGER).values([sums], np.full(len(some), 1 << 40))
        assert values.tolist() == some
        if all(-(1 << 63) <= number < 1 << 63 for number in some):
            assert values.dtype == np.int64
        elif all(0 <= number < 1 << 64 for number in some):
            assert values.dtype == np.uint64


@pytest.mark.parametrize("shared", [True, False])
def test_values_by_parts_are_those_of_all(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.kernels.cpu.states._MANY", 1 if shared else 1 << 20)
    numbers = np.arange(9000, dtype=object)
    numbers[8999] = 1 << 63
    limbs = np.array([[number & 0xFFFFFFFF, number >> 32, 0] for number in numbers.tolist()], np.int64)
    flags = np.full(9000, int(Flags.NOT_NEGATIVE_ZERO))
    for last in (9000, 8999, 3, 0):
        values = ValueFinish(OPS["sum"], INTEGER).values_by_parts(
            lambda some: [ManySums(Terms.VALUES, 0, limbs[some], flags[some])], np.ones(last, np.int64)
        )
        assert values.tolist() == numbers[:last].tolist()
        assert values.dtype == (np.uint64 if last == 9000 else np.int64)
