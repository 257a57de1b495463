"""Parts of sums of any form together have the bits of exact arithmetic, rounded once."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.columns import exact_sums, nearest
from warpfold.kernels.cpu.grouped import together
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.plain import PlainSums
from warpfold.kernels.cpu.grouped.two_levels import TwoLevels
from warpfold.kernels.dtypes import DTYPES

KINDS = ("normal", "near a tie", "cancelling", "wide", "subnormal", "integers", "zeros")


def hard(rng: np.random.Generator, kind: str, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Columns whose sums are easily rounded twice, or wrongly."""
    info, bound = np.finfo(dtype), 60 if dtype == "float32" else 400
    array: NDArray[Any] = rng.standard_normal(shape)
    match kind:
        case "near a tie":
            steps = rng.integers(-3, 4, shape) * info.eps / 2 * np.where(rng.random(shape) < 0.5, 1.0, 2.0**-30)
            array = rng.choice([-1.0, 1.0, 2.0], shape) + steps
        case "cancelling":
            array = np.ldexp(array, rng.integers(-20, 20, shape))
            array[shape[0] // 2 :] = -array[: shape[0] - shape[0] // 2]
            array += (rng.random(shape) < 0.1) * info.eps
        case "wide":
            array = np.ldexp(array, rng.integers(-bound, bound, shape))
        case "subnormal":
            array = rng.integers(-9, 9, shape) * float(info.smallest_subnormal)
        case "integers":
            array = rng.integers(-(2**24), 2**24, shape)
        case "zeros":
            array = np.where(rng.random(shape) < 0.8, -0.0, 0.0)
    return array.astype(dtype)


def expected(array: NDArray[Any], op: str, dtype: str) -> list[str]:
    """The values of all columns, written so that signs of zeros count."""
    values = []
    totals = exact_sums(np.abs(array) if op == "norm1" else array, (0,))
    for total, column in zip(totals, array.T, strict=True):
        value = nearest(total / (len(column) if op == "mean" else 1), dtype)
        negative = op != "norm1" and bool((np.signbit(column) & (column == 0)).all())
        values.append(str(-0.0 if negative else value if total else 0.0))
    return values


def written(values: NDArray[Any]) -> list[str]:
    return [str(float(value)) for value in values.ravel()]


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    op=st.sampled_from(("sum", "mean", "norm1")),
    dtype=st.sampled_from(("float32", "float64")),
)
def test_chunks_of_any_kind_have_the_values_of_exact_arithmetic(
    seed: int, kinds: list[str], op: str, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.choice([3, 19, 40]))
    chunks = [hard(rng, kind, (int(rng.integers(1, 12)), width), dtype) for kind in kinds]
    result = np.dtype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "_AT_ONCE", int(rng.choice([7, 1 << 15])))
        parts = [PartialResults.of(chunk, (0,), op) for chunk in chunks]
        at_once = PartialResults.values_of(parts, result)
        cut = int(rng.integers(0, len(parts)))
        halves = [PartialResults.merge(some) for some in (parts[cut:], parts[:cut]) if some]
        in_steps = PartialResults.merge(halves).values(result)
        mixed = PartialResults.values_of([halves[0], *parts[:cut]], result)
    values = expected(np.concatenate(chunks), op, dtype)
    assert written(at_once) == values
    assert written(in_steps) == values
    assert written(mixed) == values


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_part_that_is_not_finite_makes_its_value_so(bad: float) -> None:
    chunks = [np.ones((4, 30), np.float32) for _ in range(3)]
    chunks[1][2, 17] = bad
    values = PartialResults.values_of([PartialResults.of(x, (0,), "sum") for x in chunks], np.dtype(np.float32))
    assert written(values) == [str(bad) if at == 17 else "12.0" for at in range(30)]


def test_parts_of_one_form_are_rounded_without_being_merged() -> None:
    rng = np.random.default_rng(1)
    for dtype, form in (("float32", PlainSums), ("float64", TwoLevels)):
        array = rng.standard_normal((12, 70)).astype(dtype)
        parts = [PartialResults.of(part, (0,), "sum") for part in np.split(array, 3)]
        levels = [sums for part in parts for sums in part.sums if isinstance(sums, form)]
        assert len(levels) == 3
        for divisor in (1, 2, 12):
            values = together.rounded(levels, DTYPES[dtype], divisor)
            assert values is not None
            wanted = [nearest(total / divisor, dtype) for total in exact_sums(array, (0,))]
            assert values.tolist() == wanted


def test_plain_sums_far_from_each_other_are_merged_as_digits() -> None:
    chunks = [np.full((3, 20), x, np.float32) for x in (1e38, 1e-38, -1e38)]
    parts = [PartialResults.of(chunk, (0,), "sum") for chunk in chunks]
    levels = [sums for part in parts for sums in part.sums if isinstance(sums, PlainSums)]
    assert len(levels) == 3
    assert together.in_levels(levels) is None
    values = PartialResults.values_of(parts, np.dtype(np.float32))
    assert values.ravel().tolist() == [float(np.float32(3 * float(np.float32(1e-38))))] * 20


def test_values_beyond_the_largest_float32_are_infinite() -> None:
    chunks = [np.full((2, 20), np.finfo(np.float32).max, np.float32) for _ in range(2)]
    parts = [PartialResults.of(chunk, (0,), "sum") for chunk in chunks]
    assert np.isposinf(PartialResults.values_of(parts, np.dtype(np.float32))).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("apart", [0.0, 2.0**100])
def test_what_is_far_below_a_tie_of_float32_decides_it(sign: float, apart: float) -> None:
    columns = 20
    for odd in (1, 3):  # the tie lies above an even and above an odd float32
        chunks = [[apart, 0.0], [2.0**40, odd * 2.0**16], [sign * 2.0**-20, 0.0], [-apart, 0.0]]
        arrays = [np.repeat(np.array(chunk, np.float32)[:, None], columns, axis=1) for chunk in chunks]
        parts = [PartialResults.of(array, (0,), "sum") for array in arrays]
        assert all(isinstance(part.sums[0], PlainSums) for part in parts)
        values = PartialResults.values_of(parts, np.dtype(np.float32)).ravel()
        above = Fraction(2) ** 40 + odd * 2**16 + Fraction(sign) / 2**20
        assert values.tolist() == [nearest(above, "float32")] * columns
