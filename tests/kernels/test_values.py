"""Arrays from numbers as people write them."""

import pytest

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.values import array_of


@pytest.mark.parametrize(("dtype", "precision"), [("float16", 11), ("bfloat16", 8), ("float32", 24)])
def test_a_number_is_rounded_to_the_dtype_once(dtype: str, precision: int) -> None:
    # Just above a tie. By way of float32, as ml_dtypes goes, a bfloat16 becomes the tie, and then even.
    tie = 1.0 + 2.0**-precision
    found = array_of([tie, tie + 2.0**-40, (tie + 2.0**-40).hex()], DTYPES[dtype])
    assert found.astype(float).tolist() == [1.0, 1.0 + 2.0 ** (1 - precision), 1.0 + 2.0 ** (1 - precision)]


@pytest.mark.parametrize(
    ("value", "dtype", "told"),
    [
        (1e308, "float32", "1e+308 is beyond the range of float32"),
        (300, "int8", "300 is beyond the range of int8 (-128 … 127)"),
        (1 << 9999, "int64", "an integer of 10000 bits is beyond the range of int64"),
    ],
)
def test_what_is_beyond_the_range_is_told_as_it_was_written_unless_it_is_long(
    value: float, dtype: str, told: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        array_of([1, value], DTYPES[dtype])
    assert str(caught.value).startswith(told)
    assert caught.value.field == "values.1"
