"""Exact sums of many values on a GPU, against exact integers; memory that is not written first reads as all ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.device import visible_devices
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.scaling.placement import Gang
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, NanPolicy, Terms, op_named
from warpfold.kernels.parts.grouping import AlongAxes, Grouping, Segments
from warpfold.kernels.parts.over_devices import reduce_spread
from warpfold.kernels.query import Shaped
from warpfold.kernels.source import ArraySource

Array = NDArray[Any]
CHECKED = 8  # values of a shape, spread over all


def sums(
    gpu: Gpu, array: Array, layout: Layout, *, start: int = 0, mean: bool = False, omit_nan: bool = False
) -> tuple[Array, Array, FinishedValues, int]:
    """Values, how many elements were left out of each, the sums, and how many values no window held."""
    dtype = DTYPES[array.dtype.name]
    rounding = Rounding(Finishing.MEAN if mean else Finishing.SUM, omit_nan=omit_nan)
    made = FinishedValues(gpu, on_device(array, start), layout, dtype, SumKind.VALUES, rounding)
    made.start()
    wide = made.finish()
    omitted = made.omitted.get() if omit_nan else np.zeros(made.values.size, int)
    return made.values.get(), omitted, made, wide


def check(values: Array, omitted: Array, groups: Sequence[Array], *, mean: bool, omit_nan: bool) -> None:
    assert values.size == len(groups)
    for number in sorted({*np.linspace(0, len(groups) - 1, CHECKED).astype(int).tolist()}):
        members = np.ascontiguousarray(groups[number])
        missing = np.isnan(members)
        kept = members[~missing] if omit_nan else members
        state = ExactState.empty(Terms.VALUES).add(kept)
        if kept.size:
            wanted = float(value_of(OPS["mean" if mean else "sum"], [state], members.dtype.name))
            assert float(values[number]).hex() == wanted.hex(), number
        assert omitted[number] == (missing.sum() if omit_nan else 0), number


ROWS = (
    *((1, 50), (2, 1001), (3, 70), (4, 3000), (8, 3001), (12, 100), (20, 77), (32, 1000), (60, 100), (100, 40)),
    *((128, 300), (129, 50), (250, 30), (512, 40), (1000, 9), (1024, 70), (1028, 9), (5000, 7), (16384, 40)),
    *((70_000, 3), (1 << 18, 3), (300_001, 2)),
)


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows(gpu: Gpu, dtype: str, data: str) -> None:
    for number, (length, rows) in enumerate(ROWS):
        array = adversarial(data, DTYPES[dtype], rows * length, length)
        mean, omit_nan, start = number % 3 == 1, number % 2 == 1, int(number % 5 == 4)
        values, omitted, _, _ = sums(
            gpu, array, RowsLayout(rows, length, array.size), start=start, mean=mean, omit_nan=omit_nan
        )
        check(values, omitted, list(array.reshape(rows, length)), mean=mean, omit_nan=omit_nan)


COLUMNS = (
    *((1, 70_000), (2, 100_001), (2, 1 << 18), (3, 40_000), (4, 100), (7, 30_000), (8, 256), (30, 3000), (31, 700)),
    *((32, 9000), (128, 7000), (130, 5000), (256, 300), (1000, 700), (1001, 300), (1024, 2000), (1027, 3)),
    *((16384, 60), (100_000, 3), (3001, 1), (3000, 7), (3000, 16), (3000, 17)),
)


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns(gpu: Gpu, dtype: str, data: str) -> None:
    for number, (width, height) in enumerate(COLUMNS):
        array = adversarial(data, DTYPES[dtype], width * height, height)
        mean, omit_nan, start = number % 3 == 1, number % 2 == 1, int(number % 5 == 4)
        values, omitted, _, _ = sums(
            gpu, array, ColumnsLayout(width, height), start=start, mean=mean, omit_nan=omit_nan
        )
        check(values, omitted, list(array.reshape(height, width).T), mean=mean, omit_nan=omit_nan)


@pytest.mark.parametrize("data", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segments(gpu: Gpu, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    for number, lengths in enumerate(
        (
            random.geometric(0.4, 4000) - 1,
            random.geometric(1 / 4, 4000),
            random.geometric(1 / 20, 2000),
            random.geometric(1 / 90, 500),
            random.geometric(1 / 3000, 50),
            np.array([0, 3, 400_000, 0, 1, *random.geometric(0.1, 500).tolist()]),
        )
    ):
        offsets = np.concatenate([[2], 2 + np.cumsum(lengths)]).astype(np.int64)
        array = adversarial(data, DTYPES[dtype], int(offsets[-1]) + 3, lengths.size)
        layout = OffsetsLayout.of(offsets)
        mean, omit_nan = number % 2 == 1, number % 3 == 1
        values, omitted, _, _ = sums(gpu, array, layout, start=number % 4, mean=mean, omit_nan=omit_nan)
        check(values, omitted, np.split(array, offsets)[1:-1], mean=mean, omit_nan=omit_nan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_more_segments_are_left_than_find_room_in_the_list(gpu: Gpu, dtype: str) -> None:
    """Data of too many exponents for a stream: segments are found by their marks, and the list is empty afterwards."""
    lengths = np.random.default_rng(3).geometric(1 / 20, 250_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    array = adversarial("any finite", DTYPES[dtype], int(offsets[-1]), 5)
    layout, groups = OffsetsLayout.of(offsets), np.split(array, offsets)[1:-1]
    for data in (array, np.ones_like(array)):
        values, omitted, made, _ = sums(gpu, data, layout)
        assert made.kernel == "segments_streamed"
        check(values, omitted, groups if data is array else np.split(data, offsets)[1:-1], mean=False, omit_nan=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_value_has_the_bits_of_a_cpu(gpu: Gpu, dtype: str) -> None:
    backend = CpuBackend()
    shapes: list[tuple[tuple[int, int], Grouping, Layout]] = [
        ((9000, 32), AlongAxes((1,)), RowsLayout(9000, 32, 9000 * 32)),
        ((900, 1024), AlongAxes((1,)), RowsLayout(900, 1024, 900 * 1024)),
        ((9, 100_000), AlongAxes((1,)), RowsLayout(9, 100_000, 900_000)),
        ((32, 9000), AlongAxes((0,)), ColumnsLayout(9000, 32)),
        ((90_000, 8), AlongAxes((0,)), ColumnsLayout(8, 90_000)),
        ((1, 90_001), Segments(length=10), RowsLayout(9001, 10, 90_001)),
    ]
    for shape, grouping, layout in shapes:
        for data in ("normal", "lognormal", "any finite"):
            array = adversarial(data, DTYPES[dtype], shape[0] * shape[1], 5)
            for op in ("sum", "mean"):
                wanted = backend.reduce_groups(ArraySource(array), shape, grouping, op).values
                values = sums(gpu, array, layout, mean=op == "mean")[0]
                assert values.astype(np.float64).tobytes() == np.array(wanted, np.float64).tobytes(), (shape, data, op)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_usual_data_need_hardly_a_second_look(gpu: Gpu, dtype: str) -> None:
    for length, rows in ROWS:
        for data in ("normal", "mostly zeros", "negative zeros"):
            array = adversarial(data, DTYPES[dtype], rows * length, 1)
            for layout, outputs in (
                (RowsLayout(rows, length, array.size), rows),
                (ColumnsLayout(length, rows), length),
            ):
                assert sums(gpu, array, layout)[3] <= outputs // 1000, (layout, data)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_backend_reduces_arrays_of_any_layout_as_a_cpu_does(backend: CudaBackend, dtype: str) -> None:
    cpu = CpuBackend()
    array = adversarial("any finite", DTYPES[dtype], 40 * 30 * 20, 1).reshape(40, 30, 20)
    array[3, 5, 7] = np.nan
    groupings: tuple[Grouping, ...] = (
        *(AlongAxes((axis,), keepdims=True) for axis in range(3)),
        *(AlongAxes((axis, axis + 1)) for axis in range(2)),
        AlongAxes((0, 1, 2)),
        Segments(length=7),
        Segments((0, 0, 11, 20_000, 24_000)),
    )
    for grouping in groupings:
        for laid in (array, np.asfortranarray(array)):
            for op, policy in (("sum", NanPolicy.PROPAGATE), ("mean", NanPolicy.OMIT)):
                made, wanted = (
                    on.reduce_groups(ArraySource(laid), array.shape, grouping, op, nan_policy=policy)
                    for on in (backend, cpu)
                )
                assert (made.shape, made.counted()) == (wanted.shape, wanted.counted())
                assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (grouping, op)
    with pytest.raises(InvalidInput, match="is NaN, and nan_policy is raise"):
        backend.reduce_groups(ArraySource(array), array.shape, groupings[0], "sum", nan_policy=NanPolicy.RAISE)
    with pytest.raises(InvalidInput, match=r"prod of .* needs the backend"):
        backend.reduce_groups(ArraySource(array), array.shape, groupings[0], "prod")


OPS_OF = {
    "float32": ("norm1", "sum_squares", "norm2", "var", "std", "min", "max", "norm_inf", "argmin", "argmax", "all"),
    "float64": ("var", "max", "argmin", "count_nonzero"),
    "bfloat16": ("sum", "mean", "std", "min", "argmax"),
    "int8": ("sum", "mean", "norm1", "sum_squares", "var", "min", "argmax"),
    "int32": ("sum", "sum_squares", "norm_inf", "max"),
    "int64": ("sum_squares", "std"),
    "uint64": ("sum", "mean", "norm1", "sum_squares", "norm2", "var", "std", "max", "argmin"),
    "bool": ("sum", "prod", "min", "argmax", "any", "count_nonzero"),
}


@pytest.mark.parametrize("dtype", OPS_OF)
@pytest.mark.usefixtures("gpu")
def test_other_ops_have_the_values_of_a_cpu(backend: CudaBackend, dtype: str) -> None:
    cpu, row = CpuBackend(), DTYPES[dtype]
    shapes: tuple[tuple[tuple[int, ...], Grouping], ...] = (
        ((300, 7), AlongAxes((1,))),
        ((9, 70_001), AlongAxes((1,))),
        ((70_001, 9), AlongAxes((0,))),
        ((900, 300), AlongAxes((0,))),
        ((20, 30, 40), AlongAxes((1,))),
        ((90_001,), Segments((0, 0, 11, 20_000, 90_000))),
    )
    for number, (shape, grouping) in enumerate(shapes):
        size = int(np.prod(shape))
        for data in ("any finite", "special"):
            if row.is_float:
                array = adversarial(data, row, size, number)
            else:
                least, most = row.bounds
                edges = np.array([least, most, 0, 1], object)
                array = np.random.default_rng(number).choice(edges, size).astype(row.numpy)
            laid = array.reshape(shape) if number % 2 else np.asfortranarray(array.reshape(shape))
            policy = NanPolicy.OMIT if number % 3 == 1 else NanPolicy.PROPAGATE
            for op in OPS_OF[dtype]:
                made, wanted = (
                    on.reduce_groups(ArraySource(laid), shape, grouping, op, nan_policy=policy) for on in (backend, cpu)
                )
                assert (made.shape, made.dtype, made.counted()) == (wanted.shape, wanted.dtype, wanted.counted())
                assert list(map(repr, made.listed())) == list(map(repr, wanted.listed())), (shape, op, data)


IN_PIECES: tuple[tuple[tuple[int, ...], Grouping], ...] = (
    ((3000, 70), AlongAxes((1,))),
    ((3000, 70), AlongAxes((0,))),
    ((7, 30_000), AlongAxes((1,))),
    ((40, 50, 60), AlongAxes((1,))),
    ((40, 50, 60), AlongAxes((1, 2), keepdims=True)),
    ((210_000,), Segments(length=11)),
    ((210_000,), Segments((0, 0, 11, 100, 60_000, 60_000, 200_000))),
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_does_not_fit_a_gpu_is_reduced_in_blocks_and_pieces_with_the_same_bits(
    backend: CudaBackend, dtype: str
) -> None:
    small = CudaBackend(0, room=20_000 * DTYPES[dtype].itemsize)
    for shape, grouping in IN_PIECES:
        array = adversarial("any finite", DTYPES[dtype], int(np.prod(shape)), 2).reshape(shape)
        for laid in (array, np.asfortranarray(array)):
            for op in ("sum", "mean", "max", "std"):
                made, whole = (
                    on.reduce_groups(ArraySource(laid), shape, grouping, op, nan_policy=NanPolicy.OMIT)
                    for on in (small, backend)
                )
                assert (made.shape, made.dtype, made.counted()) == (whole.shape, whole.dtype, whole.counted())
                assert list(map(repr, made.listed())) == list(map(repr, whole.listed())), (shape, grouping, op)


def test_several_gpus_together_have_the_bits_of_one(backend: CudaBackend) -> None:
    gpus = len(visible_devices())
    if gpus < 2:
        pytest.skip("there is one GPU")
    members = [CudaBackend(number).at_once() for number in range(gpus)]
    for shape, grouping in IN_PIECES:
        source = ArraySource(adversarial("any finite", DTYPES["float32"], int(np.prod(shape)), 3).reshape(shape))
        whole = backend.reduce_groups(source, shape, grouping, "sum")
        for most in (20_000, 1 << 20):
            query = Shaped(source=source, shape=shape, grouping=grouping, op=op_named("sum"))
            made = reduce_spread(members, query, most)
            assert list(map(repr, made.listed())) == list(map(repr, whole.listed())), (shape, grouping)


def test_a_gang_has_the_bits_of_one_gpu(backend: CudaBackend) -> None:
    gang = Gang()
    for shape, grouping in IN_PIECES:
        source = ArraySource(adversarial("any finite", DTYPES["float64"], int(np.prod(shape)), 4).reshape(shape))
        made, whole = (on.reduce_groups(source, shape, grouping, "mean") for on in (gang, backend))
        assert list(map(repr, made.listed())) == list(map(repr, whole.listed())), (shape, grouping)
