"""The windows of exact sums at their edges, on the host: nothing rounds, up to the last element of a budget."""

import ctypes
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels import on_host
from tests.support.kernels.exact_on_host import portable, states_of
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.dtypes import DTYPES, DType

Array = NDArray[Any]

LANES = 32
BUDGET = 1 << 11  # elements of a thread between two flushes, at most

# How many exponents a window of each sum has: those of narrow terms, and all (docs/exactness.md).
WIDTHS = {
    ("bfloat16", SumKind.SQUARES): (17, 37),
    ("bfloat16", SumKind.MOMENTS): (17, 37),
    ("float32", SumKind.SQUARES): (20, 43),
    ("float32", SumKind.MOMENTS): (20, 43),
    ("float64", SumKind.VALUES): (72, 72),
    ("float64", SumKind.SQUARES): (17, 40),
    ("float64", SumKind.MOMENTS): (16, 39),
}
NEAR = [
    (*sum_of, narrow, by)
    for sum_of in WIDTHS
    for narrow in (True, False)
    for by in (-2, -1, 0, 1, 2)
]  # fmt: skip

# How many of them a window must have to spare to be put where terms are narrow, and how many of these are at its top
# (kernels/cuda/include/exact_window_sum.cuh).
SPARE = {"bfloat16": (3, 1), "float32": (5, 2), "float64": (4, 2)}


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_exact()


def elements(dtype: DType, exponents: Array, fractions: Array, negative: Array | bool = False) -> Array:
    """± (1 + fraction / 2^(p−1)) · 2^exponent; at the exponent below that of normal numbers, subnormals."""
    word = np.dtype(f"u{dtype.itemsize}")
    fields = (exponents + dtype.max_exponent - 1).astype(np.int64)
    assert fields.min() >= 0
    assert fields.max() < 2 * dtype.max_exponent - 1
    bits = fields.astype(word) << word.type(dtype.precision - 1) | fractions.astype(word)
    signs = np.where(negative, word.type(1 << (8 * dtype.itemsize - 1)), word.type(0))
    array: Array = (bits | signs).view(dtype.numpy)
    return array


def a_round(dtype: DType) -> int:
    """How many elements a tile of each thread is, two reads of each of 32 threads of two blocks."""
    return 2 * 2 * LANES * 16 // dtype.itemsize


def spread(dtype: DType, lowest: int, highest: int, size: int, random: np.random.Generator) -> Array:
    """Elements of all these exponents; their last places are often what decides."""
    full = (1 << dtype.precision - 1) - 1
    fractions = np.where(
        random.random(size) < 0.5, random.choice([0, 1, full - 1, full], size), random.integers(0, full, size)
    )
    exponents = random.integers(lowest, highest, size, endpoint=True)
    return elements(dtype, exponents, fractions, random.random(size) < random.choice([0.0, 0.5, 1.0]))


