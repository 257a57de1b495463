"""Arrays from numbers as people write them."""

import pytest

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.sources.values import Written, array_of, dtype_for


@pytest.mark.parametrize(("dtype", "precision"), [("float16", 11), ("bfloat16", 8), ("float32", 24)])
def test_a_number_is_rounded_to_the_dtype_once(dtype: str, precision: int) -> None:
    # Just above a tie. By way of float32, as ml_dtypes goes, a bfloat16 becomes the tie, and then even.
    tie = 1.0 + 2.0**-precision
    array = array_of([tie, tie + 2.0**-40, (tie + 2.0**-40).hex()], DTYPES[dtype])
    assert array.astype(float).tolist() == [1.0, 1.0 + 2.0 ** (1 - precision), 1.0 + 2.0 ** (1 - precision)]


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (1e308, "float32", "1e+308 is beyond the range of float32"),
        (300, "int8", "300 is beyond the range of int8 (-128 … 127)"),
        (1 << 9999, "int64", "an integer of 10000 bits is beyond the range of int64"),
    ],
)
def test_what_is_beyond_the_range_is_told_as_it_was_written_unless_it_is_long(
    value: float, dtype: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        array_of([1, value], DTYPES[dtype])
    assert str(caught.value).startswith(message)
    assert caught.value.field == "values.1"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, -1], "int64"),
        ([True, 2], "int64"),
        (["0x10", "7"], "int64"),
        ([2**63], "uint64"),
        ([True, False], "bool"),
        ([1, 2.0], "float64"),
        ([1, "nan"], "float64"),
        (["1e3"], "float64"),
        ([], "float64"),
    ],
)
def test_numbers_without_a_dtype_have_the_one_that_they_are_written_in(values: list[Written], dtype: str) -> None:
    assert dtype_for(values).name == dtype


@pytest.mark.parametrize(("values", "at"), [([1, 2**64], 1), ([2**63, -1], 0), ([0, -(2**63) - 1], 1), (["q"], 0)])
def test_integers_that_no_dtype_holds_are_refused_where_they_stand(values: list[Written], at: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        dtype_for(values)
    assert caught.value.field == f"values.{at}"


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (2**53 + 1, "float64", "float64 does not hold 9007199254740993; write it as a float"),
        (2**24 + 1, "float32", "float32 does not hold 16777217"),
        ("16777217", "float32", "float32 does not hold 16777217"),
        (257, "bfloat16", "bfloat16 does not hold 257"),
        (70000, "float16", "70000 is beyond the range of float16"),
        (10**400, "float64", "an integer of 1329 bits is beyond the range of float64"),
        ("1e400", "float64", "'1e400' is beyond the range of float64"),
        ("0x1p5000", "float32", "'0x1p5000' is beyond the range of float64"),
        (1e18, "int64", "1e+18 was rounded as a float"),
        ("1.0", "int64", "'1.0' is not an integer"),
    ],
)
def test_an_integer_is_never_rounded_and_nothing_finite_becomes_infinite(
    value: Written, dtype: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        array_of([1, value], DTYPES[dtype])
    assert str(caught.value).startswith(message)
    assert caught.value.field == "values.1"


def test_a_float_is_rounded_and_an_integer_that_a_float_holds_is_one() -> None:
    array = array_of([2.0**24 + 1, 2**24 + 2, 2**100, True], DTYPES["float32"])
    assert array.tolist() == [2.0**24, 2**24 + 2, 2**100, 1]
    assert array_of(["-Infinity", "010", " 0x1.8p1 "], DTYPES["float64"]).tolist() == [float("-inf"), 10.0, 3.0]
