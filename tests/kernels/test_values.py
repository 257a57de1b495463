"""Arrays from numbers as people write them."""

import pytest

from kernels.dtypes import DTYPES
from kernels.values import array_of


@pytest.mark.parametrize(("dtype", "precision"), [("float16", 11), ("bfloat16", 8), ("float32", 24)])
def test_a_number_is_rounded_to_the_dtype_once(dtype: str, precision: int) -> None:
    # Just above a tie. By way of float32, as ml_dtypes goes, a bfloat16 becomes the tie, and then even.
    tie = 1.0 + 2.0**-precision
    found = array_of([tie, tie + 2.0**-40, (tie + 2.0**-40).hex()], DTYPES[dtype])
    assert found.astype(float).tolist() == [1.0, 1.0 + 2.0 ** (1 - precision), 1.0 + 2.0 ** (1 - precision)]
