"""Quantiles of a whole source have the values of the definition, in however many reads they are found."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits
from warpfold.kernels.aggregates import collected
from warpfold.kernels.aggregates.aggregate import One
from warpfold.kernels.cpu import passes
from warpfold.kernels.cpu.passes import select
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.ops import OPS, NanPolicy, Op, Parameters, reference
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import SequentialSource

QUANTILES = (0.9, 0, 0.5, 0.1, 1)
FEWEST = 1 << 50
"""A share of the memory that holds no element."""


def quantile(method: str, q: float | tuple[float, ...] = QUANTILES) -> Op:
    return OPS["quantile"].having(Parameters(q=q, method=method))


def check(source: Any, dtype: DType, bits: list[int], method: str, policy: NanPolicy) -> None:
    selected = select(source, quantile(method), policy, None)
    for q, value in zip(QUANTILES, np.asarray(selected.values).tolist(), strict=True):
        answer = reference.reduce(quantile(method, q), dtype, bits, policy)
        assert isinstance(answer, reference.Answer)
        assert selected.count == answer.count
        assert same(value, answer.value), (dtype.name, method, policy, q, value, answer.value)


@pytest.mark.parametrize("share", [4, FEWEST], ids=["gathered", "counted to the last bit"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_elements_are_found_by_their_digits(dtype: DType, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FEW", 0)
    monkeypatch.setattr(passes, "_SHARE_OF_FREE", share)
    monkeypatch.setattr(passes, "_RUN", 2)
    chance = random.Random(f"{dtype.name} {share}")
    bits = any_bits(dtype, 300, chance)
    for method in ("linear", "lower", "averaged_inverted_cdf"):
        for policy in (NanPolicy.PROPAGATE, NanPolicy.OMIT) if dtype.is_float else (NanPolicy.PROPAGATE,):
            check(ArraySource(array_of_bits(bits, dtype)), dtype, bits, method, policy)


@pytest.mark.parametrize("name", ["int32", "int64", "uint64"])
def test_integers_that_a_sample_does_not_show_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FEW", 0)
    monkeypatch.setattr(passes, "_RUN", 1)
    dtype = DTYPES[name]
    low, high = dtype.bounds
    values = [7] * 1000
    for extremes in ([], [high] * 400, [low, 8, high]):
        for at, value in enumerate(extremes):
            values[at * 2 + 1] = value  # between the places that are sampled
        bits = [value % (1 << 8 * dtype.itemsize) for value in values]
        check(ArraySource(array_of_bits(bits, dtype)), dtype, bits, "lower", NanPolicy.PROPAGATE)


def test_a_source_that_comes_in_order_is_read_again_where_the_memory_does_not_hold_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_much(needed: int, what: str) -> None:
        raise OutOfMemory(f"{what} needs {needed} bytes")

    monkeypatch.setattr(collected, "require", too_much)
    monkeypatch.setattr(collected, "_CHECKED_BYTES", 0)
    array, reads = np.arange(1000.0), list[int]()

    def begun() -> Iterator[Any]:
        reads.append(1)
        return iter([array[:300], array[300:]])

    source = SequentialSource(DTYPES["float64"], begun, array.size)
    selected = select(source, OPS["median"], NanPolicy.PROPAGATE, None)
    assert (np.asarray(selected.values).tolist(), selected.count, source.tally.elements) == ([499.5], 1000, 1000)
    assert len(reads) == 3
    with pytest.raises(OutOfMemory, match="an op that keeps all elements"):
        collected.Collected(passes._Digits.of(OPS["median"], source).keys).update((array,), One(), 1)


def test_the_index_of_a_nan_that_is_refused_is_that_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FEW", 0)
    array = np.arange(100_000.0)
    array[99_000] = np.nan
    with pytest.raises(InvalidInput, match="element 99000 is NaN"):
        select(ArraySource(array), OPS["median"], NanPolicy.RAISE, None)


def test_progress_goes_on_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "FEW", 0)
    calls: list[tuple[int, int]] = []
    select(ArraySource(np.arange(1000.0)), OPS["median"], NanPolicy.PROPAGATE, lambda *call: calls.append(call))
    assert calls[-1] == (1000, 1000)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
