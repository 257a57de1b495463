"""A partial result is what its state says, and parts are rounded as their sums are."""

from fractions import Fraction

import numpy as np
import pytest

from tests.support.kernels.columns import exact_sums
from warpfold.engines import flox_parts
from warpfold.engines.numbered import reduce_groups
from warpfold.kernels.cpu.grouped.digits import Digits
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.together import as_digits
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.keyed import Cells

UNIT = Fraction(2) ** -1074


def digits_of(array: np.ndarray) -> Digits:
    return as_digits(PartialResults.of(array, (1,), "sum").sums[0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
def test_parts_of_digits_stand_for_the_sums(dtype: str) -> None:
    rng = np.random.default_rng(1)
    array = (rng.standard_normal((40, 9)) * 100).astype(dtype)
    parts = flox_parts.packed(digits_of(array), [9] * 40, dtype_of(array.dtype))
    states = [flox_parts.state(part, Terms.VALUES) for part in parts]
    assert [state.units * UNIT for state in states] == exact_sums(array, (1,))
    assert {flox_parts.count_of(part) for part in parts} == {9}
    assert {flox_parts.dtype_of_elements(part) for part in parts} == {DTYPES[dtype]}


def test_parts_of_states_are_those_states() -> None:
    elements = np.array([1.5, -0.0, np.nan, -np.inf, -1e300, 5e-324, 2.0, -2.0])
    numbers = np.array([0, 1, 2, 3, 4, 4, 5, 5])
    states = reduce_groups(Cells(elements), numbers, 7, "sum", states=True).states[0]
    parts = flox_parts.packed_states(states, DTYPES["float64"])
    assert parts[6] == 0
    for at in range(6):
        assert flox_parts.state(parts[at], Terms.VALUES) == ExactState.from_bytes(states[at])


def test_sums_of_parts_are_the_parts_of_all_elements() -> None:
    array = np.ldexp(np.random.default_rng(2).standard_normal((30, 8)), np.arange(-400, 400, 100))
    array[3, 1], array[4, :] = np.inf, -0.0
    left, right = (
        flox_parts.packed(digits_of(half), [4] * 30, DTYPES["float64"]) for half in np.split(array, 2, axis=1)
    )
    for at, both in enumerate(zip(left, right, strict=True)):
        assert flox_parts.state(sum(both), Terms.VALUES) == ExactState.of(array[at])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mean", [False, True])
def test_parts_are_rounded_once_and_those_of_nothing_have_the_value_of_none(dtype: str, mean: bool) -> None:
    rng = np.random.default_rng(3)
    array = np.ldexp(rng.standard_normal((60, 7)), rng.integers(-60, 60, (60, 7))).astype(dtype)
    array[0, 0], array[1, :], array[2, 2], array[3, 1:3] = np.nan, -0.0, -np.inf, (np.inf, -np.inf)
    parts = [0, *flox_parts.packed(digits_of(array), [7] * 60, DTYPES[dtype])]
    values = flox_parts.rounded(parts, Terms.VALUES, DTYPES[dtype], np.nan, mean=mean)
    assert values is not None
    written = [str(value) for value in values.tolist()]
    assert written[:5] == ["nan", "nan", "-0.0", "-inf", "nan"]
    wanted = PartialResults.of(array, (1,), "mean" if mean else "sum").values(np.dtype(dtype)).ravel()
    assert values[5:].astype(dtype).tolist() == wanted[4:].tolist()
    assert values[5:].tolist() == values[5:].astype(dtype).tolist()


def test_parts_that_all_lack_elements_are_rounded_to_none() -> None:
    values = flox_parts.rounded([0, 0], Terms.VALUES, DTYPES["float64"], 0, mean=False)
    assert values is not None
    assert values.dtype.name == "float64"
    assert values.tolist() == [0.0, 0.0]


def test_counts_beyond_the_compiled_divisions_are_left_to_python() -> None:
    digits = Digits.of_state(ExactState(Terms.VALUES, 3 << 1074, 1 << 33, Flags.NOT_NEGATIVE_ZERO))
    (part,) = flox_parts.packed(digits, [1 << 33], DTYPES["float64"])
    assert flox_parts.rounded([part], Terms.VALUES, DTYPES["float64"], 0.0, mean=True) is None
    assert flox_parts.state(part, Terms.VALUES).count == 1 << 33
