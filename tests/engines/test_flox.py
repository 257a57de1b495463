"""flox with exact aggregations gives correctly rounded values, and the same bytes for any chunks and any method."""

from fractions import Fraction
from typing import Any

import dask.array as da
import flox
import flox.xarray
import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.engines import flox as exact
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, op_named, reference

OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "sum_squares")
ROWS, COLUMNS, GROUPS = 3, 60, 5
BY = np.random.default_rng(4).integers(0, GROUPS, COLUMNS)
METHODS = ("map-reduce", "cohorts")


def groups_of(array: Any, by: Any, func: Any, **asked: Any) -> NDArray[Any]:
    values, *_ = flox.groupby_reduce(array, by, func=func, **asked)
    made: NDArray[Any] = values.compute(scheduler="synchronous") if isinstance(values, da.Array) else values
    return made


def wanted(array: NDArray[Any], op: str, *, ddof: int = 0, skipna: bool = False) -> NDArray[Any]:
    """The value of each row and group, by exact arithmetic."""
    dtype, policy = DTYPES[array.dtype.name], NanPolicy.OMIT if skipna else NanPolicy.PROPAGATE
    patterns = array.view(f"u{array.itemsize}")
    values = [
        reference.reduce(op_named(op), dtype, row[group == BY].tolist(), policy, ddof=ddof)
        for row in patterns
        for group in range(GROUPS)
    ]
    flat = [np.nan if isinstance(value, reference.Undefined) else value.value for value in values]
    return np.array(flat, np.float64).astype(array.dtype).reshape(len(array), GROUPS)


def hexes(values: NDArray[Any]) -> list[str]:
    """The bits; NaNs are alike."""
    return [float(value).hex() for value in np.ravel(values)]


