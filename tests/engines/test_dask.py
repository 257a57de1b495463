"""Reductions of Dask arrays have the same bits for any chunks and on any scheduler."""

from math import fsum
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernels.columns import exact_sums, nearest
from warpfold.engines import dask as exact
from warpfold.kernels.errors import InvalidInput

ARRAY = np.ldexp(np.random.default_rng(1).standard_normal((12, 9, 5)), np.arange(-40, 50, 10)[:, None])


def chunked(array: Any, chunks: Any) -> Any:
    return da.from_array(array, chunks=chunks, name=False)


@settings(max_examples=8, deadline=None)
@given(chunks=st.tuples(st.integers(1, 12), st.integers(1, 9), st.integers(1, 5)), split=st.integers(2, 5))
def test_any_chunks_give_the_same_bits(chunks: tuple[int, int, int], split: int) -> None:
    cut, whole = chunked(ARRAY, chunks), chunked(ARRAY, ARRAY.shape)
    for reduce in (exact.sum, exact.mean, exact.var, exact.norm2):
        for axis in (None, (1, 2)):
            value = reduce(cut, axis, split_every=split).compute(scheduler="synchronous")
            assert (
                np.asarray(value).tobytes()
                == np.asarray(reduce(whole, axis).compute(scheduler="synchronous")).tobytes()
            )


def test_a_sum_is_the_correctly_rounded_one() -> None:
    assert exact.sum(chunked(ARRAY, 3)).compute() == fsum(ARRAY.ravel())
    along = exact.sum(chunked(ARRAY, 2), axis=0).compute()
    assert along.ravel().tolist() == [fsum(column) for column in ARRAY.reshape(12, -1).T]


def test_results_have_the_shapes_and_dtypes_that_dask_says_beforehand() -> None:
    for dtype in ("float32", "float64", "int16", "uint8", "bool"):
        x = chunked((ARRAY % 100).astype(dtype), 4)
        for lazy in (exact.sum(x, axis=1), exact.mean(x, keepdims=True), exact.std(x, axis=(0, 2), ddof=1)):
            computed = np.asarray(lazy.compute(scheduler="synchronous"))
            assert (computed.shape, computed.dtype) == (lazy.shape, lazy.dtype), dtype


def test_processes_give_the_bits_of_threads() -> None:
    lazy = exact.mean(chunked(ARRAY, 5), axis=2)
    assert lazy.compute(scheduler="processes", num_workers=2).tobytes() == lazy.compute(scheduler="threads").tobytes()


def test_a_dot_product_takes_two_arrays_of_other_chunks() -> None:
    x, y = chunked(ARRAY, (12, 3, 5)), chunked(ARRAY[::-1].copy(), (4, 9, 1))
    expected = exact.dot(chunked(ARRAY, -1), chunked(ARRAY[::-1].copy(), -1), axis=0).compute()
    assert exact.dot(x, y, axis=0).compute().tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="two arrays of one shape"):
        exact.dot(x, y[:3])


def test_integers_are_summed_without_rounding_and_never_wrap() -> None:
    most = np.full(4, 2**62)
    with pytest.raises(InvalidInput, match="does not fit int64"):
        exact.sum(chunked(most, 2)).compute(scheduler="synchronous")
    assert exact.sum(chunked(most[:1], 1)).compute() == 2**62


def test_a_mask_is_not_dropped_silently() -> None:
    masked = da.ma.masked_equal(chunked(np.ones(4), 2), 1)
    with pytest.raises(TypeError, match="MaskedArray"):
        exact.sum(masked).compute(scheduler="synchronous")


def test_complex_elements_are_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput):
        exact.sum(chunked(np.ones(2, complex), 1))


def test_columns_of_a_data_frame_are_added_up_whatever_the_partitions() -> None:
    frame = pd.DataFrame({"key": np.arange(180) % 4, "x": ARRAY.ravel()[:180], "n": np.arange(180)})
    of_groups = [fsum(frame.x[frame.key == key]) for key in range(4)]
    for partitions in (1, 3, 7):
        cut = dd.from_pandas(frame, npartitions=partitions)
        assert exact.sum(cut.x).compute(scheduler="synchronous") == fsum(frame.x)
        lazy = cut.groupby("key").agg({"x": exact.aggregation("sum"), "n": exact.aggregation("mean")})
        groups = lazy.compute(scheduler="synchronous").sort_index()
        assert groups.x.tolist() == of_groups
        assert groups.n.tolist() == frame.groupby("key").n.mean().tolist()
        assert groups.dtypes.tolist() == [np.float64, np.float64]


