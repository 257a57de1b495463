"""Exact sums on the GPU: the states of the portable definition, bit for bit, on adversarial data."""

from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.accumulators import early_choices
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.arrays import data
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import SHAPES, ExactAccumulator, SumKind, shapes
from warpfold.kernels.cuda.exact.shapes import CHOICES, chosen_unit, survey_name
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.encoding import ORIGIN, Flags
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import NanPolicy, Terms
from warpfold.kernels.source import ArraySource

FLOATS = tuple(SHAPES)
SIZES = (0, 1, 31, 33, 255, 257, 4095, 8193, 65_537)
STARTS = (0, 1, 3, 7)


def on_device(array: NDArray[Any], start: int = 0) -> Any:
    """A CuPy view of the elements that begins `start` elements after a boundary."""
    import cupy

    kept = carrier(next(row for row in DTYPES.values() if row.numpy == array.dtype))
    room = cupy.empty(start + array.size, dtype=kept)
    room[start:] = cupy.asarray(array.view(kept))
    return room[start:]


def repeated(value: NDArray[Any], size: int) -> Any:
    """The only element of `one`, `size` times."""
    import cupy

    word = np.dtype(f"u{value.dtype.itemsize}")
    dtype = next(row for row in DTYPES.values() if row.numpy == value.dtype)
    return cupy.full(size, value.view(word)[0], dtype=word).view(carrier(dtype))


def times(size: int, states: tuple[ExactState, ...]) -> tuple[ExactState, ...]:
    """The states of `size` terms each of which has the sum of one of `states`."""
    return tuple(ExactState(state.terms, size * state.units, size, Flags.NOT_NEGATIVE_ZERO) for state in states)


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", CHOICES)
def test_sums_by_whatever_the_data_choose(gpu: Gpu, dtype: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "CHOICES", early_choices(5000))
    array = adversarial(data, DTYPES[dtype], 300_001, 4)
    for kind in CHOICES[dtype]:
        arrays = (array, array[::-1].copy()) if kind is SumKind.PRODUCTS else (array,)
        made = ExactAccumulator(gpu, DTYPES[dtype], kind)
        made.add(*(on_device(each, 1) for each in arrays))
        assert made.states() == portable(kind, *arrays), kind


# Normal numbers times powers of two whose exponents deviate by so many, and which of the kernels is for them.
SPREADS = [
    *[("float32", SumKind.SQUARES, *row) for row in ((1, 0), (9, 1), (60, 2))],
    *[("float32", SumKind.MOMENTS, *row) for row in ((0, 0), (6, 1), (14, 2), (60, 3))],
    *[("float64", SumKind.SQUARES, *row) for row in ((1, 0), (9, 0), (150, 1))],
    *[("float64", SumKind.MOMENTS, *row) for row in ((1, 0), (9, 0), (150, 1))],
    *[(dtype, SumKind.PRODUCTS, *row) for dtype in ("float32", "float64") for row in ((0, 0), (1, 0), (9, 1))],
    *[("bfloat16", kind, *row) for kind in CHOICES["bfloat16"] for row in ((0, 0), (9, 1))],
]


@pytest.mark.parametrize(("dtype", "kind", "spread", "choice"), SPREADS)
def test_a_look_at_the_data_chooses_the_kernel_for_them(
    gpu: Gpu, dtype: str, kind: SumKind, spread: int, choice: int
) -> None:
    import cupy

    row, random = DTYPES[dtype], np.random.default_rng(spread)
    powers = np.clip(spread * random.standard_normal(1 << 18), 10 - row.max_exponent, row.max_exponent - 10)
    array = on_device((random.standard_normal(powers.size) * 2.0 ** np.rint(powers)).astype(row.numpy), 1)
    chosen = cupy.full(1, 7, dtype=np.uint32)
    survey = gpu.kernel(chosen_unit(row, kind, gpu.shared_per_block), survey_name(row, kind))
    survey(1, 1024, (array, array, np.uint64(array.size), chosen))
    assert chosen.get()[0] == choice


