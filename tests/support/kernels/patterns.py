"""Elements as patterns of bits: what hypothesis draws, and how the reference and NumPy read the same ones."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import Terms, reference

FLOATS = [row for row in DTYPES.values() if row.is_float]
OTHERS = [row for row in DTYPES.values() if not row.is_float]


def array_of_bits(bits: Sequence[int], dtype: DType) -> NDArray[Any]:
    """The patterns as an array of `dtype`."""
    return np.array(bits, dtype=f"uint{8 * dtype.itemsize}").view(dtype.numpy)


def patterns(dtype: DType, *, finite: bool = False, max_size: int = 60) -> st.SearchStrategy[list[int]]:
    """Lists of patterns: evenly over the exponents (subnormals, and unless `finite` specials, among them), with the
    edges of the format more often than chance."""
    if not dtype.is_float:
        low, high = dtype.bounds
        return st.lists(st.integers(low, high).map(lambda value: value % (1 << 8 * dtype.itemsize)), max_size=max_size)
    width, fraction = 8 * dtype.itemsize, dtype.precision - 1
    top = 2 * dtype.max_exponent - 1
    sign = st.sampled_from((0, 1 << (width - 1)))
    drawn = st.builds(
        lambda s, exponent, rest: s | exponent << fraction | rest,
        sign,
        st.integers(0, top - 1),
        st.integers(0, (1 << fraction) - 1),
    )
    edges = st.builds(
        int.__or__, sign, st.sampled_from((0, 1, (1 << fraction) - 1, 1 << fraction, (top << fraction) - 1))
    )
    nan_or_infinity = st.builds(
        int.__or__, sign, st.sampled_from((top << fraction, top << fraction | 1 << fraction - 1))
    )
    # Data in a narrow window of exponents, where the fast paths are.
    near = st.builds(
        lambda s, exponent, rest: s | exponent << fraction | rest,
        sign,
        st.integers(dtype.max_exponent - 5, dtype.max_exponent),
        st.integers(0, (1 << fraction) - 1),
    )
    mixed = st.lists(drawn | edges if finite else drawn | edges | nan_or_infinity, max_size=max_size)
    return mixed | st.lists(near, max_size=max_size) | st.lists(drawn | edges, max_size=max_size)


def any_bits(dtype: DType, count: int, chance: random.Random) -> list[int]:
    """Patterns of elements: any, and the edges of the dtype, equal ones among them."""
    width = 8 * dtype.itemsize
    if dtype.name == "bool":
        return [chance.randrange(2) for _ in range(count)]
    edges = [0, 1, 1 << (width - 1), (1 << width) - 1, (1 << (width - 1)) - 1]
    if dtype.is_float:
        infinity = (2 * dtype.max_exponent - 1) << (dtype.precision - 1)
        signs = (0, 1 << (width - 1))
        edges = [sign | size for sign in signs for size in (0, 0, 1, infinity - 1, infinity, infinity + 1)]
    return [chance.choice(edges) if chance.random() < 0.6 else chance.randrange(1 << width) for _ in range(count)]


def reference_bytes(bits: Sequence[int], dtype: DType, terms: Terms, *, magnitudes: bool = False) -> bytes:
    """The canonical state of the patterns by the reference."""
    elements = [reference.element(pattern, dtype) for pattern in bits]
    if terms is Terms.PRODUCTS:
        elements = [reference.product(x, x) for x in elements]
    elif magnitudes:
        elements = [reference.magnitude(x) for x in elements]
    return reference.state_bytes(reference.total(elements, dtype), terms)


def in_window(dtype: DType, width: int, top: int, size: int, seed: int) -> NDArray[Any]:
    """Random signs and significands, exponents in the `width` binades below 2**top, both ends present."""
    chance = np.random.default_rng(seed)
    exponents = chance.integers(top - width, top, size)
    exponents[:2] = top - width, top - 1
    fractions = 1 << (dtype.precision - 1)
    significands = fractions + chance.integers(0, fractions, size)
    significands[:4] = 2 * fractions - 1
    values = np.ldexp(significands.astype(np.float64), exponents + 1 - dtype.precision)
    signed: NDArray[Any] = (values * chance.choice((-1.0, 1.0), size)).astype(dtype.numpy)
    return signed
