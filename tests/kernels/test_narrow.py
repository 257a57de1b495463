"""float64 to the dtype of the elements, by one rounding."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels import reference
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.narrow import narrowed, narrowed_number

FLOATS = [row for row in DTYPES.values() if row.is_float]


def nearest(value: float, dtype: DType) -> float:
    """By the reference; what is not finite stays, and a zero keeps its sign."""
    return math.copysign(reference.nearest(abs(Fraction(value)), dtype), value) if math.isfinite(value) else value


def near_ties(dtype: DType) -> st.SearchStrategy[float]:
    """Halfway between two numbers of the dtype, or next to there: where a second rounding shows."""
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
    found = narrowed(np.array(values), dtype).astype(np.float64).tolist()
    assert [value.hex() for value in found] == [nearest(value, dtype).hex() for value in values]


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
