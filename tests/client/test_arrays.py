"""What other libraries' arrays become. PyTorch and CuPy themselves are met in tests/gpu/test_client_arrays.py."""

from typing import Any

import ml_dtypes
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.typing import NDArray

from warpfold.client.arrays import as_numpy


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


def test_an_array_is_not_copied() -> None:
    assert np.shares_memory(as_numpy(NUMBERS), NUMBERS)


def test_a_number_is_an_array_of_one() -> None:
    assert as_numpy(3).shape == (1,)
    assert as_numpy(np.float64(0.5)).tolist() == [0.5]


def test_a_dtype_converts_each_element_once() -> None:
    assert as_numpy([0.1, 1e40], "bfloat16").dtype == ml_dtypes.bfloat16
    assert as_numpy([1, 2], "float16").dtype == np.float16
    above_a_tie = 1.0 + 2.0**-8 + 2.0**-40  # which ml_dtypes' own conversion, by way of float32, takes for the tie
    assert as_numpy([[above_a_tie]], "bfloat16").astype(float).tolist() == [[1.0 + 2.0**-7]]


@pytest.mark.parametrize("data", [["a"], [1j], [{"x": 1}], np.array(["2026-01-01"], dtype="M8[D]")])
def test_what_is_no_number_is_refused(data: object) -> None:
    with pytest.raises(TypeError, match="cannot be reduced"):
        as_numpy(data)


def test_a_mask_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match=r"masked array .* `\.compressed\(\)`"):
        as_numpy(np.ma.array([1.0, 2.0], mask=[False, True]))


@pytest.mark.parametrize("data", [[2**63 + 1, -1], [[2**63], [-(2**63)], [2**63 + 1]], [2**53 + 1, 0.5]])
def test_integers_that_no_dtype_holds_together_are_not_rounded_in_silence(data: list[object]) -> None:
    with pytest.raises(TypeError, match=r"\d+ is no float64"):
        as_numpy(data)
    assert as_numpy(data, "float64").dtype == np.float64
    assert as_numpy([2**63, 2**53, -1, 0.5]).tolist() == [2.0**63, 2.0**53, -1.0, 0.5]
    assert as_numpy([float("nan"), float("inf"), 1]).shape == (3,)


WITH_NULL = [2**53 + 1, None]


@pytest.mark.parametrize(
    "column",
    [pandas.Series(WITH_NULL, dtype="Int64"), pandas.Series(WITH_NULL, dtype="UInt64"), polars.Series(WITH_NULL)],
)
def test_integers_beside_a_null_are_not_rounded_in_silence(column: Any) -> None:
    with pytest.raises(TypeError, match="int64 with nulls is reduced without them"):
        as_numpy(column)
    kept = column.dropna() if isinstance(column, pandas.Series) else column.drop_nulls()
    assert as_numpy(kept).tolist() == [2**53 + 1]


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError, match="a dict is no array"):
        as_numpy({"x": 1})