@pytest.mark.parametrize(("rows", "chunks"), [(ROWS, (1, 17)), (33, (33, 25))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("data", ADVERSARIAL)
def test_any_chunks_and_methods_give_the_correctly_rounded_values(
    data: str, dtype: str, rows: int, chunks: tuple[int, int]
) -> None:
    array = adversarial(data, DTYPES[dtype], rows * COLUMNS).reshape(rows, COLUMNS)
    cut = da.from_array(array, chunks=chunks)
    ways = [*zip(("sum", "std", "norm1", "sum_squares"), METHODS * 2, strict=True)]
    half = ADVERSARIAL.index(data) % 2 * 2  # of many rows two ops, of the next kind of data the others
    for op, method in ways if rows == ROWS else ways[half:][:2]:
        expected = wanted(array, op)
        for values in (groups_of(array, BY, getattr(exact, op)), groups_of(cut, BY, getattr(exact, op), method=method)):
            assert (values.dtype, values.shape) == (array.dtype, expected.shape)
            assert hexes(values) == hexes(expected), op


def test_the_same_bytes_come_of_all_chunks() -> None:
    array = adversarial("any finite", DTYPES["float64"], ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    for op in OPS:
        expected = wanted(array, op)
        for chunks, method in (((ROWS, 30), "map-reduce"), ((2, 20), "cohorts")):
            values = groups_of(da.from_array(array, chunks=chunks), BY, getattr(exact, op), method=method)
            assert values.tobytes() == expected.tobytes(), op


@pytest.mark.parametrize("rows", [ROWS, 33])
def test_nans_are_left_out_or_make_their_value_nan(rows: int) -> None:
    array = np.random.default_rng(5).standard_normal((rows, COLUMNS))
    array[0, BY == 2] = np.nan
    array[1, ::9] = np.nan
    for op in OPS:
        for skipna in (False, True):
            func = getattr(exact, ("nan" if skipna else "") + op)
            expected = wanted(array, op, skipna=skipna)
            if skipna and op in {"norm1", "norm2", "sum_squares"}:
                expected[0, 2] = 0.0  # of no elements, as NumPy has it
            for each in (array, da.from_array(array, chunks=(rows, 25))):
                assert hexes(groups_of(each, BY, func)) == hexes(expected), (op, skipna)


@pytest.mark.parametrize("rows", [1, 33])
def test_nans_of_every_float_dtype_are_left_out(rows: int) -> None:
    for dtype in (row for row in DTYPES.values() if row.is_float):
        array = np.tile(np.array([1, np.nan, 2, 3], dtype.numpy), (rows, 1))
        for each in (array, da.from_array(array, chunks=(rows, 3))):
            assert groups_of(each, np.array([0, 0, 1, 1]), exact.nansum).astype(float).tolist() == [[1.0, 5.0]] * rows


def test_sorted_groups_that_lie_in_one_block_each_are_rounded_there() -> None:
    array = adversarial("any finite", DTYPES["float64"], ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    order = np.argsort(BY, kind="stable")
    cut = da.from_array(array[:, order], chunks=(ROWS, 9))
    assert groups_of(cut, BY[order], exact.sum, method="blockwise").tobytes() == wanted(array, "sum").tobytes()


def test_degrees_of_freedom_reach_a_variance() -> None:
    array = np.random.default_rng(6).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    for each in (array, da.from_array(array, chunks=(1, 8))):
        values = groups_of(each, BY, exact.std, finalize_kwargs={"ddof": 1})
        assert values.tobytes() == wanted(array, "std", ddof=1).tobytes()


@pytest.mark.parametrize("rows", [ROWS, 33])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool"])
def test_sums_of_integers_are_exact(dtype: str, rows: int) -> None:
    array = np.random.default_rng(7).integers(0, 2 if dtype == "bool" else 100, (rows, COLUMNS)).astype(dtype)
    expected = np.stack([array[:, group == BY].sum(1, dtype=np.int64) for group in range(GROUPS)], 1)
    for each in (array, da.from_array(array, chunks=(rows, 17))):
        values = groups_of(each, BY, exact.sum)
        assert values.dtype == (np.uint64 if dtype == "uint64" else np.int64)
        assert values.tolist() == expected.tolist()
        assert groups_of(each, BY, exact.mean).dtype == np.float64


@pytest.mark.parametrize("rows", [1, 33])
def test_a_sum_of_integers_that_does_not_fit_is_refused(rows: int) -> None:
    array = np.full((rows, COLUMNS), np.iinfo(np.int64).max)
    for each in (array, da.from_array(array, chunks=(rows, 10))):
        with pytest.raises(InvalidInput, match="does not fit int64"):
            groups_of(each, BY, exact.sum)


def test_groups_without_elements_get_the_fill_value() -> None:
    array = np.random.default_rng(8).standard_normal((ROWS, COLUMNS))
    for each in (array, da.from_array(array, chunks=(ROWS, 7))):
        for func in (exact.sum, exact.nanvar):
            values = groups_of(each, BY, func, expected_groups=np.arange(-1, GROUPS + 1), fill_value=-7.0)
            assert (values[:, [0, -1]] == -7.0).all()
            assert (values[:, 1:-1] != -7.0).all()


@pytest.mark.parametrize("rows", [ROWS, 33])
def test_elements_without_a_label_belong_to_no_group(rows: int) -> None:
    array = np.random.default_rng(13).standard_normal((rows, COLUMNS))
    by = np.where(BY == 2, np.nan, BY)
    expected = np.delete(wanted(array, "sum"), 2, axis=1)
    for each in (array, da.from_array(array, chunks=(rows, 7))):
        assert hexes(groups_of(each, by, exact.sum)) == hexes(expected)


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_elements_without_a_label_may_have_a_sum_that_does_not_fit(rows: int, dtype: str) -> None:
    most = np.iinfo(dtype).max
    array = np.tile(np.array([1, most, most, most - 7, 2, 7], dtype), (rows, 1))
    by = np.array([0, np.nan, np.nan, 1, 0, 1])
    nowhere = np.array([0, 9, 9, 1, 0, 1])
    for each in (array, da.from_array(array, chunks=(rows, 4))):
        for labels in (by, nowhere):
            values = groups_of(each, labels, exact.sum, expected_groups=np.arange(2))
            assert (values.dtype, values.tolist()) == (array.dtype, [[3, most]] * rows)
    for dtype_asked in (None, np.float64):
        with pytest.raises(InvalidInput, match=f"does not fit {dtype}"):
            groups_of(array, np.where(by == 1, 0, 1), exact.sum, dtype=dtype_asked)


def test_labels_of_two_dimensions_and_axes_that_are_left_are_taken() -> None:
    array = np.random.default_rng(9).standard_normal((4, 6, 10))
    by = np.random.default_rng(9).integers(0, 3, (6, 10))
    whole = groups_of(array, by, exact.sum)
    assert whole[2, 1] == float(np.sum([Fraction(x) for x in array[2][by == 1].tolist()]))
    along = groups_of(array, by, exact.sum, axis=2, expected_groups=np.arange(3), fill_value=0.0)
    for chunks in ((1, 6, 10), (4, 2, 3)):
        cut = da.from_array(array, chunks=chunks)
        assert groups_of(cut, by, exact.sum, method="map-reduce").tobytes() == whole.tobytes()
        asked = {"axis": 2, "expected_groups": np.arange(3), "fill_value": 0.0}
        assert groups_of(cut, by, exact.sum, **asked).tobytes() == along.tobytes()


def test_chunked_labels_are_taken() -> None:
    array = np.random.default_rng(10).standard_normal((ROWS, COLUMNS))
    cut, labels = da.from_array(array, chunks=(ROWS, 7)), da.from_array(BY, chunks=20)
    values = groups_of(cut, labels, exact.mean, expected_groups=np.arange(GROUPS))
    assert values.tobytes() == wanted(array, "mean").tobytes()


def test_xarray_gets_the_same_bits_by_any_chunks() -> None:
    array = np.random.default_rng(11).standard_normal((COLUMNS, 4, 9)).astype(np.float32)
    field = xr.DataArray(array, dims=("time", "lat", "lon"), coords={"month": ("time", BY)})
    months = field.month.load()
    in_memory = flox.xarray.xarray_reduce(field, months, func=exact.mean)
    assert in_memory.dims == ("month", "lat", "lon")
    for days in (1, 7, COLUMNS):
        by_chunks = flox.xarray.xarray_reduce(field.chunk({"time": days}), months, func=exact.mean)
        assert by_chunks.compute(scheduler="synchronous").identical(in_memory)


def test_processes_give_the_bits_of_threads() -> None:
    array = np.random.default_rng(12).standard_normal((ROWS, COLUMNS))
    lazy, *_ = flox.groupby_reduce(da.from_array(array, chunks=(ROWS, 20)), BY, func=exact.var)
    assert lazy.compute(scheduler="processes", num_workers=2).tobytes() == groups_of(array, BY, exact.var).tobytes()


def test_arrays_of_other_libraries_are_not_stripped_of_what_they_carry() -> None:
    masked = np.ma.masked_greater(np.arange(float(COLUMNS)), 3.0)
    with pytest.raises(TypeError, match="MaskedArray"):
        groups_of(da.from_array(masked, chunks=7), BY, exact.sum)


NAT = np.iinfo(np.int64).min
TIMES = [
    ([1, 2, 3, NAT], [0, 0, 1, 1]),
    ([NAT, NAT, 5, -8], [0, 0, 1, 1]),
    ([1, 2, 2, 3], [0, 0, 1, 1]),
    ([-1, -2, 2**62, 2**62 - 1], [0, 0, 1, 1]),
    ([0, NAT, NAT, 0, 7, -3, NAT, 2**53 + 1], [2, 2, 1, 1, 0, 0, 0, 0]),
    ([NAT], [0]),
    ([3, 4, 5, 6, NAT], [1, 1, 0, 0, -1]),
]
"""Integers of times, and the groups that these belong to."""


def wanted_times(numbers: list[int], by: list[int], op: str, *, skipna: bool) -> list[int]:
    values = []
    for group in sorted(set(by) - {-1}):
        chosen = [number for number, at in zip(numbers, by, strict=True) if at == group]
        present = [number for number in chosen if number != NAT]
        if not skipna and len(present) < len(chosen):
            values.append(NAT)
        elif op == "mean":
            values.append(round(Fraction(sum(present), len(present))) if present else NAT)
        else:
            values.append(sum(map(abs, present) if op == "norm1" else present))
    return values


@pytest.mark.parametrize("chunks", [None, 1, 3])
@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, dtype) for op in ("sum", "nansum", "mean", "nanmean", "norm1", "nannorm1") for dtype in ("m8[ns]", ">m8[D]")]
    + [("mean", "M8[ms]"), ("nanmean", "M8[D]")],
)
def test_a_nat_is_left_out_or_makes_its_value_nat(op: str, dtype: str, rows: int, chunks: int | None) -> None:
    for numbers, by in TIMES:
        times = np.tile(np.array(numbers, np.int64), (rows, 1)).view(dtype.lstrip(">")).astype(dtype)
        labels = np.array([np.nan if at < 0 else at for at in by])
        array = times if chunks is None else da.from_array(times, chunks=(rows, chunks))
        values = groups_of(array, labels, getattr(exact, op))
        expected = wanted_times(numbers, by, op.removeprefix("nan"), skipna=op.startswith("nan"))
        assert values.dtype == dtype
        assert values.astype(dtype.lstrip(">")).view(np.int64).tolist() == [expected] * rows


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize(
    ("op", "dtype", "why"),
    [
        ("sum", "M8[D]", r"sum takes no datetime64\[D\]"),
        ("nansum", "M8[ns]", r"sum takes no datetime64\[ns\]"),
        ("norm1", "M8[s]", "norm1 takes no"),
        ("var", "m8[s]", "var takes no"),
        ("nanstd", "m8[ns]", "std takes no"),
        ("std", "M8[s]", "std takes no"),
        ("norm2", "m8[s]", "norm2 takes no"),
        ("sum_squares", "m8[s]", "sum_squares takes no"),
        ("sum", "m8[Y]", "convert it to days"),
        ("mean", "M8[M]", "convert it to days"),
        ("mean", "m8[2h]", "convert it to days"),
        ("sum", "m8", "convert it to days"),
        ("sum", "c16", "complex128 cannot be reduced"),
        ("mean", "O", "object cannot be reduced"),
        ("sum", "U3", "U3 cannot be reduced"),
    ],
)
def test_what_has_no_value_of_times_and_what_is_no_number_is_refused(
    op: str, dtype: str, why: str, chunks: int | None
) -> None:
    array = np.arange(4).astype(dtype)
    with pytest.raises(InvalidInput, match=why):
        groups_of(
            array if chunks is None else da.from_array(array, chunks=chunks), np.array([0, 0, 1, 1]), getattr(exact, op)
        )


@pytest.mark.parametrize("chunks", [None, 1])
def test_a_sum_of_durations_that_does_not_fit_is_refused(chunks: int | None) -> None:
    durations = np.array([2**62, 2**62, 1], "m8[s]")
    with pytest.raises(InvalidInput, match="9223372036854775808 does not fit"):
        groups_of(
            durations if chunks is None else da.from_array(durations, chunks=chunks), np.array([1, 1, 0]), exact.sum
        )


def test_groups_of_times_in_xarray_keep_their_unit() -> None:
    waits = xr.DataArray(np.array([[1, 2, NAT, 4]], np.int64).view("m8[ns]"), dims=("x", "t"))
    runs = xr.DataArray([0, 0, 1, 1], dims="t", name="k")
    for array in (waits, waits.chunk(t=1)):
        means = flox.xarray.xarray_reduce(array, runs, func=exact.nanmean).compute()
        assert means.values.view(np.int64).tolist() == [[2, 4]]
    elements = flox.groupby_reduce(
        waits.values[0], np.array([0, 0, 1, 1]), func=exact.mean, expected_groups=np.array([0, 5])
    )[0]
    assert elements.view(np.int64).tolist() == [2, NAT]