def lowest_exponents(dtype: DType, width: int) -> set[int]:
    """Where windows of this width may be: everywhere for small formats, at the ends and where squares leave float64."""
    least, most = 1 - dtype.max_exponent, dtype.max_exponent - width  # the first is of subnormals
    edges = {least, least + 1, most, -485 - width, -486, -485, -484, 506 - width, 507 - width, -width // 2, 11}
    return {max(least, min(edge, most)) for edge in edges}


def placing(dtype: DType, lowest: int, width: int, narrow: bool, random: np.random.Generator) -> Array:
    """What fills the first tiles, so that the window has the exponents from `lowest` on if it has so many."""
    size, highest = 3 * a_round(dtype), lowest + width - 1
    if narrow:  # by what the tiles of a warp have together
        spare, above = SPARE[dtype.name]
        return spread(dtype, lowest + spare - above, highest - above, size, random)
    ends = np.resize([lowest, highest], size)  # by what each tile has
    return elements(dtype, ends, random.integers(0, 1 << dtype.precision - 1, size))


@pytest.mark.parametrize(("dtype", "kind", "narrow", "by"), NEAR)
def test_windows_hold_what_they_admit_at_every_width_around_their_own(
    library: ctypes.CDLL, dtype: str, kind: SumKind, narrow: bool, by: int
) -> None:
    row = DTYPES[dtype]
    width = WIDTHS[dtype, kind][not narrow] + by
    for lowest in sorted(lowest_exponents(row, width)):
        random = np.random.default_rng([width, lowest + 2000])
        filling = spread(row, lowest, lowest + width - 1, 5 * a_round(row) + 11, random)
        array = np.concatenate([placing(row, lowest, width, narrow, random), filling])
        expected = portable(kind, array)
        for ahead in (False, True):
            assert states_of(library, row, kind, array, ahead=ahead) == expected, lowest


@pytest.mark.parametrize(("dtype", "kind"), WIDTHS)
def test_budgets_hold_for_terms_that_all_leave_the_same_remainder(
    library: ctypes.CDLL, dtype: str, kind: SumKind
) -> None:
    row = DTYPES[dtype]
    fraction, size = row.precision - 1, BUDGET * 2 * LANES
    place = np.arange(size) + 3 * a_round(row)
    lanes = place // (16 // row.itemsize) % LANES
    # fractions 0…01…1, which leave just below half a unit of some level, and those whose squares do; one for each lane
    ones = (1 << np.linspace(0, fraction, LANES // 2).astype(np.int64)) - 1
    roots = (np.sqrt([*np.arange(5, 16) / 4, *np.arange(9, 18, 2) / 8]) - 1) * (1 << fraction)
    fractions = np.concatenate([ones, roots.astype(np.int64)])[lanes] % (1 << fraction)
    # the smallest, with their last places, among many that may be large: as tiles, or in each of the longer tiles
    smallest = {False: place // a_round(row) % 4 == 3, True: place % 8 == 7}
    for narrow, by in product((True, False), range(3)):
        width = WIDTHS[dtype, kind][not narrow] + by
        first = placing(row, -width + 1, width, narrow, np.random.default_rng(width))
        others = (0, -1, -width // 2, -width + 2, -width + 1)
        for (ahead, last), exponent in product(smallest.items(), others if by == 0 else others[by::2]):
            exponents = np.where(last, -width + 1, exponent)
            array = np.concatenate([first, elements(row, exponents, fractions, bool(exponent % 2))])
            assert states_of(library, row, kind, array, ahead=ahead) == portable(kind, array), (width, exponent)


@settings(deadline=None, max_examples=120)
@given(
    sum_of=st.sampled_from([*WIDTHS, *((name, SumKind.PRODUCTS) for name in ("bfloat16", "float32", "float64"))]),
    rounds=st.lists(
        st.tuples(
            st.sampled_from(["narrow", "wide", "neither", "zeros", "subnormal", "one lane"]),
            st.integers(-12, 12),
            st.integers(1, 3),
        ),
        min_size=1,
        max_size=40,
    ),
    ahead=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_tiles_may_be_narrow_wide_or_neither_in_any_order(
    library: ctypes.CDLL,
    sum_of: tuple[str, SumKind],
    rounds: list[tuple[str, int, int]],
    ahead: bool,
    seed: int,
) -> None:
    row, kind = DTYPES[sum_of[0]], sum_of[1]
    random = np.random.default_rng(seed)
    arrays = tuple(
        np.concatenate([_tiles(row, name, around, times, random) for name, around, times in rounds])
        for _ in range(2 if kind is SumKind.PRODUCTS else 1)
    )
    assert states_of(library, row, kind, *arrays, ahead=ahead) == portable(kind, *arrays)


def _tiles(row: DType, name: str, around: int, times: int, random: np.random.Generator) -> Array:
    size = times * a_round(row)
    least, most = 1 - row.max_exponent, row.max_exponent - 1
    match name:
        case "narrow":
            return spread(row, around - 8, around + 8, size, random)
        case "wide":
            return spread(row, around - 18, around + 18, size, random)
        case "neither":
            return spread(row, least, most, size, random)
        case "zeros":
            zeros: Array = (random.integers(0, 2, size) - 0.5).astype(row.numpy) * row.numpy.type(0)
            return zeros
        case "subnormal":
            return spread(row, least, least, size, random)
    array = spread(row, around - 8, around + 8, size, random)
    array[: 16 // row.itemsize] = spread(row, least, most, 16 // row.itemsize, random)
    return array


@pytest.mark.parametrize(("dtype", "kind"), [sum_of for sum_of in WIDTHS if sum_of[1] is not SumKind.VALUES])
@pytest.mark.parametrize("away", [-60, -25, 25, 60])
def test_a_lane_may_have_a_window_of_its_own_and_come_back(
    library: ctypes.CDLL, dtype: str, kind: SumKind, away: int
) -> None:
    row, random = DTYPES[dtype], np.random.default_rng(away + 60)
    place = np.arange(190 * a_round(row))  # long enough for the warp to look twice for a window of all its lanes
    elsewhere = np.isin(place // a_round(row) % 110, range(4, 95))
    for lane in (0, 31):
        alone = elsewhere & (place // (16 // row.itemsize) % LANES == lane)
        exponents = random.integers(-4, 4, place.size) + np.where(alone, away, 0)
        fractions = random.integers(0, 1 << row.precision - 1, place.size)
        array = elements(row, exponents, fractions, place % 3 == 0)
        expected = portable(kind, array)
        for ahead in (False, True):
            assert states_of(library, row, kind, array, ahead=ahead) == expected, lane


@pytest.mark.parametrize("power", [60, 80, 104, 200, 500, 1000])
def test_products_of_subnormals_and_large_numbers_keep_their_last_places(library: ctypes.CDLL, power: int) -> None:
    row, random = DTYPES["float64"], np.random.default_rng(power)
    for bits in (1, 7, 20, 45, 52):
        x = random.integers(1, 1 << bits, 3000).astype(np.uint64).view(np.float64)
        y = spread(row, power, power + 4, 3000, random)
        for arrays in ((x, y), (y, x), (x[:40], y[:40])):
            assert states_of(library, row, SumKind.PRODUCTS, *arrays) == portable(SumKind.PRODUCTS, *arrays), bits


@pytest.mark.parametrize("lowest", range(-975, -966))
def test_products_keep_errors_whose_last_place_is_that_of_subnormals(library: ctypes.CDLL, lowest: int) -> None:
    row, random = DTYPES["float64"], np.random.default_rng(-lowest)
    x = spread(row, -486, -486, 3000, random)
    y = spread(row, lowest + 486, lowest + 486 + 20, 3000, random)
    for arrays in ((x, y), (y, x)):
        assert states_of(library, row, SumKind.PRODUCTS, *arrays) == portable(SumKind.PRODUCTS, *arrays)
