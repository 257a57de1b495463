"""The compiled sums: the limbs of the portable definition, on every path."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.kernels.patterns import FLOATS, array_of_bits, in_window, patterns, reference_bytes
from warpfold.kernels.cpu import windows
from warpfold.kernels.cpu.accumulator import Accumulator, accumulator
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.ops import Terms

KINDS = [(Terms.VALUES, False), (Terms.VALUES, True), (Terms.PRODUCTS, False)]
LONG = 3 * windows.TILE32 + 77


def added(array: NDArray[Any], dtype: DType, terms: Terms, magnitudes: bool) -> ExactState:
    accumulated: Accumulator = accumulator([dtype], terms, magnitudes=magnitudes)
    accumulated.add(array)
    return accumulated.state()


def same_as_portable(array: NDArray[Any], dtype: DType) -> None:
    for terms, magnitudes in KINDS:
        wanted = ExactState.empty(terms).add(array, magnitudes=magnitudes)
        assert added(array, dtype, terms, magnitudes) == wanted, (terms, magnitudes)


@pytest.mark.parametrize(("terms", "magnitudes"), KINDS)
@given(drawn=st.sampled_from(list(DTYPES.values())).flatmap(lambda d: st.tuples(st.just(d), patterns(d))))
def test_the_sums_of_any_data_are_the_references(
    terms: Terms, magnitudes: bool, drawn: tuple[DType, list[int]]
) -> None:
    dtype, bits = drawn
    state = added(array_of_bits(bits, dtype), dtype, terms, magnitudes)
    assert state.to_bytes() == reference_bytes(bits, dtype, terms, magnitudes=magnitudes)


@pytest.mark.parametrize("width", [1, 2, 25, 26, 27, 28, 50, 51, 76, 77, 78, 100, 127, 130, 200, 253])
def test_every_width_of_window_of_float32_adds_exactly(width: int) -> None:
    for top in {128, 128 - width // 3, min(128, width - 125)}:
        same_as_portable(in_window(DTYPES["float32"], width, top, LONG, width), DTYPES["float32"])


@pytest.mark.parametrize(
    "width", [1, 2, 20, 46, 47, 48, 49, 50, 97, 98, 99, 100, 150, 151, 400, 547, 548, 549, 900, 2000]
)
def test_every_width_of_window_of_float64_adds_exactly(width: int) -> None:
    for top in {1024, 999, 1000, 1001, 500, 501, 10, -480, -900, -1020 + width}:
        if top - width >= -1021 and top <= 1024:
            same_as_portable(in_window(DTYPES["float64"], width, top, 5000, width), DTYPES["float64"])


@pytest.mark.parametrize("width", [1, 20, 42, 43, 44, 93, 94, 95, 250])
def test_every_width_of_window_of_bfloat16_adds_exactly(width: int) -> None:
    same_as_portable(in_window(DTYPES["bfloat16"], width, 128, LONG, width), DTYPES["bfloat16"])


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_tiles_that_leave_the_window_of_the_tile_before_add_exactly(dtype: DType) -> None:
    # A tile is first added in the window of the one before: the next one lies at its edges, or beyond by a few places.
    tile, widest = 64, dtype.max_exponent - dtype.min_exponent - dtype.precision
    chance = np.random.default_rng(dtype.itemsize)
    parts = []
    for width in (1, 24, 25, 26, 27, 28, 45, 49, 76, 77, 78, 79, 150):
        for moved in (0, 1, 2, 3, 8, 9, 30, -1, -2, -22, -24, -26, -70):
            top = dtype.max_exponent // 4
            for start in (top, top + moved):
                fits = max(min(start, dtype.max_exponent), min(width, widest) - widest + dtype.max_exponent)
                parts.append(in_window(dtype, min(width, widest), fits, tile, int(chance.integers(1 << 30))))
                if chance.integers(8) == 0:
                    parts.append(np.full(tile, (0.0, -0.0, np.inf, np.nan)[chance.integers(4)], dtype.numpy))
    # Each part fills a tile, by repetition.
    size = windows.TILE64 if dtype.itemsize == 8 else windows.TILE32
    same_as_portable(
        np.concatenate([np.resize(part, size) for part in parts[:: 1 if dtype.itemsize > 2 else 3]]), dtype
    )


def test_elements_at_the_edges_of_a_window_add_exactly() -> None:
    # One element of the second tile is a place above or below what the window of the first tile holds, or just within.
    for dtype, size in ((DTYPES["float32"], windows.TILE32), (DTYPES["float64"], windows.TILE64)):
        for places in range(-75 if dtype.itemsize == 8 else -45, 70):
            array = np.ones(2 * size + 3, dtype.numpy)
            array[size + 5] = np.nextafter(np.ldexp(1.0, places), 0.0) if places % 2 else -np.ldexp(1.0, places)
            assert added(array, dtype, Terms.VALUES, False) == ExactState.empty(Terms.VALUES).add(array), places
            array[size : 2 * size] = np.nextafter(np.ldexp(1.0, places), 0.0)  # as large a sum as a tile can have
            assert added(array, dtype, Terms.VALUES, False) == ExactState.empty(Terms.VALUES).add(array), places


def test_every_float16_adds_exactly() -> None:
    everything = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    same_as_portable(everything, DTYPES["float16"])
    same_as_portable(everything[np.isfinite(everything)], DTYPES["float16"])
    for pattern in (0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0x7C01, 0xFE00, 0x8000, 0x8001):
        same_as_portable(np.full(3, pattern, dtype=np.uint16).view(np.float16), DTYPES["float16"])


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_tiles_full_of_the_largest_of_one_sign_do_not_overflow_a_limb(dtype: DType) -> None:
    fraction = dtype.precision - 1
    top = 2 * dtype.max_exponent - 1
    for pattern in ((top << fraction) - 1, 1, (1 << fraction) - 1, dtype.max_exponent - 1 << fraction):
        for sign in (0, 1 << 8 * dtype.itemsize - 1):
            array = np.full(2 * LONG, pattern | sign, dtype=f"uint{8 * dtype.itemsize}").view(dtype.numpy)
            same_as_portable(array, dtype)
            array[0] = array_of_bits([1], dtype)[0]  # the widest window there is
            same_as_portable(array, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_specials_in_one_tile_leave_the_sum_of_the_rest(dtype: DType) -> None:
    infinity = (2 * dtype.max_exponent - 1) << (dtype.precision - 1)
    sign = 1 << 8 * dtype.itemsize - 1
    bits = np.arange(1, LONG + 1, dtype=f"uint{8 * dtype.itemsize}") % 700
    for place, pattern in ((5, infinity), (windows.TILE32 + 3, infinity | sign), (LONG - 1, infinity + 1)):
        bits[place] = pattern
        same_as_portable(bits.view(dtype.numpy), dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_one_plus_zero_among_minus_zeros_is_seen(dtype: DType) -> None:
    zeros = np.full(LONG, 1 << 8 * dtype.itemsize - 1, dtype=f"uint{8 * dtype.itemsize}")
    assert added(zeros.view(dtype.numpy), dtype, Terms.VALUES, False).flags == Flags.NONE
    assert added(zeros.view(dtype.numpy), dtype, Terms.VALUES, True).flags == Flags.NOT_NEGATIVE_ZERO
    zeros[-1] = 0
    assert added(zeros.view(dtype.numpy), dtype, Terms.VALUES, False).flags == Flags.NOT_NEGATIVE_ZERO


def test_an_add_says_what_its_own_elements_were() -> None:
    accumulated = accumulator([DTYPES["float32"]], Terms.VALUES)
    assert accumulated.add(np.array([np.nan, 1.0], dtype=np.float32)) & Flags.NAN
    assert not accumulated.add(np.array([2.0], dtype=np.float32)) & Flags.NAN
    assert accumulated.state().flags & Flags.NAN


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.lists(st.integers(0, LONG), max_size=4), st.sampled_from(FLOATS))
def test_any_permutation_in_any_chunks_gives_the_same_bytes(seed: int, cuts: list[int], dtype: DType) -> None:
    chance = np.random.default_rng(seed)
    array = array_of_bits([int(x) for x in chance.integers(0, 2**16, LONG)], DTYPES["float16"]).astype(np.float64)
    with np.errstate(all="ignore"):
        array = (array * 2.0 ** chance.integers(-90, 90, LONG)).astype(dtype.numpy)
    whole = added(array, dtype, Terms.VALUES, False)
    accumulated = accumulator([dtype], Terms.VALUES)
    for part in np.split(chance.permutation(array), sorted(cuts)):
        accumulated.add(part)
    assert accumulated.state().to_bytes() == whole.to_bytes()


def test_carries_are_resolved_over_many_calls() -> None:
    accumulated = accumulator([DTYPES["float64"]], Terms.VALUES)
    part = np.array([np.finfo(np.float64).max, 5e-324, -np.finfo(np.float64).max, -1.0])
    for _ in range(2000):
        accumulated.add(part)
    assert accumulated.state().units == 2000 * (1 - (1 << 1074))


def test_arrays_longer_than_a_call_may_take_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_ELEMENTS", 1000)
    array = np.arange(LONG, dtype=np.float32)
    assert added(array, DTYPES["float32"], Terms.VALUES, False).units == LONG * (LONG - 1) // 2 << 1074


def test_read_only_maps_and_unaligned_and_strided_arrays_add(tmp_path: Path) -> None:
    array = np.arange(5000, dtype=np.float32)
    np.save(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    raw = np.frombuffer(b"\0" + array.tobytes(), dtype=np.uint8)[1:].view(np.float32)
    wanted = added(array, DTYPES["float32"], Terms.VALUES, False)
    for same in (mapped, raw, np.repeat(array, 2)[::2]):
        assert added(same, DTYPES["float32"], Terms.VALUES, False) == wanted
