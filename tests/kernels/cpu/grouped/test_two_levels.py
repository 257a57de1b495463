"""Sums in two levels are those of exact arithmetic, however the array lies in memory and is cut."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.kernels.columns import exact_sums, lying, nearest
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.together import in_levels
from warpfold.kernels.cpu.grouped.two_levels import REACH, TwoLevels
from warpfold.kernels.cpu.windows import two_levels
from warpfold.kernels.dtypes import dtype_of

AXES = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2))


def sums_of(levels: TwoLevels) -> list[Fraction]:
    """The exact sums that two levels hold."""
    unit = Fraction(2) ** levels.unit
    return [(int(u) * 2**51 + int(v)) * unit for u, v in zip(levels.upper, levels.lower, strict=True)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", ["sum", "norm1"])
def test_sums_along_any_axes_are_exact_however_the_array_lies(dtype: str, op: str) -> None:
    array = np.random.default_rng(1).standard_normal((6, 13, 21)).astype(dtype)
    for axes in AXES:
        totals = exact_sums(np.abs(array) if op == "norm1" else array, axes)
        for laid in lying(array):
            levels = TwoLevels.of(laid, axes, magnitudes=op == "norm1")
            assert levels is not None
            assert sums_of(levels) == totals
            first = levels.digits().sums(slice(0, 1)).state(0, array.size // len(totals))
            assert first.units * Fraction(2) ** -1074 == totals[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1, 40_000), (3, 9_001), (5_000, 3), (9_000, 7), (70, 4_500), (2, 3, 4_099)])
def test_long_rows_and_narrow_or_tall_columns_are_exact(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    for axis in range(len(shape)):
        levels = TwoLevels.of(array, (axis,), magnitudes=False)
        assert levels is not None
        expected = exact_sums(array, (axis,))
        assert sums_of(levels) == expected
        assert levels.most >= max(abs(int(upper)) for upper in levels.upper)


def test_blocks_of_float32_whose_plain_sums_would_round_are_exact() -> None:
    rng = np.random.default_rng(3)
    array = np.ldexp(rng.standard_normal((130, 600)), rng.integers(-40, 10, (130, 600))).astype(np.float32)
    for axis in (0, 1):
        levels = TwoLevels.of(array, (axis,), magnitudes=False)
        assert levels is not None
        assert sums_of(levels) == exact_sums(array, (axis,))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("top", [-120, -60, -1, 17, 18, 90])
def test_windows_move_with_the_size_of_the_elements(dtype: str, top: int) -> None:
    array = np.ldexp(np.random.default_rng(4).uniform(0.5, 1.0, (9, 40)), top).astype(dtype)
    for axis in (0, 1):
        levels = TwoLevels.of(array, (axis,), magnitudes=False)
        assert levels is not None
        assert sums_of(levels) == exact_sums(array, (axis,))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_window_holds_what_is_not_finite(dtype: str, bad: float) -> None:
    for shape in ((40, 3000), (3000, 40)):
        for axis in (0, 1):
            array = np.ones(shape, dtype)
            array[-1, -1] = bad
            assert TwoLevels.of(array, (axis,), magnitudes=False) is None
            values = PartialResults.of(array, (axis,), "sum").values(np.dtype(dtype)).ravel()
            assert np.isfinite(values[:-1]).all()
            assert str(values[-1]) == str(bad)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_elements_too_far_apart_have_no_window_and_the_right_sums(dtype: str) -> None:
    small, large = (1e-300, 1e300) if dtype == "float64" else (1e-40, 1e38)
    array = np.array([[large, -large, small], [small, large, -large]] * 20, dtype)
    assert TwoLevels.of(array, (1,), magnitudes=False) is None
    values = PartialResults.of(array, (1,), "sum").values(np.dtype(dtype)).ravel()
    assert set(values.tolist()) == {float(np.dtype(dtype).type(small))}


def test_parts_of_different_windows_are_merged_exactly() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.standard_normal((4, 50)) * 2.0**place for place in (0, 100, -100)]
    sums = [PartialResults.of(part, (0,), "sum") for part in parts]
    assert len({part.sums[0].unit for part in sums if isinstance(part.sums[0], TwoLevels)}) == 3
    merged = PartialResults.merge(sums).values(np.dtype(np.float64)).ravel()
    assert merged.tolist() == list(map(float, exact_sums(np.concatenate(parts), (0,))))


def test_parts_in_windows_of_near_units_are_merged_in_the_lowest_one() -> None:
    rng = np.random.default_rng(14)
    array = rng.standard_normal((60, 400))
    array[13, ::7] = 2.0**-45 * (1 + 2.0**-52)
    array[41, ::5] = -(2.0**-44) * (1 + 2.0**-51)
    array[:, 11] = -0.0
    parts = [PartialResults.of(some, (0,), "sum") for some in np.array_split(array, 6)]
    units = [part.sums[0].unit for part in parts if isinstance(part.sums[0], TwoLevels)]
    assert len(units) == len(parts)
    assert len(set(units)) > 1
    values = [str(float(total)) for total in exact_sums(array, (0,))]
    values[11] = "-0.0"
    for some in (parts, parts[::-1]):
        merged = PartialResults.merge(some)
        assert isinstance(merged.sums[0], TwoLevels)
        assert merged.sums[0].unit == min(units)
        assert [str(float(value)) for value in merged.values(np.dtype(np.float64)).ravel()] == values


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_sums_and_means_are_rounded_once_to_even(dtype: str, count: int) -> None:
    rng = np.random.default_rng(6)
    last = np.finfo(dtype).eps / 2
    steps = rng.integers(-3, 4, (count, 4000)) * last * np.where(rng.random((count, 4000)) < 0.5, 1.0, 2.0**-40)
    array = (rng.choice([-1.0, 1.0, 2.0], (count, 4000)) + steps).astype(dtype)
    for op, divisor in (("sum", 1), ("mean", count)):
        values = PartialResults.of(array, (0,), op).values(np.dtype(dtype)).ravel().tolist()
        expected = [nearest(total / divisor, dtype) for total in exact_sums(array, (0,))]
        assert values == expected


def test_a_sum_of_float32_beyond_the_largest_is_infinite_and_a_tiny_one_is_subnormal() -> None:
    largest = np.finfo(np.float32).max
    array = np.array([[largest, largest], [-largest, largest]], np.float32)
    assert PartialResults.of(array, (1,), "sum").values(np.dtype(np.float32)).ravel().tolist() == [np.inf, 0.0]
    tiny = np.full((2, 3), 1e-45, np.float32)
    values = PartialResults.of(tiny, (1,), "mean").values(np.dtype(np.float32)).ravel()
    assert values.tolist() == [float(np.float32(1e-45))] * 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_value_of_negative_zeros_alone_is_negative_zero(dtype: str) -> None:
    array = np.full((20, 5), -0.0, dtype)
    array[3, 1], array[4, 2], array[5, 3], array[6, 3] = 0.0, 1.0, 2.0, -2.0
    for laid, axis in ((array, 0), (np.ascontiguousarray(array.T), 1)):
        for cut in (1, 7):
            parts = np.split(laid, [cut], axis=axis)
            whole = PartialResults.merge([PartialResults.of(part, (axis,), "sum") for part in parts])
            assert isinstance(whole.sums[0], TwoLevels)
            values = whole.values(np.dtype(dtype)).ravel()
            assert [str(float(x)) for x in values] == ["-0.0", "0.0", "1.0", "0.0", "-0.0"]
    assert not np.signbit(PartialResults.of(array, (0,), "norm1").values(np.dtype(dtype))).any()


def test_sums_that_would_leave_an_int64_are_merged_as_digits() -> None:
    array = np.full((4, 3), 1.9 * 2.0**16)
    part = PartialResults.of(array, (0,), "sum")
    (levels,) = part.sums
    assert isinstance(levels, TwoLevels)
    bounded = replace(levels, most=two_levels.LIMIT // 3)
    assert in_levels([bounded] * 2) is not None
    assert in_levels([bounded] * 4) is None
    for many in (2, 4):
        merged = PartialResults.merge([replace(part, sums=(bounded,))] * many).values(np.dtype(np.float64)).ravel()
        assert merged.tolist() == [1.9 * 2.0**18 * many] * 3


def test_the_reach_is_that_of_the_compiled_loops() -> None:
    assert two_levels.REACH == REACH
    assert dtype_of(np.dtype(np.float32)).precision < dtype_of(np.dtype(np.float64)).precision < REACH
