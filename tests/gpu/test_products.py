"""Sums of products of two arrays along axes and by segments on a GPU, against exact integers and a CPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.pairs import PAIRS, pairs
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.source import ArraySource

Array = NDArray[Any]
Groups = Sequence[tuple[Array, Array]]
CHECKED = 8  # values of a shape, spread over all


def dots(
    gpu: Gpu, x: Array, y: Array, layout: Layout, starts: tuple[int, int], *, omit_nan: bool
) -> tuple[Array, Array, int]:
    """Values, how many pairs were left out of each, and how many values no window held."""
    dtype, rounding = DTYPES[x.dtype.name], Rounding(Finishing.SUM, omit_nan=omit_nan)
    left, right = (on_device(each, start) for each, start in zip((x, y), starts, strict=True))
    made = FinishedValues(gpu, left, layout, dtype, SumKind.PRODUCTS, rounding, other=right)
    made.start()
    wide = made.finish()
    return made.values.get(), made.omitted.get() if omit_nan else np.zeros(layout.count, int), wide


def check(values: Array, omitted: Array, groups: Groups, *, omit_nan: bool) -> None:
    assert values.size == len(groups)
    for number in sorted({*np.linspace(0, len(groups) - 1, CHECKED).astype(int).tolist()}):
        x, y = (np.ascontiguousarray(each) for each in groups[number])
        missing = np.isnan(x) | np.isnan(y)
        kept = ~missing if omit_nan else np.ones(x.size, bool)
        if kept.any():
            wanted = float(value_of(OPS["dot"], [ExactState.of_products(x[kept], y[kept])], x.dtype.name))
            assert float(values[number]).hex() == wanted.hex(), number
        assert omitted[number] == (missing.sum() if omit_nan else 0), number


# length and number of rows: of each shape of spans, at odd addresses, in parts
ROWS = (
    *((1, 50), (2, 1001), (3, 70), (4, 3000), (8, 3001), (12, 100), (32, 1000), (60, 100), (100, 40), (129, 50)),
    *((256, 300), (1000, 9), (1028, 9), (5000, 7), (16384, 40), (70_000, 3), (1 << 18, 3), (300_001, 2)),
)
COLUMNS = (
    *((1, 70_000), (2, 1 << 18), (3, 40_000), (4, 100), (7, 30_000), (8, 256), (30, 3000), (31, 700), (130, 5000)),
    *((256, 300), (1001, 300), (1024, 2000), (16384, 60), (100_000, 3), (3001, 1), (3000, 17)),
)


@pytest.mark.parametrize("data", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows(gpu: Gpu, dtype: str, data: str) -> None:
    for number, (length, rows) in enumerate(ROWS):
        x, y = pairs(data, DTYPES[dtype], rows * length, number)
        omit_nan, starts = number % 2 == 1, ((0, 0), (1, 1), (0, 1), (0, 0))[number % 4]
        values, omitted, _ = dots(gpu, x, y, RowsLayout(rows, length, x.size), starts, omit_nan=omit_nan)
        groups = list(zip(x.reshape(rows, length), y.reshape(rows, length), strict=True))
        check(values, omitted, groups, omit_nan=omit_nan)


@pytest.mark.parametrize("data", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns(gpu: Gpu, dtype: str, data: str) -> None:
    for number, (width, height) in enumerate(COLUMNS):
        x, y = pairs(data, DTYPES[dtype], width * height, number)
        omit_nan, starts = number % 2 == 1, ((0, 0), (1, 1), (0, 1), (0, 0))[number % 4]
        values, omitted, _ = dots(gpu, x, y, ColumnsLayout(width, height), starts, omit_nan=omit_nan)
        groups = list(zip(x.reshape(height, width).T, y.reshape(height, width).T, strict=True))
        check(values, omitted, groups, omit_nan=omit_nan)


@pytest.mark.parametrize("data", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segments(gpu: Gpu, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    for number, lengths in enumerate(
        (
            random.geometric(0.4, 4000) - 1,
            random.geometric(1 / 20, 2000),
            random.geometric(1 / 90, 500),
            random.geometric(1 / 3000, 50),
            np.array([0, 3, 400_000, 0, 1, *random.geometric(0.1, 5000).tolist()]),
        )
    ):
        offsets = np.concatenate([[2], 2 + np.cumsum(lengths)]).astype(np.int64)
        x, y = pairs(data, DTYPES[dtype], int(offsets[-1]) + 3, number)
        omit_nan, starts = number % 2 == 1, (number % 3, number % 2)
        values, omitted, _ = dots(gpu, x, y, OffsetsLayout.of(offsets), starts, omit_nan=omit_nan)
        groups = list(zip(np.split(x, offsets)[1:-1], np.split(y, offsets)[1:-1], strict=True))
        check(values, omitted, groups, omit_nan=omit_nan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_usual_data_need_hardly_a_second_look(gpu: Gpu, dtype: str) -> None:
    for length, rows in ROWS:
        for data in ("normal times normal", "negative zeros times normal"):
            x, y = pairs(data, DTYPES[dtype], rows * length, 1)
            for layout in (RowsLayout(rows, length, x.size), ColumnsLayout(length, rows)):
                assert dots(gpu, x, y, layout, (0, 0), omit_nan=False)[2] <= layout.count // 1000, (layout, data)


DOTS = (
    *(("float32", "float32"), ("float64", "float64"), ("bfloat16", "bfloat16"), ("float16", "float16")),
    *(("float16", "bfloat16"), ("float32", "float64"), ("bfloat16", "float32"), ("bool", "bool"), ("bool", "uint64")),
    *(("int8", "int8"), ("uint8", "int16"), ("uint32", "uint32"), ("int32", "uint32"), ("int8", "int64")),
    *(("int64", "int64"), ("uint64", "int64"), ("uint64", "uint64")),
)
SHAPES: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((300, 7), AlongAxes((1,))),
    ((9, 70_001), AlongAxes((1,))),
    ((20_001, 9), AlongAxes((0,), keepdims=True)),
    ((900, 300), AlongAxes((0,))),
    ((20, 30, 40), AlongAxes((1,))),
    ((20, 30, 40), AlongAxes((0, 2))),
    ((3, 0, 4), AlongAxes((1,))),
    ((90_001,), Segments((0, 0, 11, 20_000, 90_000))),
    ((90_001,), Segments(length=70)),
)


def elements(dtype: DType, size: int, data: str, seed: int) -> Array:
    if dtype.is_float:
        return adversarial(data, dtype, size, seed)
    least, most = dtype.bounds
    return np.random.default_rng(seed).choice(np.array([least, most, 0, 1], object), size).astype(dtype.numpy)


@pytest.mark.parametrize(("left", "right"), DOTS)
def test_dot_of_any_two_dtypes_has_the_values_and_states_of_a_cpu(backend: CudaBackend, left: str, right: str) -> None:
    cpu, rows = CpuBackend(), (DTYPES[left], DTYPES[right])
    for number, (shape, grouping) in enumerate(SHAPES):
        for data in ("any finite", "special"):
            size = int(np.prod(shape))
            x, y = (elements(row, size, data, seed).reshape(shape) for seed, row in enumerate(rows))
            if number % 2:
                x, y = np.asfortranarray(x), np.asfortranarray(y)
            policy = NanPolicy.OMIT if number % 3 == 1 and rows[0].is_float else NanPolicy.PROPAGATE
            made, wanted = (
                on.reduce_groups(
                    ArraySource(x), shape, grouping, "dot", nan_policy=policy, other=ArraySource(y),
                    states=data == "special" and size < 10_000,
                )
                for on in (backend, cpu)
            )  # fmt: skip
            assert (made.shape, made.dtype, made.counted()) == (wanted.shape, wanted.dtype, wanted.counted())
            assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (shape, data)
            states = [[[column[at] for at in range(len(column))] for column in each.states] for each in (made, wanted)]
            assert states[0] == states[1], (shape, data)


@pytest.mark.parametrize(("left", "right"), [("float32", "float32"), ("float16", "float32"), ("int32", "int64")])
def test_pairs_that_do_not_fit_a_gpu_are_reduced_in_blocks_and_pieces_with_the_same_bits(
    backend: CudaBackend, left: str, right: str
) -> None:
    small, rows = CudaBackend(0, room=20_000 * 12), (DTYPES[left], DTYPES[right])
    for shape, grouping in (
        ((3000, 70), AlongAxes((1,))),
        ((3000, 70), AlongAxes((0,))),
        ((7, 30_000), AlongAxes((1,))),
        ((40, 50, 60), AlongAxes((0, 2))),
        ((210_000,), Segments((0, 0, 11, 100, 60_000, 60_000, 200_000))),
    ):
        size = int(np.prod(shape))
        x, y = (ArraySource(elements(row, size, "any finite", seed).reshape(shape)) for seed, row in enumerate(rows))
        made, whole = (on.reduce_groups(x, shape, grouping, "dot", other=y) for on in (small, backend))
        assert (made.shape, made.dtype, made.counted()) == (whole.shape, whole.dtype, whole.counted())
        assert list(map(repr, made.listed())) == list(map(repr, whole.listed())), (shape, grouping)


def test_a_nan_of_either_array_is_refused(backend: CudaBackend) -> None:
    whole, pierced = np.ones((30, 40), np.float32), np.ones((30, 40), np.float32)
    pierced[1, 2] = np.nan
    for (x, y), what in (((pierced, whole), "element 42"), ((whole, pierced), "other element 42")):
        with pytest.raises(InvalidInput, match=f"^{what} is NaN"):
            backend.reduce_groups(
                ArraySource(x), x.shape, AlongAxes((0,)), "dot", nan_policy=NanPolicy.RAISE, other=ArraySource(y)
            )
