"""The same bits everywhere: one state, whatever the order, the pieces, the device, the number of devices and the way in
which their parts are put together; and that state is the sum of Python's integers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.accumulators import dtype_of, on_device
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.exact import (
    SHAPES,
    ExactAccumulator,
    SumKind,
    limbs_of,
    states_of_limbs,
)
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.scaling.nccl import Communicators
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.source import ArraySource

FLOATS = tuple(SHAPES)
SIZE = 4099
DATA = (
    "any finite",
    "any bits",
    "special",
    "cancelling",
    "subnormal",
    "greatest",
    "drifting",
    "zeros",
    "negative zeros",
)
MADE = (*DATA, "overflowing, then cancelled", "infinite", "infinite both ways")
PERIOD = 4099  # a prime, so that a pattern meets every lane of every thread


@pytest.fixture(scope="module")
def gpus() -> Iterator[list[Gpu]]:
    """All that this process can see."""
    try:
        gpus = [Gpu(row.index) for row in visible_devices()]
    except Unavailable as error:
        pytest.skip(str(error))
    if not gpus:
        pytest.skip("no GPU")
    yield gpus
    for gpu in gpus:
        gpu.close()


def in_integers(kind: SumKind, arrays: Sequence[NDArray[Any]]) -> tuple[ExactState, ...]:
    """The states of a kind by Python's integers, from the bits of the elements."""
    elements = [_taken_apart(array) for array in arrays]
    if kind is SumKind.MOMENTS:
        return _summed(Terms.VALUES, elements[0]), _summed(Terms.PRODUCTS, _products(elements[0], elements[0]))
    if kind in (SumKind.SQUARES, SumKind.PRODUCTS):
        return (_summed(Terms.PRODUCTS, _products(elements[0], elements[-1])),)
    if kind is SumKind.MAGNITUDES:
        elements[0] = [(abs(whole), place, what and abs(what), False) for whole, place, what, _ in elements[0]]
    return (_summed(Terms.VALUES, elements[0]),)


Term = tuple[int, int, float, bool]
"""A term as whole · 2**place with a place in units of the state; what it is if not finite, else 0; whether it is −0."""


def _taken_apart(array: NDArray[Any]) -> list[Term]:
    dtype = dtype_of(array)
    width, fraction = 8 * dtype.itemsize, dtype.precision - 1
    top, hidden = 2 * dtype.max_exponent - 1, 1 << fraction
    terms = []
    for bits in array.view(f"u{dtype.itemsize}").tolist():
        minus, field, rest = bits >> (width - 1), bits >> fraction & top, bits & (hidden - 1)
        if field == top:
            terms.append((0, 0, float("nan") if rest else float("-inf" if minus else "inf"), False))
            continue
        whole = rest + hidden if field else rest
        place = max(field, 1) - 1 + dtype.min_exponent + 1074
        terms.append((-whole if minus else whole, place, 0.0, bool(minus) and whole == 0))
    return terms


def _products(left: list[Term], right: list[Term]) -> list[Term]:
    return [_product(x, y) for x, y in zip(left, right, strict=True)]


def _product(x: Term, y: Term) -> Term:
    if x[2] or y[2]:  # NaN is true
        return 0, 0, _factor(x) * _factor(y), False
    minus = (x[0] < 0 or x[3]) != (y[0] < 0 or y[3])
    return x[0] * y[0], x[1] + y[1], 0.0, minus and x[0] * y[0] == 0


def _factor(x: Term) -> float:
    return x[2] or float((x[0] > 0) - (x[0] < 0))


def _summed(terms: Terms, elements: list[Term]) -> ExactState:
    sums: dict[int, int] = defaultdict(int)
    flags = Flags.NONE
    for whole, place, what, negative_zero in elements:
        sums[place] += whole
        if what:
            flags |= Flags.NAN if what != what else Flags.POS_INF if what > 0 else Flags.NEG_INF  # noqa: PLR0124
        if not negative_zero:
            flags |= Flags.NOT_NEGATIVE_ZERO
    return ExactState(terms, sum(whole << place for place, whole in sums.items()), len(elements), flags)


