"""The exact sums of a warp, on the host: their totals are those of the portable definition, bit for bit."""

import ctypes
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.kernels import on_host
from tests.support.kernels.exact_on_host import limbs_made, portable, states_of
from warpfold.kernels.cuda.exact import LARGEST_SHARED, MOST_GPUS, SHAPES, SumKind, limbs_of, states_of_limbs
from warpfold.kernels.cuda.exact.launch import numbers_added
from warpfold.kernels.cuda.exact.shapes import CHOICES
from warpfold.kernels.cuda.exact.total import MOST_ADDED, carried
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import Terms

FLOATS = tuple(SHAPES)


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_exact()


def operands(kind: SumKind, data: str, dtype: DType, size: int, start: int = 0) -> tuple[NDArray[Any], ...]:
    """One array of the kind of data, from element `start`, or two that differ."""
    arrays = [
        adversarial(data, dtype, size + start, seed)[start:] for seed in range(2 if kind is SumKind.PRODUCTS else 1)
    ]
    if kind is SumKind.PRODUCTS:
        arrays[1] = arrays[1][::-1].copy() if start == 0 else aligned_as(arrays[0], arrays[1][::-1])
    return tuple(arrays)


def aligned_as(model: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """A copy of `array` that lies between boundaries of 16 bytes as `model` does."""
    room = np.empty(array.size + 16, array.dtype)
    start = (model.ctypes.data - room.ctypes.data) % 16 // array.itemsize
    room[start : start + array.size] = array
    return room[start : start + array.size]


CHOSEN = [
    (dtype, kind, choice)
    for dtype, kinds in CHOICES.items()
    for kind, chosen in kinds.items()
    for choice in range(len(chosen.shapes))
]


# Each choice has every third kind of data, so that the choices of a dtype have all of them.
CHOSEN_DATA = [
    (*chosen, data)
    for at, chosen in enumerate(CHOSEN)
    for number, data in enumerate(ADVERSARIAL)
    if (number + at) % 3 == 0
]


@pytest.mark.parametrize(("dtype", "kind", "choice", "data"), CHOSEN_DATA)
def test_a_sum_by_any_choice_is_the_portable_one(
    library: ctypes.CDLL, dtype: str, kind: SumKind, choice: int, data: str
) -> None:
    # more than the buckets of a thread take before they are emptied, and than a window before it is flushed
    size = 140_001 if dtype == "float64" else 70_001
    arrays = operands(kind, data, DTYPES[dtype], size, 1)
    made = on_host.exact(library, f"{dtype} {choice}", kind, arrays, limbs_of(kind), ahead=True)
    assert states_of_limbs(kind, made) == portable(kind, *arrays)


@pytest.mark.parametrize("kind", [SumKind.SQUARES, SumKind.MOMENTS, SumKind.PRODUCTS])
def test_carries_go_through_full_words(library: ctypes.CDLL, kind: SumKind) -> None:
    """Sums that fill words with ones, and elements whose last place makes all of them carry, and borrow."""
    ones = [2.0**place for place in range(-300, 300)]  # their squares are every second place
    below = [2.0**place * (1 - 2.0**-53) for place in range(-300, 300)]
    pairs = [*ones, *ones, *below, -(2.0**-301), 2.0**-301, *(-x for x in ones), -(2.0**-1074), *(2.0**-1074,) * 7]
    array = np.tile(np.array(pairs), 70)
    other = aligned_as(array, np.tile(np.array([*pairs[:-1], -1.0]), 70))  # squares but for some products below zero
    other[1::3] *= -1
    for size in (len(pairs), array.size):
        arrays = (array[:size], other[:size]) if kind is SumKind.PRODUCTS else (array[:size],)
        for ahead in (False, True):
            made = on_host.exact(library, "float64 1", kind, arrays, limbs_of(kind), ahead=ahead)
            assert states_of_limbs(kind, made) == portable(kind, *arrays)


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("kind", SumKind)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_sum_is_the_portable_one_on_adversarial_data(
    library: ctypes.CDLL, dtype: str, kind: SumKind, data: str
) -> None:
    row = DTYPES[dtype]
    for size, start in ((1, 0), (17, 1), (4099, 3)):
        arrays = operands(kind, data, row, size, start)
        assert states_of(library, row, kind, *arrays, ahead=bool(start)) == portable(kind, *arrays), (size, start)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("data", ["all largest", "all most negative", "all just below one", "all smallest", "special"])
def test_budgets_and_carries_hold_on_long_runs(library: ctypes.CDLL, dtype: str, data: str) -> None:
    row = DTYPES[dtype]
    for kind in SumKind:
        # more than 2¹² elements a thread: windows flush, digits carry
        arrays = operands(kind, data, row, 300_000)
        assert states_of(library, row, kind, *arrays) == portable(kind, *arrays), kind


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_buckets_are_emptied_before_they_round(library: ctypes.CDLL, dtype: str) -> None:
    row = DTYPES[dtype]
    array = adversarial("all just below one", row, (1 << 14) * 64 + 4096)  # more than a thread's budget in two warps
    assert states_of(library, row, SumKind.VALUES, array) == portable(SumKind.VALUES, array)


@settings(deadline=None, max_examples=150)
@given(
    dtype=st.sampled_from(FLOATS),
    kind=st.sampled_from(SumKind),
    low=st.integers(0, 2046),
    width=st.integers(0, 90),
    size=st.integers(1, 700),
    seed=st.integers(0, 1 << 30),
)
def test_a_window_holds_what_it_says(  # noqa: PLR0917
    library: ctypes.CDLL, dtype: str, kind: SumKind, low: int, width: int, size: int, seed: int
) -> None:
    row = DTYPES[dtype]
    top = 2 * row.max_exponent - 1
    random = np.random.default_rng(seed)
    word, fraction = np.dtype(f"u{row.itemsize}"), row.precision - 1
    fields = np.minimum(low % top + random.integers(0, width, size, endpoint=True), top - 1).astype(word)
    bits = fields << word.type(fraction)
    # full, empty and random fractions: the last place decides whether a level rounds
    bits |= random.choice(np.array([0, 1, (1 << fraction) - 1], word), size)
    bits |= random.integers(0, 2, size).astype(word) << word.type(8 * row.itemsize - 1)
    array = bits.view(row.numpy)
    arrays = (array, array[::-1].copy()) if kind is SumKind.PRODUCTS else (array,)
    assert states_of(library, row, kind, *arrays) == portable(kind, *arrays)


@pytest.mark.parametrize("kind", SumKind)
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_elements_are_left_out_and_not_counted(library: ctypes.CDLL, dtype: str, kind: SumKind) -> None:
    row = DTYPES[dtype]
    arrays = operands(kind, "special", row, 3001)
    missing = np.any([np.isnan(array.astype(np.float64)) for array in arrays], axis=0)
    kept = tuple(array[~missing] for array in arrays)
    assert kept[0].size < arrays[0].size
    assert states_of(library, row, kind, *arrays, omit_nan=True) == portable(kind, *kept)
    nothing = tuple(np.full(77, np.nan).astype(row.numpy) for _ in arrays)
    states = states_of(library, row, kind, *nothing, omit_nan=True)
    assert states == tuple(ExactState.empty(state.terms) for state in states)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_zeros_and_infinities_follow_ieee_754(library: ctypes.CDLL, dtype: str) -> None:
    row = DTYPES[dtype]
    values = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]).astype(row.numpy)
    for x in values:
        for y in values:
            for size in (1, 40):  # alone, and filling tiles
                arrays = (np.full(size, x, row.numpy), np.full(size, y, row.numpy))
                assert states_of(library, row, SumKind.PRODUCTS, *arrays) == portable(SumKind.PRODUCTS, *arrays), (x, y)


