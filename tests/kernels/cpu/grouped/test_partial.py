"""Parts of an array that are added up by themselves give the bits of the whole array."""

from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.client.local import reduce_groups
from warpfold.kernels.cpu.grouped import partial
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.source import ArraySource

OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "sum_squares", "dot")
DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool")


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Random elements over many exponents, at times with what is no finite number."""
    if not dtype.startswith("float"):
        return rng.integers(-90 if dtype.startswith("int") else 0, 90, shape).astype(dtype)
    wide = {"float64": 900, "float32": 100, "float16": 12}[dtype]
    spread = rng.choice([1, wide])
    array = np.ldexp(rng.standard_normal(shape), rng.integers(-spread, spread, shape)).astype(dtype)
    if array.size and rng.random() < 0.2:
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
    return array


def of_the_whole(
    arrays: tuple[NDArray[Any], ...], op: str, axes: tuple[int, ...], dtype: "np.dtype[Any]"
) -> NDArray[Any]:
    sources = [ArraySource(array) for array in arrays]
    reduction = reduce_groups(
        sources[0], op, AlongAxes(axes, keepdims=True), other=sources[1] if len(sources) > 1 else None
    )
    values = [np.nan if value is None else value for value in reduction.values]
    return np.array(values).astype(dtype).reshape(reduction.shape)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), op=st.sampled_from(OPS), dtype=st.sampled_from(DTYPES))
def test_parts_give_the_bits_of_the_whole(seed: int, op: str, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(length) for length in rng.integers(1, 9, rank))
    axes = tuple(sorted(int(axis) for axis in rng.choice(rank, rng.integers(1, rank + 1), replace=False)))
    arrays = tuple(elements(rng, shape, dtype) for _ in range(2 if op == "dot" else 1))
    cut = int(rng.choice(axes))
    places = np.sort(rng.integers(0, shape[cut] + 1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial, "SLAB", int(rng.choice([1, 3, 7, 1 << 14])))
        parts = [
            PartialResults.of(pair[0], axes, op, other=pair[1] if len(pair) > 1 else None)
            for pair in zip(*(np.split(array, places, axis=cut) for array in arrays), strict=True)
        ]
    merged = PartialResults.merge([PartialResults.merge(parts[1:]), parts[0]])
    integers = np.dtype(np.uint64 if dtype.startswith("u") else np.int64)
    result = integers if merged.result == "integer" else np.dtype(merged.result)
    values, whole = merged.values(result), of_the_whole(arrays, op, axes, result)
    assert values.shape == whole.shape
    present = ~np.isnan(whole)
    assert (np.isnan(values) == ~present).all()
    assert values[present].tobytes() == whole[present].tobytes()


def test_sums_are_those_of_exact_arithmetic() -> None:
    rng = np.random.default_rng(3)
    array = np.ldexp(rng.standard_normal((40, 6)), rng.integers(-500, 500, (40, 6)))
    parts = [PartialResults.of(part, (0,), "sum") for part in np.array_split(array, 7)]
    values = PartialResults.merge(parts[::-1]).values(np.dtype("float64"))
    assert values.ravel().tolist() == [fsum(column) for column in array.T]


def test_a_mean_is_rounded_once_and_not_after_its_sum() -> None:
    array = np.array([0.1, 0.7, 1e16, -1e16, 0.2], np.float64)
    parts = [PartialResults.of(array[:2], (0,), "mean"), PartialResults.of(array[2:], (0,), "mean")]
    exact = sum(map(Fraction, array.tolist()), Fraction()) / 5
    assert PartialResults.merge(parts).values(np.dtype("float64"))[0] == float(exact)


def test_sums_in_between_may_pass_the_largest_float() -> None:
    largest = np.finfo(np.float64).max
    parts = [PartialResults.of(np.array([x, x]), (0,), "sum") for x in (largest, -largest)]
    assert PartialResults.merge(parts).values(np.dtype("float64"))[0] == 0.0
    assert parts[0].values(np.dtype("float64"))[0] == np.inf


def test_a_value_of_no_elements_is_zero_or_nan() -> None:
    nothing = np.zeros((0, 2))
    for op in ("sum", "norm1", "norm2", "sum_squares"):
        assert PartialResults.of(nothing, (0,), op).values(np.dtype("float64")).tolist() == [[0.0, 0.0]]
    assert np.isnan(PartialResults.of(nothing, (0,), "mean").values(np.dtype("float64"))).all()
    assert np.isnan(PartialResults.of(np.ones((1, 2)), (0,), "var").values(np.dtype("float64"), ddof=1)).all()


def test_a_partial_result_takes_tens_of_bytes_a_value() -> None:
    array = np.random.default_rng(0).standard_normal((50, 1000))
    for op, each in (("sum", 16), ("sum_squares", 64)):
        (sums,) = PartialResults.of(array, (0,), op).sums
        assert sums.nbytes <= each * 1000


def test_an_integer_sum_that_does_not_fit_is_refused() -> None:
    part = PartialResults.of(np.full(3, 2**63 - 1), (0,), "sum")
    with pytest.raises(InvalidInput, match=r"the sum 27670116110564327421 does not fit int64"):
        part.values(np.dtype(np.int64))


def test_an_op_that_adds_nothing_up_has_no_partial_results() -> None:
    with pytest.raises(InvalidInput, match="max adds nothing up"):
        PartialResults.of(np.ones(2), (0,), "max")


def test_parts_of_other_reductions_are_not_merged() -> None:
    parts = [PartialResults.of(np.ones(2), (0,), "sum"), PartialResults.of(np.ones(2), (0,), "mean")]
    with pytest.raises(InvalidInput, match="partial results of mean"):
        PartialResults.merge(parts)


@pytest.mark.parametrize("shape", [(1, 40), (3, 40)])
def test_values_may_be_asked_for_again(shape: tuple[int, int]) -> None:
    array = -np.abs(np.random.default_rng(8).standard_normal(shape))
    sums = PartialResults.of(array, (1,), "sum")
    wanted = [[fsum(row)] for row in array]
    for _ in range(2):
        assert sums.values(np.dtype(np.float64)).tolist() == wanted
    assert PartialResults.merge([sums]).values(np.dtype(np.float64)).tolist() == wanted