def added_in_pieces(gpu: Gpu, kind: SumKind, arrays: Sequence[NDArray[Any]], random: np.random.Generator) -> Any:
    """The accumulator on a GPU to which the arrays were added in random pieces from random addresses."""
    with gpu.active():
        exact_sum = ExactAccumulator(gpu, dtype_of(arrays[0]), kind)
        cuts = np.sort(random.integers(0, arrays[0].size, 3, endpoint=True))
        for parts in zip(*(np.split(array, cuts) for array in arrays), strict=True):
            exact_sum.add(*(on_device(part, int(random.integers(8))) for part in parts))
    return exact_sum


def shards(size: int, count: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
    """Random indices, each once, in so many parts."""
    return np.split(random.permutation(size), np.sort(random.integers(0, size, count - 1, endpoint=True)))


def merged(parts: Sequence[tuple[ExactState, ...]]) -> tuple[ExactState, ...]:
    whole = parts[0]
    for part in parts[1:]:
        whole = tuple(state.merge(other) for state, other in zip(whole, part, strict=True))
    return whole


@pytest.fixture(scope="module")
def groups(gpus: list[Gpu]) -> dict[int, Communicators]:
    """NCCL's communicators of the first 2, 3, … GPUs."""
    return {count: Communicators(gpus[:count], 0, count, None) for count in range(2, len(gpus) + 1)}


def all_reduced(
    group: Communicators, team: Sequence[Gpu], kind: SumKind, limbs: Sequence[Any]
) -> set[tuple[ExactState, ...]]:
    """The result of NCCL on each GPU."""
    received = []
    for gpu, limb in zip(team, limbs, strict=True):
        with gpu.active():
            received.append(limb.copy())
            gpu.stream.synchronize()
    group.all_reduce(list(limbs), received)
    states = set()
    for gpu, limb in zip(team, received, strict=True):
        with gpu.active():
            gpu.stream.synchronize()
            states.add(states_of_limbs(kind, limb.get()))
    return states


@pytest.mark.parametrize("kind", SumKind)
@pytest.mark.parametrize("dtype", FLOATS)
def test_all_devices_orders_pieces_and_merges_give_the_sum_of_pythons_integers(
    gpus: list[Gpu], groups: dict[int, Communicators], dtype: str, kind: SumKind
) -> None:
    row, random = DTYPES[dtype], np.random.default_rng(42)
    for data in MADE:
        arrays = [made(data, row, seed) for seed in range(2 if kind is SumKind.PRODUCTS else 1)]
        want = in_integers(kind, arrays)
        seen = {tuple(state.to_bytes() for state in want)}
        for team in (gpus[:count] for count in range(1, len(gpus) + 1)):
            parts = shards(SIZE, len(team), random)
            sums = [
                added_in_pieces(gpu, kind, [array[part] for array in arrays], random)
                for gpu, part in zip(team, parts, strict=True)
            ]
            fetched = []
            for gpu, exact_sum in zip(team, sums, strict=True):
                with gpu.active():
                    fetched.append(exact_sum.limbs.get())
            ways = [merged([states_of_limbs(kind, limbs) for limbs in fetched]), states_of_limbs(kind, sum(fetched))]
            if len(team) > 1:
                ways += all_reduced(groups[len(team)], team, kind, [exact_sum.limbs for exact_sum in sums])
            seen |= {tuple(state.to_bytes() for state in states) for states in ways}
        seen |= {tuple(state.to_bytes() for state in small_gpu(gpus[0], kind, arrays, random))}
        assert len(seen) == 1, data


def made(data: str, dtype: DType, seed: int) -> NDArray[Any]:
    """Adversarial data of SIZE elements, or what is only told apart by the order of additions."""
    if data in ADVERSARIAL:
        return adversarial(data, dtype, SIZE, seed)
    if data == "overflowing, then cancelled":
        half = adversarial("all largest", dtype, SIZE // 2)
        return np.concatenate([half, -half, adversarial("all smallest", dtype, SIZE % 2)])
    array = adversarial("any finite", dtype, SIZE, seed)
    array[SIZE // 3] = np.inf
    if data == "infinite both ways":
        array[-1] = -np.inf
    return array


def small_gpu(gpu: Gpu, kind: SumKind, arrays: Sequence[NDArray[Any]], random: np.random.Generator) -> tuple[Any, ...]:
    """The states by the launches of a GPU with less shared memory and one multiprocessor."""
    small = copy(gpu)
    small.shared_per_block, small.multiprocessors = 64 << 10, 1
    exact_sum = added_in_pieces(small, kind, arrays, random)
    with gpu.active():
        return states_of_limbs(kind, exact_sum.limbs.get())


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_cpu_and_every_gpu_give_jobs_the_same_states_and_values(gpus: list[Gpu], dtype: str) -> None:
    from warpfold.kernels.cuda.backend import CudaBackend

    row = DTYPES[dtype]
    backends: list[Backend] = [CpuBackend(), *(CudaBackend(gpu.index) for gpu in gpus)]
    for data in MADE:
        source, other = (ArraySource(made(data, row, seed)) for seed in range(2))
        for op in ("sum", "mean", "norm1", "sum_squares", "norm2", "dot", "var", "std"):
            seen = set()
            for backend in backends:
                reduction = backend.reduce(source, op, strategy="exact", other=other if op == "dot" else None)
                assert reduction.correctly_rounded
                seen.add((reduction.state, float(reduction.value).hex(), reduction.count, reduction.dtype))
            assert len(seen) == 1, (data, op, seen)
    for backend in backends:
        backend.close()


@pytest.mark.parametrize(("dtype", "multiple"), [("bfloat16", 2), ("float16", 1), ("float32", 1), ("float64", 1)])
def test_counts_around_multiples_of_two_to_the_31_are_no_border(gpus: list[Gpu], dtype: str, multiple: int) -> None:
    import cupy

    row, border = DTYPES[dtype], multiple << 31
    pattern = adversarial("any finite", row, PERIOD)
    gpu = gpus[0]
    with gpu.active():
        if cupy.cuda.runtime.memGetInfo()[0] < 3 * border * row.itemsize:
            pytest.skip(f"needs {3 * border * row.itemsize:,} bytes of free memory")
        array = cupy.tile(cupy.asarray(pattern.view(carrier(row))), -(-(border + 2) // PERIOD))
        for kind in (SumKind.VALUES, SumKind.MOMENTS, SumKind.PRODUCTS):
            for count in (border - 1, border, border + 1):
                exact_sum = ExactAccumulator(gpu, row, kind)
                parts = (array[:count],) * (2 if kind is SumKind.PRODUCTS else 1)
                exact_sum.add(*parts)
                states = states_of_limbs(kind, exact_sum.limbs.get())
                assert states == repeated(kind, pattern, count), (kind, count)
        del array, parts
        cupy.get_default_memory_pool().free_all_blocks()


def repeated(kind: SumKind, pattern: NDArray[Any], count: int) -> tuple[ExactState, ...]:
    """The states of `count` elements that repeat the pattern."""
    whole, rest = divmod(count, pattern.size)
    states = []
    arrays = [pattern] * 2 if kind is SumKind.PRODUCTS else [pattern]
    once, more = in_integers(kind, arrays), in_integers(kind, [array[:rest] for array in arrays])
    for first, other in zip(once, more, strict=True):
        units = whole * first.units + other.units
        states.append(ExactState(first.terms, units, count, first.flags | other.flags))
    return tuple(states)


@pytest.mark.parametrize("kind", SumKind)
def test_limbs_that_ran_out_of_room_go_on(gpus: list[Gpu], kind: SumKind) -> None:
    gpu, row = gpus[0], DTYPES["float64"]
    arrays = [adversarial("any finite", row, 5003, seed) for seed in range(2 if kind is SumKind.PRODUCTS else 1)]
    with gpu.active():
        exact_sum = ExactAccumulator(gpu, row, kind)
        for start in range(0, 5003, 1000):
            exact_sum.add(*(on_device(array[start : start + 1000], 1) for array in arrays))
            exact_sum._limbs._added = 1 << 25  # as after 2^25 additions: carries are resolved before the next
        assert states_of_limbs(kind, exact_sum.limbs.get()) == in_integers(kind, arrays)
        assert exact_sum.limbs.size == limbs_of(kind)
        assert set(ORIGIN) >= {state.terms for state in in_integers(kind, arrays)}
