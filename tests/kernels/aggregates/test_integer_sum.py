"""The compiled sums of integers."""

import numpy as np
import pytest

from tests.support.kernels.patterns import OTHERS
from warpfold.kernels.aggregates import integer_loops
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState
from warpfold.kernels.ops import Terms


@pytest.mark.parametrize("dtype", OTHERS, ids=lambda dtype: dtype.name)
def test_long_sums_at_both_ends_of_the_range_are_exact(dtype: DType) -> None:
    low, high = dtype.bounds
    chance = np.random.default_rng(1)
    for values in ((low,), (high,), (low, high), (low, 0, high)):
        array = chance.choice(np.array(values, dtype=dtype.numpy), 100_003)
        counts = [int((array == value).sum()) for value in values]
        for terms, magnitudes, term in (
            (Terms.VALUES, False, lambda x: x),
            (Terms.VALUES, True, abs),
            (Terms.PRODUCTS, False, lambda x: x * x),
        ):
            accumulated = accumulator([dtype], terms, magnitudes=magnitudes)
            accumulated.add(array)
            wanted = sum(count * term(value) for value, count in zip(values, counts, strict=True))
            assert accumulated.state().units == wanted << (1074 if terms is Terms.VALUES else 2148)


@pytest.mark.parametrize("dtype", OTHERS, ids=lambda dtype: dtype.name)
def test_random_integers_add_as_the_portable_definition_says(dtype: DType) -> None:
    raw = np.random.default_rng(2).bytes(8 * 5000)
    array = np.frombuffer(raw, dtype=np.uint8) % 2 == 1 if dtype.name == "bool" else np.frombuffer(raw, dtype.numpy)
    for terms, magnitudes in ((Terms.VALUES, False), (Terms.VALUES, True), (Terms.PRODUCTS, False)):
        accumulated = accumulator([dtype], terms, magnitudes=magnitudes)
        accumulated.add(array[:777])
        accumulated.add(array[777:])
        assert accumulated.state() == ExactState.empty(terms).add(array, magnitudes=magnitudes)


def test_arrays_longer_than_a_call_may_take_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_loops, "MAX_ELEMENTS", 10)
    accumulated = accumulator([OTHERS[3]], Terms.VALUES)
    accumulated.add(np.arange(1234, dtype=np.int64))
    assert accumulated.state().units == 1234 * 1233 // 2 << 1074
