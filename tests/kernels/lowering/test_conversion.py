"""Arrays of one dtype as another, held to Python's own numbers, element by element."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.conversion import common_dtype, converted, narrowed, narrowed_number
from warpfold.kernels.ops import reference
from warpfold.kernels.sources.values import array_of

FLOATS = [row for row in DTYPES.values() if row.is_float]
WHOLE = sorted({sign * m * (2**k + d) for k in range(66) for d in (-1, 0, 1) for sign in (1, -1) for m in (1, 3)})
REAL = [0.0, -0.0, 0.5, 1.0, 1.5, 127.0, -129.0, 257.0, 65504.0, 65520.0, 3.4e38, 1e308, 2.0**63, 2.0**64, -(2.0**63)]


def elements(dtype: DType) -> list[float]:
    """Numbers that `dtype` holds, whose neighbours other dtypes hold."""
    if not dtype.is_float:
        low, high = dtype.bounds
        return [number for number in WHOLE if low <= number <= high]
    with np.errstate(over="ignore"):
        return [float(value) for value in np.array([*REAL, np.nan, np.inf]).astype(dtype.numpy)]


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
                bits: object = converted(array, dtype).tobytes()
            except InvalidInput:
                bits = None
            assert bits == expected(number, dtype), (own.name, dtype.name, number)


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
    dtype = common_dtype([np.ones((2, 2), DTYPES[name].numpy) for name in names])
    assert dtype is DTYPES[common]


def test_integers_of_64_bits_have_a_dtype_in_common_where_it_holds_each_of_them() -> None:
    large, negative, odd = np.array([2**63], np.uint64), np.array([-1]), np.array([0, 2**53 + 1]).repeat(200_000)
    assert common_dtype([large, negative]) is None
    assert common_dtype([large, -negative]) is DTYPES["uint64"]
    assert common_dtype([odd, np.array([0.5])]) is None
    assert common_dtype([odd - 1 + (odd == 0), np.array([0.5])]) is DTYPES["float64"]


def nearest(value: float, dtype: DType) -> float:
    """`value` rounded by the reference. Infinities and NaN stay, and a zero keeps its sign."""
    return math.copysign(reference.nearest(abs(Fraction(value)), dtype), value) if math.isfinite(value) else value


def near_ties(dtype: DType) -> st.SearchStrategy[float]:
    """Numbers halfway between two numbers of the dtype, or next to halfway, where a second rounding would show."""
    steps = st.integers(-(1 << dtype.precision + 1), 1 << dtype.precision + 1)
    units = st.integers(dtype.min_exponent - 3, dtype.max_exponent - dtype.precision - 1)
    pairs = st.tuples(steps.map(float), units)
    # The largest step in the largest unit is beyond the numbers of Python.
    ties = pairs.filter(lambda pair: math.frexp(pair[0])[1] + pair[1] <= 1024).map(lambda pair: math.ldexp(*pair))
    return st.builds(math.nextafter, ties, st.sampled_from([-math.inf, math.inf])) | ties


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda row: row.name)
@given(data=st.data())
def test_every_number_goes_to_the_nearest_ties_to_even(dtype: DType, data: st.DataObject) -> None:
    patterns = st.integers(0, (1 << 64) - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
    values = data.draw(st.lists(st.floats(width=64) | patterns | near_ties(dtype), min_size=1, max_size=20))
    rounded = narrowed(np.array(values), dtype).astype(np.float64).tolist()
    assert [value.hex() for value in rounded] == [nearest(value, dtype).hex() for value in values]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda row: row.name)
def test_what_is_beyond_the_range_is_infinite_and_a_zero_keeps_its_sign(dtype: DType) -> None:
    assert narrowed_number(-math.inf, dtype) == -math.inf
    assert math.isnan(narrowed_number(math.nan, dtype))
    assert math.copysign(1.0, narrowed_number(-0.0, dtype)) == -1.0
    if dtype.max_exponent < 1024:
        halfway = math.ldexp(2.0 - 2.0**-dtype.precision, dtype.max_exponent - 1)
        assert narrowed_number(halfway, dtype) == math.inf
        assert math.isfinite(narrowed_number(math.nextafter(halfway, 0.0), dtype))
        assert narrowed_number(-1e308, dtype) == -math.inf
