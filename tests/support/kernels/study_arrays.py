"""Arrays of finite elements for hypothesis, wild and tame."""

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType

FLOATS = [DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64")]


def row(array: NDArray[Any]) -> DType:
    """The dtype of `array`."""
    return next(dtype for dtype in FLOATS if dtype.numpy == array.dtype)


def fractions(array: NDArray[Any]) -> list[Fraction]:
    return [Fraction(float(x)) for x in array]


def finite(dtype: DType, patterns: list[int]) -> NDArray[Any]:
    """The finite elements with these patterns, or a 1 where there are none."""
    width = 8 * dtype.itemsize
    elements = np.array([pattern % (1 << width) for pattern in patterns], dtype=f"uint{width}").view(dtype.numpy)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        kept = elements[np.isfinite(elements.astype(np.float64))]
    return kept if kept.size else np.ones(1, dtype=dtype.numpy)


def scaled(dtype: DType, numbers: list[tuple[int, int]]) -> NDArray[Any]:
    """m · 2**e, rounded to the dtype."""
    return np.array([m * 2.0**e for m, e in numbers]).astype(dtype.numpy)


def wild(dtype: DType) -> "st.SearchStrategy[NDArray[Any]]":
    """Every finite number of the dtype may occur."""
    return st.builds(finite, st.just(dtype), st.lists(st.integers(0, (1 << 8 * dtype.itemsize) - 1), max_size=40))


def tame(dtype: DType) -> "st.SearchStrategy[NDArray[Any]]":
    """Numbers of similar size, which cancel, and sums that stay finite."""
    number = st.tuples(st.integers(-(1 << dtype.precision), 1 << dtype.precision), st.integers(-8, 0))
    return st.builds(scaled, st.just(dtype), st.lists(number, min_size=1, max_size=60))


arrays = st.one_of(*(kind(dtype) for dtype in FLOATS for kind in (wild, tame)))
