"""The compiled sums of products: the states of the portable definition, on every path."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.patterns import in_window
from warpfold.kernels.aggregates import integer_loops
from warpfold.kernels.cpu import windows
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.ops import Terms

LONG = windows.TILE32 + 77
F32, F64 = DTYPES["float32"], DTYPES["float64"]


def added(x: NDArray[Any], y: NDArray[Any]) -> ExactState:
    accumulated = accumulator([dtype_of(x.dtype), dtype_of(y.dtype)], Terms.PRODUCTS)
    accumulated.add(x, y)
    return accumulated.state()


def portable(x: NDArray[Any], y: NDArray[Any]) -> ExactState:
    return ExactState.empty(Terms.PRODUCTS).add_products(x, y)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (1, 100), (26, 26), (27, 77), (127, 3), (200, 253), (253, 253)])
def test_every_pair_of_windows_of_float32_adds_exactly(left: int, right: int) -> None:
    x, y = in_window(F32, left, 128, LONG, 1), in_window(F32, right, 128 - (253 - right) // 2, LONG, 2)
    assert added(x, y) == portable(x, y)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 0), (1, 0)),
        ((60, 30), (60, -30)),
        ((245, 200), (245, 100)),
        ((247, 0), (247, 0)),
        ((248, 0), (248, 0)),  # around the width from which significands are multiplied
        ((20, 500), (20, 500)),
        ((20, 501), (20, 0)),  # around the largest that is split
        ((2, -475), (2, -475)),
        ((2, -476), (2, 0)),  # around the smallest that is split
        ((2, 1024), (2, -1020)),
        ((2040, 1023), (2040, 1023)),
    ],
)
def test_every_pair_of_windows_of_float64_adds_exactly(left: tuple[int, int], right: tuple[int, int]) -> None:
    x, y = in_window(F64, *left, LONG, 3), in_window(F64, *right, LONG, 4)
    assert added(x, y) == portable(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_subnormals_are_kept(dtype: Any) -> None:
    tiny = np.array([np.finfo(dtype).smallest_subnormal] * 3, dtype=dtype)
    unit = 2 * (149 if dtype is np.float32 else 1074)
    assert added(tiny, tiny).units == 3 << (2148 - unit)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("x", "y", "flags"),
    [
        ([0.0, -0.0, 0.0], [-1.0, 2.0, -0.0], Flags.NONE),
        ([0.0, -0.0, 1.0], [-1.0, 2.0, 1.0], Flags.NOT_NEGATIVE_ZERO),
        ([0.0, -0.0, 0.0], [-1.0, 2.0, 0.0], Flags.NOT_NEGATIVE_ZERO),
        ([np.inf, -0.0], [1.0, 1.0], Flags.NOT_NEGATIVE_ZERO | Flags.POS_INF),
        ([np.inf, -np.inf], [-1.0, -np.inf], Flags.NOT_NEGATIVE_ZERO | Flags.POS_INF | Flags.NEG_INF),
        ([np.inf, 1.0], [-0.0, 1.0], Flags.NOT_NEGATIVE_ZERO | Flags.NAN),
        ([0.0, 1.0], [-np.inf, 1.0], Flags.NOT_NEGATIVE_ZERO | Flags.NAN),
        ([np.nan, -0.0], [0.0, 1.0], Flags.NOT_NEGATIVE_ZERO | Flags.NAN),
    ],
)
def test_flags_are_those_of_the_products(dtype: Any, x: list[float], y: list[float], flags: Flags) -> None:
    first, second = np.array(x, dtype=dtype), np.array(y, dtype=dtype)
    assert added(first, second).flags == flags
    assert added(first, second) == portable(first, second)


def test_a_product_that_underflows_is_not_a_zero() -> None:
    assert added(np.array([-1e-200]), np.array([1e-200])).flags == Flags.NOT_NEGATIVE_ZERO


@pytest.mark.parametrize("left", ["int8", "int64", "uint64", "bool"])
@pytest.mark.parametrize("right", ["int64", "uint64", "uint8"])
def test_integers_at_both_ends_of_their_range_multiply_exactly(left: str, right: str) -> None:
    chance = np.random.default_rng(5)
    x, y = (
        chance.choice(np.array([DTYPES[name].bounds[0], 1, DTYPES[name].bounds[1]], dtype=DTYPES[name].numpy), 10_007)
        for name in (left, right)
    )
    wanted = sum(a * b for a, b in zip(x.tolist(), y.tolist(), strict=True))
    assert added(x, y).units == wanted << 2148
    assert added(x, y) == portable(x, y)


def test_arrays_longer_than_a_call_may_take_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_ELEMENTS", 1000)
    monkeypatch.setattr(integer_loops, "MAX_ELEMENTS", 1000)
    wanted = sum(i * i for i in range(LONG)) << 2148
    for dtype in (np.float32, np.float64, np.int32):
        assert added(np.arange(LONG, dtype=dtype), np.arange(LONG, dtype=dtype)).units == wanted
