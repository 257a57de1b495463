"""The NumPy definition of an exact state, against fractions."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernels.patterns import array_of_bits, patterns, reference_bytes
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, portable
from warpfold.kernels.ops import Terms

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


def test_a_state_of_an_array_is_that_of_nothing_with_it_added() -> None:
    x, y = np.array([1e8, 1.0, -1e8], np.float32), np.array([2.0, 3.0, 5.0], np.float16)
    assert ExactState.of(x) == ExactState.empty(Terms.VALUES).add(x)
    assert ExactState.of(x, magnitudes=True) == ExactState.empty(Terms.VALUES).add(x, magnitudes=True)
    assert ExactState.of(x, Terms.PRODUCTS) == ExactState.empty(Terms.PRODUCTS).add(x)
    assert ExactState.of_products(x, y) == ExactState.empty(Terms.PRODUCTS).add_products(x, y)
    assert ExactState.of(np.array([], np.float64)) == ExactState.empty(Terms.VALUES)


_WITH_NUMPY_ALONE = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "cupy", "scipy", "cuda", "fastapi", "sqlalchemy", "redis", "pyarrow"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy as np
from warpfold.kernels.exact import ExactState, variance
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import Terms

x = np.array([1e8, 1e8 + 1])
print(ExactState.of(x).to_bytes().hex())
print(variance(ExactState.of(x), ExactState.of(x, Terms.PRODUCTS), 1, DTYPES["float64"]))
"""


def test_a_state_needs_numpy_alone() -> None:
    run = subprocess.run([sys.executable, "-c", _WITH_NUMPY_ALONE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    state, spread = run.stdout.split()
    assert bytes.fromhex(state) == ExactState.of(np.array([1e8, 1e8 + 1])).to_bytes()
    assert float(spread) == 0.5
