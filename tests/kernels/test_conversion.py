"""Arrays of one dtype as another: held to Python's own numbers, element by element."""

import numpy as np
import pytest

from warpfold.kernels.conversion import common_dtype, converted
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.values import array_of

WHOLE = sorted({sign * m * (2**k + d) for k in range(66) for d in (-1, 0, 1) for sign in (1, -1) for m in (1, 3)})
REAL = [0.0, -0.0, 0.5, 1.0, 1.5, 127.0, -129.0, 257.0, 65504.0, 65520.0, 3.4e38, 1e308, 2.0**63, 2.0**64, -(2.0**63)]


def elements(dtype: DType) -> list[float]:
    """Numbers that `dtype` holds, whose neighbours other dtypes hold."""
    if not dtype.is_float:
        low, high = dtype.bounds
        return [number for number in WHOLE if low <= number <= high]
    with np.errstate(over="ignore"):
        return [float(one) for one in np.array([*REAL, np.nan, np.inf]).astype(dtype.numpy)]


def expected(number: float, dtype: DType) -> object:
    """The bytes of `number` in `dtype`; None where it does not hold it."""
    if not dtype.is_float:
        low, high = dtype.bounds
        whole = np.isfinite(number) and number == int(number) and low <= int(number) <= high
        return np.array([int(number)], dtype.numpy).tobytes() if whole else None
    try:
        return array_of([number if np.isfinite(number) else str(number)], dtype).tobytes()
    except InvalidInput:
        return None


@pytest.mark.parametrize("own", DTYPES.values(), ids=lambda dtype: dtype.name)
def test_an_element_is_converted_exactly_or_as_a_float_rounded_once_or_refused(own: DType) -> None:
    for dtype in DTYPES.values():
        for number in elements(own):
            array = array_of([number if np.isfinite(number) else str(number)], own)
            try:
                found: object = converted(array, dtype).tobytes()
            except InvalidInput:
                found = None
            assert found == expected(number, dtype), (own.name, dtype.name, number)


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (("int8", "uint8"), "int16"),
        (("int64", "uint64"), "int64"),
        (("bool", "int32"), "int32"),
        (("float16", "bfloat16"), "float32"),
        (("float16", "int8"), "float16"),
        (("bfloat16", "uint8"), "bfloat16"),
        (("float32", "int16"), "float32"),
        (("float32", "int32"), "float64"),
        (("float16", "int64", "bool"), "float64"),
    ],
)
def test_several_dtypes_have_the_narrowest_in_common_that_holds_them(names: tuple[str, ...], common: str) -> None:
    found = common_dtype([np.ones((2, 2), DTYPES[name].numpy) for name in names])
    assert found is DTYPES[common]


def test_integers_of_64_bits_have_a_dtype_in_common_where_it_holds_each_of_them() -> None:
    large, negative, odd = np.array([2**63], np.uint64), np.array([-1]), np.array([0, 2**53 + 1]).repeat(200_000)
    assert common_dtype([large, negative]) is None
    assert common_dtype([large, -negative]) is DTYPES["uint64"]
    assert common_dtype([odd, np.array([0.5])]) is None
    assert common_dtype([odd - 1 + (odd == 0), np.array([0.5])]) is DTYPES["float64"]
