"""Elements of given ranks on a GPU: the keys that NumPy sorts to these places."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.ranks.digits import MOST_RANKS, DigitCounts
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import NanPolicy, Parameters, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource

KINDS = ("random", "equal", "two values", "neighbours")


def patterns(dtype: DType, kind: str, size: int) -> NDArray[Any]:
    """Bits of elements of every kind, NaN, infinities and both zeros among the random ones."""
    random, width = np.random.default_rng(), 8 * dtype.itemsize
    if dtype.name == "bool":
        return random.integers(0, 2, size, dtype=np.uint8)
    word = np.dtype(f"uint{width}")
    if kind == "random":
        bits: NDArray[Any] = random.integers(0, (1 << width) - 1, size, dtype=word, endpoint=True)
        return bits
    spread = {"equal": 1, "two values": 2, "neighbours": 300 if width > 8 else 5}[kind]
    least = int(random.integers(0, (1 << width) - spread, dtype=word))
    near: NDArray[Any] = random.integers(0, spread, size, dtype=word) + word.type(least)
    return near.astype(word)


def keys_of(bits: NDArray[Any], dtype: DType) -> NDArray[np.uint64]:
    """The keys by definition: patterns that sort as the numbers do, NaN last."""
    width = 8 * dtype.itemsize
    sign, all_ones, wide = 1 << (width - 1), (1 << width) - 1, bits.astype(np.uint64)
    if dtype.name == "bool" or dtype.name.startswith("uint"):
        return wide
    negative = wide & np.uint64(sign) != 0
    if not dtype.is_float:
        return wide ^ np.uint64(sign)
    infinity = (2 * dtype.max_exponent - 1) << (dtype.precision - 1)
    keys = np.where(negative, wide ^ np.uint64(all_ones), wide | np.uint64(sign))
    return np.where(wide & np.uint64(sign - 1) > infinity, np.uint64(all_ones), keys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DTYPES)
def test_ranks_lead_to_the_keys_that_sorting_puts_there(gpu: Gpu, name: str, kind: str) -> None:
    import cupy

    dtype = DTYPES[name]
    for size, start, pieces in ((1, 0, 1), (1000, 1, 1), (300_001, 3, 1), (2_000_003, 1, 3)):
        bits = patterns(dtype, kind, size + start)
        array = cupy.asarray(bits).view(carrier(dtype))[start:]
        ranks = [0, size - 1, size // 2, *np.random.default_rng().integers(0, size, 3 * MOST_RANKS // 2).tolist()]
        cuts = [size * part // pieces for part in range(pieces + 1)]
        parts = [array[i:j] for i, j in itertools.pairwise(cuts)]
        keys = DigitCounts(gpu, dtype, lambda parts=parts: iter(parts)).keys(ranks)  # type: ignore[misc]
        assert keys.tolist() == np.sort(keys_of(bits[start:], dtype))[ranks].tolist(), size


QUESTIONS = (
    ("median", Parameters()),
    ("quantile", Parameters(q=(0.0, 0.3, 0.5, 0.99, 1.0), method="linear")),
    ("quantile", Parameters(q=0.25, method="inverted_cdf")),
    ("quantile", Parameters(q=tuple(k / 70 for k in range(71)), method="hazen")),
)
LAYOUTS: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((40, 30), AlongAxes((0,))),
    ((40, 30), AlongAxes((1,))),
    ((4, 700), AlongAxes((1,))),
    ((700, 4), AlongAxes((0,))),
    ((3, 50, 9), AlongAxes((1,))),
    ((2, 300_001), AlongAxes((1,))),
    ((1000,), AlongAxes(None)),
    ((1000,), Segments(length=64)),
    ((1000,), Segments(length=65)),
    ((1000,), Segments(offsets=(0, 0, 1, 65, 130, 400, 400, 1000))),
    ((0,), Segments(offsets=(0, 0))),
)


def elements(dtype: DType, size: int, *, nans: bool) -> NDArray[Any]:
    """Elements of all exponents; with `nans` some of a float are NaN."""
    array = np.ascontiguousarray(patterns(dtype, "random", size)).view(dtype.numpy).copy()
    missing = array != array  # noqa: PLR0124 - NaN
    if not nans and dtype.is_float:
        array[missing] = 1
    return array


def alike(first: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether values are the same, with the signs of zeros, or both NaN."""
    return [repr(value) for value in first] == [repr(value) for value in other]


@pytest.mark.parametrize("policy", [NanPolicy.PROPAGATE, NanPolicy.OMIT])
@pytest.mark.parametrize("name", DTYPES)
def test_quantiles_have_the_bits_of_the_cpu(backend: CudaBackend, name: str, policy: NanPolicy) -> None:
    dtype, cpu = DTYPES[name], CpuBackend()
    for op, parameters in QUESTIONS:
        asked = op_named(op).having(parameters)
        for shape, grouping in LAYOUTS:
            source = ArraySource(elements(dtype, math.prod(shape), nans=policy is NanPolicy.OMIT).reshape(shape))
            made = [each.reduce_groups(source, shape, grouping, asked, nan_policy=policy) for each in (backend, cpu)]
            assert alike(made[0].listed(), made[1].listed()), (op, parameters, shape, grouping)
            assert made[0].counted() == made[1].counted()
            assert made[0].shape == made[1].shape
        if asked.listed is None:
            source = ArraySource(elements(dtype, 70_001, nans=policy is NanPolicy.OMIT))
            mine, other = (each.reduce(source, asked, nan_policy=policy) for each in (backend, cpu))
            assert (repr(mine.value), mine.count) == (repr(other.value), other.count)


def test_a_nan_makes_its_own_value_nan_and_no_other(backend: CudaBackend) -> None:
    array = np.arange(400.0).reshape(4, 100)
    array[2, 17] = np.nan
    made = backend.reduce_groups(ArraySource(array), array.shape, AlongAxes((1,)), "median")
    assert alike(made.listed(), [49.5, 149.5, math.nan, 349.5])
    assert math.isnan(backend.reduce(ArraySource(array.reshape(-1)), "median").value)
    with pytest.raises(InvalidInput, match="element 217 is NaN"):
        backend.reduce(ArraySource(array.reshape(-1)), "median", nan_policy=NanPolicy.RAISE)


def test_what_does_not_fit_the_gpu_is_read_for_each_digit(backend: CudaBackend) -> None:
    array = np.random.default_rng().standard_normal(3_000_000).astype(np.float32)
    small = CudaBackend(backend.gpu.index, room=1 << 20)
    try:
        listed = op_named("quantile").having(Parameters(q=(0.1, 0.9)))
        made = small.reduce_groups(ArraySource(array.reshape(3, -1)), (3, 1_000_000), AlongAxes((1,)), listed)
        wanted = CpuBackend().reduce_groups(ArraySource(array.reshape(3, -1)), (3, 1_000_000), AlongAxes((1,)), listed)
        assert alike(made.listed(), wanted.listed())
    finally:
        small.close()
