"""What other libraries' arrays become. PyTorch and CuPy themselves are met in tests/gpu/test_client_arrays.py."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.typing import NDArray

from warpfold.client.arrays import alike, as_kept, as_numpy, parts_of
from warpfold.kernels.exact import ExactState


class OnlyDLPack:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class OnlyInterface:
    """The same with NumPy's own protocol."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class OnDevice:
    """Speaks CUDA's protocol, and moves its data when asked, as CuPy does."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.__cuda_array_interface__ = {"shape": array.shape}

    def get(self) -> NDArray[Any]:
        return self._array


NUMBERS = np.array([1.5, -2.0, 0.0], dtype=np.float32)


def test_a_range_that_crosses_the_end_of_int64_keeps_its_elements() -> None:
    for elements in (range(3), range(2**63 - 2, 2**63 + 2), range(2**63, 2**63 + 2), range(-3, 0)):
        assert as_numpy(elements).tolist() == list(elements)
    with pytest.raises(TypeError, match="neither int64 nor uint64 holds"):
        as_numpy(range(-1, 2**63 + 1, 2**63 + 1))


@pytest.mark.parametrize("wrap", [OnlyDLPack, OnlyInterface, OnDevice])
def test_every_protocol_gives_the_same_elements(wrap: type) -> None:
    array = as_numpy(wrap(NUMBERS))
    assert array.dtype == np.float32
    assert array.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(NUMBERS),
        polars.Series(NUMBERS),
        polars.DataFrame({"x": NUMBERS})["x"],
        pandas.DataFrame({"x": NUMBERS})["x"],
        pyarrow.array(NUMBERS),
        pyarrow.chunked_array([NUMBERS[:1], NUMBERS[1:]]),
    ],
)
def test_columns_of_data_frames_are_arrays(column: object) -> None:
    array = as_numpy(column)
    assert array.dtype == np.float32
    assert array.tolist() == NUMBERS.tolist()


def test_an_array_of_h5py_is_taken_unless_its_attributes_change_its_values(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.array([1, 2, -9], np.float32)
        assert as_numpy(file["x"]).tolist() == [1, 2, -9]
        file["x"].attrs["_FillValue"] = -9.0
        with pytest.raises(TypeError, match=r"the h5py array .x. has _FillValue, .* pass the Path of its file"):
            as_numpy(file["x"])
        assert as_numpy(file["x"][:]).tolist() == [1, 2, -9]


def test_an_array_is_not_copied() -> None:
    assert np.shares_memory(as_numpy(NUMBERS), NUMBERS)


def test_a_number_is_an_array_of_one() -> None:
    assert as_numpy(3).shape == (1,)
    assert as_numpy(np.float64(0.5)).tolist() == [0.5]


def test_a_dtype_converts_each_element_once() -> None:
    assert as_numpy([0.1, 1e30], "bfloat16").dtype == ml_dtypes.bfloat16
    assert as_numpy([1, 2], "float16").dtype == np.float16
    above_a_tie = 1.0 + 2.0**-8 + 2.0**-40  # which ml_dtypes' own conversion, by way of float32, takes for the tie
    assert as_numpy([[above_a_tie]], "bfloat16").astype(float).tolist() == [[1.0 + 2.0**-7]]


@pytest.mark.parametrize(
    ("data", "dtype", "message"),
    [
        (np.array([300]), "uint8", "uint8 does not hold 300"),
        ([300], "uint8", "uint8 does not hold 300"),
        ([0.1], "int64", "int64 does not hold 0.1"),
        (np.array([math.nan]), "int64", "int64 does not hold nan"),
        ([2], "bool", "bool does not hold 2"),
        ([1e40], "float32", "float32 does not hold 1e\\+40"),
        ([2**24 + 1], "float32", "float32 does not hold 16777217"),
        ([0.5, 2**24 + 1], "float32", "float32 does not hold 16777217"),
        (np.array([2**53 + 1, 0]), "float64", "float64 does not hold 9007199254740993"),
        ([Decimal("1e400")], "float64", "beyond the range of float64"),
        ([Fraction(1, 2)], "int8", "1/2 is not a whole number"),
        (["1.5"], "float64", "elements of type str cannot be reduced"),
    ],
)
def test_a_dtype_that_does_not_hold_an_element_is_refused(data: object, dtype: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_numpy(data, dtype)


def test_a_ratio_is_rounded_once_and_only_where_a_dtype_is_asked_for() -> None:
    above_a_tie = Fraction(2**24 + 1) + Fraction(1, 2**60)  # which a float64 takes for the tie
    assert as_numpy([above_a_tie, Decimal("0.1"), 2], "float32").tolist() == [2.0**24 + 2, float(np.float32(0.1)), 2.0]
    assert as_numpy([Decimal(5), 2.0], "int8").tolist() == [5, 2]
    with pytest.raises(TypeError, match="say which dtype to round them to"):
        as_numpy([Decimal("0.5")])


@pytest.mark.parametrize("data", [["a"], [1j], [{"x": 1}], np.array(["2026-01-01"], dtype="M8[D]")])
def test_what_is_no_number_is_refused(data: object) -> None:
    with pytest.raises(TypeError, match="cannot be reduced"):
        as_numpy(data)


def test_a_mask_is_not_passed_over() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for data in (masked, [masked], [1, np.ma.masked]):
        with pytest.raises(TypeError, match=r"masked array .* `\.compressed\(\)`"):
            as_numpy(data)
    with pytest.raises(ValueError, match="masked array"):
        ExactState.of(masked)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([2**63 + 1, -1], "neither int64 nor uint64 holds 9223372036854775809 beside -1"),
        ([[2**63], [-(2**63)], [2**63 + 1]], "neither int64 nor uint64 holds"),
        ([np.uint64(2**63 + 1), np.int64(-(2**63))], "neither int64 nor uint64 holds"),
        ([2**64], "neither int64 nor uint64 holds 18446744073709551616"),
        ([2**53 + 1, 0.5], "float64 does not hold 9007199254740993"),
        ([np.int64(2**53 + 1), np.float64(0.5)], "float64 does not hold 9007199254740993"),
        ([np.array([2**53 + 1]), np.array([0.5])], "no dtype holds the arrays of this list together"),
        (np.array([2**53 + 1, 0.5], dtype=object), "float64 does not hold 9007199254740993"),
    ],
)
def test_integers_that_no_dtype_holds_together_are_not_rounded_in_silence(data: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_numpy(data)


def test_integers_of_a_list_stay_integers_where_a_dtype_holds_them() -> None:
    assert as_numpy([np.uint64(5), np.int64(-1)]).dtype == np.int64
    assert as_numpy([np.uint64(2**63 + 1), 1]).tolist() == [2**63 + 1, 1]
    assert as_numpy(np.array([[1, 2**63]], dtype=object)).tolist() == [[1, 2**63]]
    assert as_numpy([2**63, 2**53, -1, 0.5]).tolist() == [2.0**63, 2.0**53, -1.0, 0.5]
    assert as_numpy([float("nan"), float("inf"), 1]).shape == (3,)
    assert as_numpy([True, 2]).tolist() == [1, 2]
    assert as_numpy([[], []]).shape == (2, 0)


MIXED = {"n": [2**53 + 1, -(2**53)], "x": [0.0, 0.5]}
SMALL = {"n": [1, 2], "x": [0.0, 0.5]}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table, pyarrow.RecordBatch.from_pydict])
def test_columns_of_a_frame_have_the_dtype_that_holds_them_all_or_are_named(frame: Callable[[Any], object]) -> None:
    assert as_numpy(frame(SMALL)).tolist() == [[1.0, 0.0], [2.0, 0.5]]
    with pytest.raises(TypeError, match="column 'n' of int64 and column 'x' of float64"):
        as_numpy(frame(MIXED))
    parts = parts_of(frame(MIXED))
    assert [part.name for part in parts] == ["column 'n'", "column 'x'"]
    assert [part.array.dtype for part in parts] == [np.int64, np.float64]
    assert parts[0].array.ravel().tolist() == MIXED["n"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pandas.DataFrame({"n": pandas.Series([2**53 + 1, None], dtype="Int64")}), "column 'n': int64 has nulls"),
        (pandas.DataFrame({"s": ["a"]}), "column 's': elements of type str"),
        (pandas.DataFrame({"c": pandas.Categorical([1, None])}), "column 'c': categories are not numbers"),
        (pandas.DataFrame({"t": pandas.to_datetime(["2026-01-01"])}), "column 't': .*datetime64"),
        (pandas.DataFrame(), "has no columns"),
        (polars.DataFrame({"n": [2**53 + 1, None]}), "column 'n': int64 has nulls"),
        (polars.DataFrame({"d": [Decimal("0.1")]}), "column 'd': no dtype holds a Decimal"),
        (polars.DataFrame({"l": [[1, 2], [3]]}), "column 'l': List"),
        (pyarrow.table({"n": pyarrow.chunked_array([[2**53 + 1], [None]], pyarrow.int64())}), "column 'n': int64 has"),
        (pyarrow.table({"d": pyarrow.array([1, 2]).dictionary_encode()}), "column 'd': dictionary"),
    ],
)
def test_a_column_that_cannot_be_reduced_is_named(frame: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_numpy(frame)


def test_what_numpy_has_no_dtype_for_is_read_as_python_reads_it() -> None:
    assert as_numpy(polars.Series([2**53 + 1, -5], dtype=polars.Int128)).tolist() == [2**53 + 1, -5]
    assert as_numpy(polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int64, 2))).tolist() == [[1, 2], [3, 4]]
    assert as_numpy(pyarrow.array([True, False])).tolist() == [True, False]
    assert np.isnan(as_numpy(pyarrow.array([1.5, None]))).tolist() == [False, True]
    assert as_numpy(pandas.Series([1, 2], index=["columns", "iloc"])).tolist() == [1, 2]  # labels, not attributes


def _labelled() -> list[tuple[Any, Any, str | None]]:
    """Two objects of one library, and what they are refused for."""
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    series = pandas.Series([1.0, 2.0], index=["a", "b"])
    turned, table = series[::-1], xarray.DataArray(np.ones((2, 2)), dims=("x", "y"))
    return [
        (series, series, None),
        (series, [1.0, 2.0], None),
        (series, turned, "index"),
        (series, pandas.Series([1.0, 2.0]), "index"),
        (series.to_frame("a"), series.to_frame("b"), "columns"),
        (series.to_frame("a"), turned.to_frame("a"), "index"),
        (xarray.DataArray(series), xarray.DataArray(series), None),
        (xarray.DataArray(series), xarray.DataArray(turned), "indexes"),
        (table, table, None),
        (table, table.transpose("y", "x"), "dims"),
    ]


@pytest.mark.parametrize("case", range(10))
def test_labels_that_differ_are_refused_in_a_product(case: int) -> None:
    data, other, refused = _labelled()[case]
    if refused is None:
        assert [array.size for array in alike(data, other)] == 2 * [np.asarray(data).size]
        return
    with pytest.raises(TypeError, match=rf"the {refused} of the two differ"):
        alike(data, other)


def test_the_two_arrays_of_a_product_are_alike() -> None:
    left, two = alike([0.5, 1.5], [1, 2])
    assert [left.dtype.name, two.dtype.name] == ["float64", "float64"]
    with pytest.raises(TypeError, match="float64 does not hold 9007199254740993"):
        alike([2**53 + 1], [0.5])


WITH_NULL = [2**53 + 1, None]


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(WITH_NULL, dtype="Int64"),
        pandas.Series(WITH_NULL, dtype="UInt64"),
        pandas.Series(WITH_NULL, dtype="int64[pyarrow]"),
        polars.Series(WITH_NULL),
        pyarrow.array(WITH_NULL),
        pyarrow.chunked_array([WITH_NULL[:1], WITH_NULL[1:]]),
    ],
)
def test_integers_beside_a_null_are_not_rounded_in_silence(column: Any) -> None:
    with pytest.raises(TypeError, match=r"int64.* has nulls"):
        as_numpy(column)
    drop = next(name for name in ("dropna", "drop_nulls", "drop_null") if hasattr(column, name))
    kept = getattr(column, drop)()
    assert as_numpy(kept).tolist() == [2**53 + 1]


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match="a dict is not an array"):
        as_numpy({"x": 1})


def test_the_name_of_a_file_is_no_array_and_the_error_says_how_files_are_named() -> None:
    with pytest.raises(TypeError, match=r"the text 'runs/a\.npy' is not an array: Path\('runs/a\.npy'\) names a file"):
        as_numpy("runs/a.npy")


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series([2**53 + 1, None, 5], dtype="Int64"),
        pandas.Series([2**53 + 1, None, 5], dtype="int64[pyarrow]"),
        polars.Series([2**53 + 1, None, 5]),
        pyarrow.array([2**53 + 1, None, 5]),
        pyarrow.chunked_array([[2**53 + 1], [None, 5]]),
    ],
)
def test_nulls_of_a_column_are_left_out_and_counted_where_no_place_matters(column: Any) -> None:
    (part,) = parts_of(column, nulls="omit")
    assert part.array.tolist() == [2**53 + 1, 5]
    assert part.nulls == 1
    assert as_kept(column).tolist() == [2**53 + 1, 5]
    with pytest.raises(TypeError, match="has nulls"):
        as_kept(column, null_policy="raise")
    with pytest.raises(TypeError, match="null_policy is 'omit', 'raise' or 'propagate', and not 'drop'"):
        as_kept(column, null_policy="drop")


@pytest.mark.parametrize(
    "column",
    [
        polars.Series([1.5, None, float("nan")]),
        pyarrow.array([1.5, None, float("nan")]),
        pandas.Series(pyarrow.array([1.5, None, float("nan")]), dtype=pandas.ArrowDtype(pyarrow.float64())),
    ],
)
def test_null_and_nan_stay_apart(column: Any) -> None:
    with pytest.raises(TypeError, match=r"double|float64"):
        as_kept(column, null_policy="raise")
    (part,) = parts_of(column, nulls="omit")
    assert part.array.size == 2
    assert np.isnan(part.array).tolist() == [False, True]
    assert part.nulls == 1


def test_columns_of_a_frame_with_nulls_are_one_array_after_another() -> None:
    (part,) = parts_of(polars.DataFrame({"a": [1, None, 3], "b": [4, 5, 6]}), nulls="omit")
    assert part.array.tolist() == [1, 3, 4, 5, 6]
    assert part.nulls == 1
    mixed = parts_of(pyarrow.table({"n": [2**53 + 1, None], "x": [0.5, None]}), nulls="omit")
    assert [(each.name, each.array.tolist(), each.nulls) for each in mixed] == [
        ("column 'n'", [2**53 + 1], 1),
        ("column 'x'", [0.5], 1),
    ]


def test_columns_of_nothing_but_nulls_have_no_elements() -> None:
    (part,) = parts_of(polars.Series([None, None], dtype=polars.Int64), nulls="omit")
    assert (part.array.size, part.array.dtype.name, part.nulls) == (0, "int64", 2)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, 2]]),
        np.array([[1.5], [2.5]], np.float32),
        np.array([[1, 2], [3, 4]]).T,
        np.array([[True, False]]),
        np.array([[1, 2], [3, 4]], object),
        np.array([[1 + 0.5, 2]], ">f8"),
        np.zeros((0, 3)),
        np.arange(12).reshape(3, 4)[::2, ::-1],
    ],
)
def test_a_matrix_is_a_plain_array(array: NDArray[Any]) -> None:
    """The rows of `np.matrix` are matrices, too, so that it would be sent with one level of lists more."""
    matrix = array.view(np.matrix)
    for data, wanted in ((matrix, array), ([matrix, matrix], np.stack([array, array]))):
        made = as_numpy(data)
        assert type(made) is np.ndarray
        assert made.tolist() == wanted.tolist()
        assert np.asarray(made.reshape(-1).tolist()).ndim == 1