def test_an_aggregation_keeps_float32_and_refuses_what_has_no_state() -> None:
    frame = pd.DataFrame({"key": [1, 1, 2], "x": np.array([1e8, 1.0, np.nan], np.float32)})
    lazy = dd.from_pandas(frame, npartitions=2).groupby("key").x.agg(exact.aggregation())
    groups = lazy.compute(scheduler="synchronous").sort_index()
    assert groups.dtype == np.float32
    assert groups.loc[1] == np.float32(1e8)
    assert np.isnan(groups.loc[2])
    for op in ("var", "max", "dot"):
        with pytest.raises(InvalidInput, match="no single exact state"):
            exact.aggregation(op)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "int8", "bool"])
def test_values_that_are_whole_in_their_chunks_have_the_bits_of_those_that_are_merged(dtype: str) -> None:
    array = (ARRAY * 1e3).clip(0, 100).astype(dtype)
    for reduce in (exact.sum, exact.mean, exact.std, exact.norm1):
        for axis, chunks in ((0, (12, 2, 5)), ((1, 2), (5, 9, 5)), ((0, -1), (12, 4, 5)), (None, (12, 9, 5))):
            for keepdims in (False, True):
                whole = reduce(chunked(array, chunks), axis, keepdims=keepdims)
                merged = reduce(chunked(array, (7, 2, 3)), axis, keepdims=keepdims)
                assert (whole.shape, whole.dtype) == (merged.shape, merged.dtype)
                values, others = (np.asarray(lazy.compute(scheduler="synchronous")) for lazy in (whole, merged))
                assert values.tobytes() == others.tobytes()
                assert values.shape == whole.shape


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_few_steps_of_many_values_have_the_same_bits_however_they_are_cut(dtype: str) -> None:
    steps = np.random.default_rng(5).standard_normal((12, 5003)).astype(dtype)
    steps[3, ::7], steps[4, ::7] = 2.0**40, -(2.0**40)
    expected = np.array([nearest(total, dtype) for total in exact_sums(steps, (0,))], dtype)
    for reduce in (exact.sum, exact.mean, exact.norm1):
        whole = reduce(chunked(steps, (12, 1000)), axis=0).compute(scheduler="synchronous")
        assert reduce is not exact.sum or whole.tobytes() == expected.tobytes()
        for length, split in ((1, 3), (5, None), (7, 2)):
            lazy = reduce(chunked(steps, (length, 5003)), axis=0, split_every=split)
            assert lazy.compute(scheduler="synchronous").tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_sums_of_large_integers_along_an_axis_are_exact_or_refused(dtype: str) -> None:
    info = np.iinfo(dtype)
    array = np.random.default_rng(4).integers(info.min, info.max, (6, 40), dtype=dtype, endpoint=True)
    expected = [sum(map(int, column)) for column in array.T]
    lazy = exact.sum(chunked(array, (4, 7)), axis=0)
    bounds = np.iinfo(lazy.dtype)
    if all(bounds.min <= value <= bounds.max for value in expected):
        assert lazy.compute(scheduler="synchronous").tolist() == expected
    else:
        with pytest.raises(InvalidInput, match="does not fit"):
            lazy.compute(scheduler="synchronous")
    small = exact.sum(chunked(array // 8, (4, 7)), axis=0).compute(scheduler="synchronous")
    assert small.tolist() == [sum(map(int, column)) for column in (array // 8).T]


def test_partial_results_of_few_values_are_merged_in_one_task_and_those_of_many_as_dask_does() -> None:
    x = chunked(np.arange(64 * 2048, dtype=np.float64).reshape(64, 2048), (1, 2048))
    few = exact.sum(x)
    assert len(dict(few.__dask_graph__())) < len(dict(exact.sum(x, split_every=4).__dask_graph__()))
    assert few.compute() == fsum(range(64 * 2048))
    wide = da.zeros((64, 1 << 21), chunks=(1, 1 << 21))
    many, by_fours = exact.sum(wide, axis=0), exact.sum(wide, axis=0, split_every=4)
    assert len(dict(many.__dask_graph__())) == len(dict(by_fours.__dask_graph__()))