@pytest.mark.parametrize("dtype", CHOICES)
def test_few_elements_far_from_all_others_are_added(gpu: Gpu, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A band of exponents does not hold them, nor do those who look at some of the data see them."""
    monkeypatch.setattr(shapes, "CHOICES", early_choices(5000))
    row, random = DTYPES[dtype], np.random.default_rng(8)
    array = np.exp(5 * random.standard_normal(2_000_003)).astype(row.numpy)
    array[1_000_000:1_200_000] *= row.numpy.type(2.0**40)  # a band moves
    far = random.choice(array.size, 3000, replace=False)
    array[far] = adversarial("any bits", row, far.size)
    array[1_500_000:1_800_000:2] = 0
    squares, moments = ExactAccumulator(gpu, row, SumKind.SQUARES), ExactAccumulator(gpu, row, SumKind.MOMENTS)
    for made in (squares, moments):
        made.add(on_device(array, 1))
    values, products = ExactState.empty(Terms.VALUES).add(array), ExactState.empty(Terms.PRODUCTS).add(array)
    assert squares.states() == (products,)
    assert moments.states() == (values, products)


def portable(kind: SumKind, *arrays: NDArray[Any]) -> tuple[ExactState, ...]:
    """The value of the portable definition for one array, or two."""
    values, products = ExactState.empty(Terms.VALUES), ExactState.empty(Terms.PRODUCTS)
    match kind:
        case SumKind.MOMENTS:
            return values.add(*arrays), products.add(*arrays)
        case SumKind.PRODUCTS:
            return (products.add_products(*arrays),)
        case SumKind.SQUARES:
            return (products.add(*arrays),)
    return (values.add(*arrays, magnitudes=kind is SumKind.MAGNITUDES),)


def operands(kind: SumKind, name: str, dtype: DType, size: int) -> tuple[NDArray[Any], ...]:
    """One array of the kind of data, or two that differ."""
    return tuple(adversarial(name, dtype, size, seed) for seed in range(2 if kind is SumKind.PRODUCTS else 1))


@pytest.mark.parametrize("kind", SumKind)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_state_is_the_portable_one_on_adversarial_data(gpu: Gpu, dtype: str, kind: SumKind) -> None:
    row, wrong = DTYPES[dtype], []
    for number, name in enumerate(ADVERSARIAL):
        for size in SIZES:
            start = STARTS[(number + size) % len(STARTS)]
            arrays = operands(kind, name, row, size)
            added = ExactAccumulator(gpu, row, kind)
            added.add(*(on_device(array, start + 2 * place) for place, array in enumerate(arrays)))
            if added.states() != portable(kind, *arrays):
                wrong.append((name, size, start))
    assert wrong == []


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["all largest", "all most negative", "all just below one", "all smallest"])
def test_budgets_and_carries_hold_on_long_runs(gpu: Gpu, name: str, dtype: str) -> None:
    row, size = DTYPES[dtype], (1 << 26) + 1
    values = adversarial(name, row, 1)
    array = repeated(values, size)
    few = copy(gpu)
    few.multiprocessors = 1  # each thread meets tens of thousands of elements
    for kind in SumKind:
        added = ExactAccumulator(few, row, kind)
        added.add(*[array, array][: 1 + (kind is SumKind.PRODUCTS)])
        assert added.states() == times(
            size, portable(kind, *([values, values] if kind is SumKind.PRODUCTS else [values]))
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_order_chunks_and_block_sizes_do_not_show(gpu: Gpu, dtype: str) -> None:
    row, random = DTYPES[dtype], np.random.default_rng(7)
    array = np.concatenate([adversarial(name, row, 20_011) for name in ("any finite", "cancelling", "special")])
    small = copy(gpu)
    small.shared_per_block = 64 << 10  # the launches of a GPU with less shared memory
    for kind in SumKind:
        operands = [array, np.roll(array, 1)][: 1 + (kind is SumKind.PRODUCTS)]
        seen = {portable(kind, *operands)}
        for device in (gpu, small):
            for _ in range(3):
                order = random.permutation(array.size)
                added = ExactAccumulator(device, row, kind)
                for part in np.split(order, np.sort(random.integers(0, array.size, 5))):
                    added.add(*(on_device(operand[part], int(random.integers(8))) for operand in operands))
                seen.add(added.states())
        assert len(seen) == 1, kind


def test_states_of_several_dtypes_merge(gpu: Gpu) -> None:
    whole = ExactState.empty(Terms.VALUES)
    merged = ExactState.empty(Terms.VALUES)
    for dtype in FLOATS:
        array = adversarial("any finite", DTYPES[dtype], 1001)
        added = ExactAccumulator(gpu, DTYPES[dtype], SumKind.VALUES)
        added.add(on_device(array))
        whole, merged = whole.add(array), merged.merge(*added.states())
    assert merged == whole


@pytest.mark.parametrize("dtype", FLOATS)
def test_subnormals_survive(gpu: Gpu, dtype: str) -> None:
    row, size = DTYPES[dtype], 100_003
    array = adversarial("all smallest", row, size)
    for kind, scale in ((SumKind.VALUES, 1), (SumKind.SQUARES, 2)):
        added = ExactAccumulator(gpu, row, kind)
        added.add(on_device(array))
        assert added.states()[0].units == size << (scale * row.min_exponent - ORIGIN[kind.terms])


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_accumulator_goes_on_after_its_state_was_read(gpu: Gpu, dtype: str) -> None:
    row = DTYPES[dtype]
    parts = [adversarial("special", row, 5001, seed) for seed in range(3)]
    added, want = ExactAccumulator(gpu, row, SumKind.VALUES), ExactState.empty(Terms.VALUES)
    for part in parts:
        added.add(on_device(part))
        want = want.add(part)
        assert added.states() == (want,)
    numbers = sum(np.count_nonzero(~np.isnan(part.astype(np.float64))) for part in parts)
    assert added.states(omit_nan=True)[0].count == numbers


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "sum_squares", "norm2"])
def test_nan_elements_are_left_out_where_asked(backend: CudaBackend, op: str, dtype: str) -> None:
    array = adversarial("special", DTYPES[dtype], 30_001)
    kept = array[~np.isnan(array.astype(np.float64))]
    omitted = backend.reduce(ArraySource(array), op, strategy="exact", nan_policy=NanPolicy.OMIT)
    plain = backend.reduce(ArraySource(kept), op, strategy="exact")
    assert (omitted.count, omitted.state) == (kept.size, plain.state)


@pytest.mark.parametrize("dtype", [name for name, row in DTYPES.items() if not row.is_float])
def test_integers_of_every_width_are_exact(backend: CudaBackend, dtype: str) -> None:
    row = DTYPES[dtype]
    for op, kind in (("sum", SumKind.VALUES), ("norm1", SumKind.MAGNITUDES), ("sum_squares", SumKind.SQUARES)):
        for name in ("benign", "special", "equal"):
            for size in (1, 31, 33, 257, 65_537):
                array = data(name, row, size)
                result = backend.reduce(ArraySource(array), op, strategy="exact")
                assert result.state == portable(kind, array)[0].to_bytes(), (op, name, size)


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", (1 << 32) + 7), ("float32", (1 << 31) + 5)])
def test_more_than_two_to_the_31_floats_are_all_added(gpu: Gpu, dtype: str, size: int) -> None:
    import cupy

    row = DTYPES[dtype]
    if cupy.cuda.runtime.memGetInfo()[0] < 2 * size * row.itemsize:
        pytest.skip(f"needs {2 * size * row.itemsize:,} bytes of free memory")
    value = np.array([1 + 2.0 ** (1 - row.precision)]).astype(row.numpy)
    array = repeated(value, size)
    try:
        for kind in SumKind:
            added = ExactAccumulator(gpu, row, kind)
            added.add(*[array, array][: 1 + (kind is SumKind.PRODUCTS)])
            assert added.states() == times(
                size, portable(kind, *([value, value] if kind is SumKind.PRODUCTS else [value]))
            )
    finally:
        del array
        cupy.get_default_memory_pool().free_all_blocks()