@pytest.mark.parametrize("kind", SumKind)
@pytest.mark.parametrize("dtype", FLOATS)
def test_totals_of_shards_add_up_limb_by_limb(library: ctypes.CDLL, dtype: str, kind: SumKind) -> None:
    row = DTYPES[dtype]
    for data in ("special", "any bits", "cancelling", "negative zeros"):
        arrays = operands(kind, data, row, 4096)
        whole = np.zeros(limbs_of(kind), np.int64)
        for shard in range(4):
            made = limbs_made(library, row, kind, *(array[shard * 1024 :][:1024] for array in arrays))
            whole += carried(kind, made) if shard % 2 else made
        assert states_of_limbs(kind, whole) == portable(kind, *arrays), data


@pytest.mark.parametrize("kind", SumKind)
def test_carries_leave_a_total_as_it_is_with_room_for_more(kind: SumKind) -> None:
    random = np.random.default_rng(5)
    limbs = random.integers(-(1 << 62), 1 << 62, limbs_of(kind))
    limbs[:6] = (1 << 40, 5, 0, 7, 0, 1)
    for terms, start in (
        (kind.terms, 0),
        *([(Terms.PRODUCTS, limbs_of(SumKind.VALUES))] if kind is SumKind.MOMENTS else []),
    ):
        highest = 64 if terms is Terms.VALUES else 130  # beyond what terms can sum to
        limbs[start + 6 + highest : start + limbs_of(SumKind(terms.name))] = 0
    resolved = carried(kind, limbs)
    assert states_of_limbs(kind, resolved) == states_of_limbs(kind, limbs)
    assert np.abs(resolved[6 : limbs_of(SumKind(kind.terms.name))]).max() < 1 << 32
    assert list(resolved[:6]) == [1 << 40, 5, 0, 1, 0, 1]


def test_limbs_have_room_for_what_is_added_before_carries_are_resolved() -> None:
    assert MOST_ADDED * 2**32 * MOST_GPUS < 2**63
    assert numbers_added(4096, 1 << 40) < MOST_ADDED


def test_a_shape_fits_the_shared_memory_of_any_gpu() -> None:
    for kinds in SHAPES.values():
        for shape in kinds.values():
            assert shape.fitted(LARGEST_SHARED) == shape
            for shared_per_block in (48 << 10, 64 << 10, 99 << 10):
                fitted = shape.fitted(shared_per_block)
                assert fitted.threads * fitted.shared <= shared_per_block
                assert fitted.threads % 32 == 0
                assert 32 <= fitted.threads <= shape.threads
    large = LaunchShape(512, blocks_per_multiprocessor=2, flight=4, shared=192)
    assert large.fitted(64 << 10) == LaunchShape(256, blocks_per_multiprocessor=1, flight=4, shared=192)
