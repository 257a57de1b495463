"""The NumPy definition of an exact state, against fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.dtypes import DTYPES, DType
from kernels.exact import ExactState, portable
from kernels.ops import Terms
from tests.kernels.patterns import array_of_bits, patterns, reference_bytes

DRAWN = st.sampled_from(list(DTYPES.values())).flatmap(lambda dtype: st.tuples(st.just(dtype), patterns(dtype)))


@given(DRAWN)
def test_the_values_of_every_dtype_add_exactly(drawn: tuple[DType, list[int]]) -> None:
    dtype, bits = drawn
    state = ExactState.empty(Terms.VALUES).add(array_of_bits(bits, dtype))
    assert state.to_bytes() == reference_bytes(bits, dtype, Terms.VALUES)


@given(DRAWN)
def test_the_squares_of_every_dtype_add_exactly(drawn: tuple[DType, list[int]]) -> None:
    dtype, bits = drawn
    state = ExactState.empty(Terms.PRODUCTS).add(array_of_bits(bits, dtype))
    assert state.to_bytes() == reference_bytes(bits, dtype, Terms.PRODUCTS)


@given(DRAWN)
def test_the_magnitudes_of_every_dtype_add_exactly(drawn: tuple[DType, list[int]]) -> None:
    dtype, bits = drawn
    state = ExactState.empty(Terms.VALUES).add(array_of_bits(bits, dtype), magnitudes=True)
    wanted = reference_bytes(bits, dtype, Terms.VALUES, magnitudes=True)
    assert state.to_bytes() == wanted


def test_arrays_longer_than_a_chunk_add_exactly() -> None:
    size = 2 * portable.CHUNK + 17
    largest = np.full(size, np.iinfo(np.int64).min, dtype=np.int64)
    assert ExactState.empty(Terms.VALUES).add(largest).units == size * -(2**63) << 1074
    assert ExactState.empty(Terms.PRODUCTS).add(largest).units == size * 2**126 << 2148
    top = np.full(size, np.finfo(np.float64).max)
    assert ExactState.empty(Terms.VALUES).add(top).units == size * int(np.finfo(np.float64).max) << 1074
    assert ExactState.empty(Terms.PRODUCTS).add(-top).units == size * int(np.finfo(np.float64).max) ** 2 << 2148


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_shape_and_layout_add(order: str) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4, order="F" if order == "F" else "C")
    assert ExactState.empty(Terms.VALUES).add(array).units == 276 << 1074
    assert ExactState.empty(Terms.VALUES).add(array[:, ::2, 1]).units == int(array[:, ::2, 1].sum()) << 1074


def test_arrays_of_foreign_byte_order_add() -> None:
    array = np.arange(10, dtype=">f4")
    assert ExactState.empty(Terms.VALUES).add(array).units == 45 << 1074


def test_a_signalling_nan_raises_no_warning() -> None:
    for name in ("float16", "bfloat16", "float32", "float64"):
        dtype = DTYPES[name]
        infinity = (2 * dtype.max_exponent - 1) << (dtype.precision - 1)
        array = array_of_bits([infinity | 1], dtype)
        assert ExactState.empty(Terms.PRODUCTS).add(array).flags
        assert ExactState.empty(Terms.VALUES).add(array).flags
