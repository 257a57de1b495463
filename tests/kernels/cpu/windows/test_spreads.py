"""Variances and deviations of exact sums by compiled code, bit for bit those of Python's integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.hard import HARD, hard
from warpfold.kernels.cpu.windows import spreads
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import deviation, variance
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms

LIMBS = 136
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def resolved(state: ExactState) -> NDArray[np.int64]:
    """The digits of a sum, of which the last has the sign."""
    limbs, units = np.zeros(LIMBS, np.int64), state.units
    for k in range(LIMBS - 1):
        limbs[k] = units & 0xFFFFFFFF
        units >>= 32
    limbs[-1] = units
    return limbs


def check(groups: list[NDArray[Any]], dtype: DType, ddof: int, *, root: bool) -> None:
    """The values of all groups that have more than `ddof` elements are right."""
    values = [ExactState.empty(Terms.VALUES).add(group) for group in groups]
    squares = [ExactState.empty(Terms.PRODUCTS).add(group) for group in groups]
    flags = np.array([int(a.flags) | int(b.flags) for a, b in zip(values, squares, strict=True)])
    counts, made = np.array([group.size for group in groups]), np.full(len(groups), 7.0)
    left = np.zeros(len(groups), np.bool_)
    form = dtype.precision, dtype.min_exponent, dtype.max_exponent
    sums = (np.array([resolved(state) for state in states]) for states in (values, squares))
    spreads.round_spreads(*sums, (0, 0), -2148, flags, counts, ddof, root, form, made, left)
    assert not left.any()
    finish = deviation if root else variance
    for number, group in enumerate(groups):
        if group.size > ddof:
            wanted = finish(values[number], squares[number], ddof, dtype)
            assert float(made[number]).hex() == float(wanted).hex(), (group.tolist()[:20], ddof, root)
        else:
            assert made[number] == 7


@pytest.mark.parametrize("data", [*ADVERSARIAL, *HARD])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_compiled_variances_are_those_of_integers(name: str, data: str) -> None:
    dtype, random = DTYPES[name], np.random.default_rng(len(data))
    groups = []
    for size in random.integers(0, 40, 25).tolist():
        with np.errstate(over="ignore"):
            made = hard(data, size, name, random) if data in HARD else adversarial(data, dtype, size, size)
        groups.append(np.ascontiguousarray(made))
    for root in (False, True):
        for ddof in (0, 1, 3):
            check(groups, dtype, ddof, root=root)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6), st.integers(0, 2), st.booleans()
)
def test_any_doubles_have_the_variance_of_integers(elements: list[float], ddof: int, root: bool) -> None:
    check([np.array(elements)], DTYPES["float64"], ddof, root=root)


@settings(max_examples=300, deadline=None)
@given(st.integers(1 << 126, (1 << 128) - 1))
def test_a_root_is_the_largest_word_whose_square_is_no_more(number: int) -> None:
    root, exact = spreads.root_of(np.uint64(number >> 64), np.uint64(number & (1 << 64) - 1))
    assert int(root) ** 2 <= number < (int(root) + 1) ** 2
    assert exact == (int(root) ** 2 == number)
