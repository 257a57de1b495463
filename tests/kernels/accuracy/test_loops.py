"""Loops against NumPy scalars of the same dtype, addition by addition."""

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from numpy.typing import NDArray

from tests.support.kernels.study_arrays import arrays, row
from warpfold.kernels.accuracy import loops
from warpfold.kernels.accuracy.looped import looped
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.rounding import round_ratio


def same(a: float, b: Any) -> bool:
    return a == float(b) or (np.isnan(a) and np.isnan(float(b)))


def added(t: NDArray[Any]) -> Any:
    return functools.reduce(lambda a, b: a + b, t)


def in_a_tree(t: NDArray[Any]) -> Any:
    while t.size > 1:
        pairs = t[: t.size // 2 * 2]
        t = np.concatenate([pairs[0::2] + pairs[1::2], t[pairs.size :]])
    return t[0]


def rounded(value: float, dtype: DType) -> float:
    """Rounded once: ml_dtypes rounds to bfloat16 by way of float32."""
    if not np.isfinite(value):
        return value
    numerator, denominator = value.as_integer_ratio()
    return round_ratio(numerator, denominator, 0, dtype)


@example(np.array([1.88651e-17, 2.77556e-17, 3.1225e-17, -6.21112e-33]).astype(DTYPES["bfloat16"].numpy))
@given(arrays)
@np.errstate(all="ignore")
def test_sums_are_rounded_to_the_dtype_after_every_addition(t: NDArray[Any]) -> None:
    by_size = np.argsort(np.abs(t.astype(np.float64)), kind="stable")
    descending = np.argsort(-np.abs(t.astype(np.float64)), kind="stable")
    expected = {
        "sequential": added(t),
        "reverse": added(t[::-1]),
        "tree": in_a_tree(t),
        "pairwise": added(t),  # one block
        "sorted_ascending": added(t[by_size]),
        "sorted_descending": added(t[descending]),
        "float64_accumulator": rounded(float(added(t.astype(np.float64))), row(t)),
    }
    for method, value in expected.items():
        assert same(looped(method, "sum", (t,), row(t)), value), method


@given(arrays)
@np.errstate(all="ignore")
def test_products_are_rounded_to_the_dtype_after_every_multiplication(t: NDArray[Any]) -> None:
    if t.dtype == DTYPES["bfloat16"].numpy:
        t = np.clip(np.abs(t), 2.0**-3, 2.0**3).astype(t.dtype)  # the products of 40 stay normal
    assert same(looped("sequential", "prod", (t,), row(t)), functools.reduce(lambda a, b: a * b, t))


@given(arrays)
@np.errstate(all="ignore")
def test_compensated_sums_follow_their_published_steps(t: NDArray[Any]) -> None:
    total, lost = t[0], t[0] - t[0]
    for x in t[1:]:
        y = x - lost
        following = total + y
        lost = (following - total) - y
        total = following
    assert same(looped("kahan", "sum", (t,), row(t)), total)
    total, lost = t[0], t[0] - t[0]
    for x in t[1:]:
        following = total + x
        lost = lost + ((total - following) + x if abs(total) >= abs(x) else (x - following) + total)
        total = following
    assert same(looped("neumaier", "sum", (t,), row(t)), total + lost)


def test_pairwise_adds_blocks_in_order_and_blocks_in_a_tree() -> None:
    t = np.random.default_rng(1).standard_normal(5 * loops.BLOCK + 7).astype(np.float32)
    blocks = np.array([added(t[at : at + loops.BLOCK]) for at in range(0, t.size, loops.BLOCK)])
    assert looped("pairwise", "sum", (t,), DTYPES["float32"]) == float(in_a_tree(blocks))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sort_by_magnitude_is_stable_both_ways(dtype: Any) -> None:
    t = np.random.default_rng(2).integers(-50, 50, 3000).astype(dtype)
    width = 8 * t.itemsize
    magnitude = np.uint64((1 << width - 1) - 1)
    upward = loops.by_magnitude(t.view(f"uint{width}"), magnitude, np.uint64(0)).view(dtype)
    downward = loops.by_magnitude(t.view(f"uint{width}"), magnitude, magnitude).view(dtype)
    assert upward.tobytes() == t[np.argsort(np.abs(t), kind="stable")].tobytes()
    assert downward.tobytes() == t[np.argsort(-np.abs(t), kind="stable")].tobytes()


def test_every_element_of_float16_and_its_neighbours_is_rounded_as_numpy_does() -> None:
    elements = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    ones = elements[np.isfinite(elements)]
    for other in (np.float16(2.0**-24), np.float16(0.1), np.float16(-1.0), np.float16(60000.0)):
        with np.errstate(over="ignore"):
            expected = ones + other
        sums = [looped("sequential", "sum", (np.array([x, other]),), DTYPES["float16"]) for x in ones]
        assert np.array_equal(np.array(sums), expected.astype(np.float64))
