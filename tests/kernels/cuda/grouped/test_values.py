"""Squares and moments of many values on the host: launches and device code, against exact fractions, value by value."""

import ctypes
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.hard import HARD, hard
from tests.support.gpu.rounded import Exact
from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import HostGpu, aligned, as_cupy, host_array, small_shapes
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.grouped import ColumnsLayout, GroupedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.grouped.values import MARKS
from warpfold.kernels.dtypes import DTYPES

Array = NDArray[Any]
DATA = ("normal", "any finite", "special", "cancelling", "negative zeros", "all largest", "least and subnormal")
OPS = ("sum_squares", "norm2", "var", "std")
Squares = Callable[..., tuple[Array, Array]]


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Squares:
    """Values of an op, and which of them are marked."""
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    library: ctypes.CDLL = on_host.build_grouped()
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())

    def run(array: Array, layout: Layout, op: str, *, ddof: int = 0, omit_nan: bool = False) -> tuple[Array, Array]:
        gpu: Any = HostGpu(library)
        row, dtype = FINISHED_OPS[op], DTYPES[array.dtype.name]
        values = host_array(np.full(layout.count, 7, array.dtype))
        rounding, shapes = Rounding(row.finish, ddof, omit_nan), small_shapes(row.kind)
        made = GroupedValues(gpu, host_array(array), layout, dtype, row.kind, rounding, values, shapes)
        made.start()
        bits, mark = MARKS[dtype.name]
        marked = values.get().view(bits) == bits(mark)
        assert int(made.marked.get()[0]) == marked.sum()
        return values.get(), marked

    return run


def check(values: Array, marked: Array, groups: list[Exact], op: str, ddof: int = 0) -> None:
    """Every value is right that is not marked."""
    dtype = DTYPES[values.dtype.name]
    for number, (value, members) in enumerate(zip(values.tolist(), groups, strict=True)):
        if not marked[number]:
            wanted = members.value(op, dtype, ddof)
            assert float(value).hex() == wanted.hex(), (number, op, members.arrays[0][:20])


def exact(groups: Iterable[Array]) -> list[Exact]:
    """The elements of each value, for all ops."""
    return [Exact(group) for group in groups]


# length and start of rows, by all shapes of spans
ROWS = (
    (1, 0),
    (2, 0),
    (2, 1),
    (3, 0),
    (4, 0),
    (8, 0),
    (16, 0),
    (32, 0),
    (60, 0),
    (100, 0),
    (129, 1),
    (600, 0),
    (1100, 1),
)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_rows_are_correctly_rounded_or_marked(squares: Squares, dtype: str, data: str) -> None:
    for length, start in ROWS:
        rows = 37 if length < 50 else 5
        array = aligned(adversarial(data, DTYPES[dtype], rows * length, length), start)
        groups = exact(array.reshape(rows, length))
        for op, ddof in (("sum_squares", 0), ("norm2", 0), ("var", 1), ("std", 0)):
            values, marked = squares(array, RowsLayout(rows, length, array.size), op, ddof=ddof)
            check(values, marked, groups, op, ddof)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_long_rows_few_in_parts_and_wide_columns_are_right(squares: Squares, dtype: str) -> None:
    random = np.random.default_rng(5)
    layouts = (RowsLayout(130, 660, 130 * 660), RowsLayout(3, 9000, 27_000), ColumnsLayout(8192, 3))
    for layout, data in ((layout, data) for layout in layouts for data in ("normal", "wide", "far")):
        array = aligned(hard(data, layout.total, dtype, random) if data in HARD else random.random(layout.total), 0)
        array = aligned(array.astype(dtype), 0)
        rows = array.reshape(-1, layout.longest) if isinstance(layout, RowsLayout) else array.reshape(3, -1).T
        values, marked = squares(array, layout, "std", ddof=1)
        assert not marked.any()
        some = slice(None, None, 7 if layout.count > 1000 else 1)  # of very many, some from each place in a block
        check(values[some], marked[some], exact(rows[some]), "std", 1)


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_that_are_hard_to_finish_are_right_and_seldom_marked(squares: Squares, dtype: str, kind: str) -> None:
    random = np.random.default_rng(len(kind))
    for length in (2, 5, 32, 64, 1000):
        rows = 1000 // length + 5  # tests/gpu/test_grouped_values.py has more
        array = aligned(hard(kind, rows * length, dtype, random), 0)
        groups = exact(array.reshape(rows, length))
        for op in OPS:
            values, marked = squares(array, RowsLayout(rows, length, array.size), op, ddof=int(op == "var"))
            check(values, marked, groups, op, int(op == "var"))
            assert length == 2 or kind == "next to ties" or not marked.any()


@pytest.mark.parametrize("data", [*DATA, *HARD])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_columns_are_correctly_rounded_or_marked(squares: Squares, dtype: str, data: str) -> None:
    random = np.random.default_rng(3)
    for width, height in ((2, 300), (99, 2), (3, 8), (7, 31), (7, 601), (24, 40), (31, 70), (64, 50), (256, 30)):
        size = width * height
        array = hard(data, size, dtype, random) if data in HARD else adversarial(data, DTYPES[dtype], size, height)
        array = aligned(array, int(width == 64))
        groups = exact(array.reshape(height, width).T)
        for op in OPS:
            values, marked = squares(array, ColumnsLayout(width, height), op)
            check(values, marked, groups, op)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_segments_are_correctly_rounded_or_marked(squares: Squares, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    for mean in (3, 30, 300):
        edges = np.concatenate([[0], np.cumsum(random.geometric(1 / mean, 900 // mean + 3) - 1)]).astype(np.int64)
        array = aligned(adversarial(data, DTYPES[dtype], int(edges[-1]), mean), 0)
        groups = exact(array[low:high] for low, high in pairwise(edges))
        for op in OPS:
            values, marked = squares(array, OffsetsLayout(host_array(edges), edges), op)
            check(values, marked, groups, op)


def test_values_with_a_nan_are_marked_where_nans_are_left_out(squares: Squares) -> None:
    array = np.ones(320, np.float32)
    array[[3, 40]] = np.nan
    values, marked = squares(array, RowsLayout(10, 32, 320), "sum_squares", omit_nan=True)
    assert np.flatnonzero(marked).tolist() == [0, 1]
    assert values[2:].tolist() == [32.0] * 8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_next_to_a_tie_are_right(squares: Squares, dtype: str) -> None:
    """The square of an odd number is a tie where it has one bit more than a result; that of a small number decides."""
    random, bits = np.random.default_rng(11), {"float32": 12, "float64": 26}[dtype]
    for length in (2, 4, 6, 16, 60):
        odd = random.integers(1 << bits - 1, int(2 ** (bits - 0.5)), 50) * 2 + 1
        array = np.zeros((50, length), dtype)
        array[:, 0] = odd
        array[:, -1] = random.choice([0, 2.0**-30, 2.0**-100, 2.0**-140], 50)
        groups = exact(array)
        for op in ("sum_squares", "norm2"):
            values, marked = squares(aligned(array.reshape(-1), 0), RowsLayout(50, length, array.size), op)
            check(values, marked, groups, op)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_deviations_of_two_elements_are_never_marked(squares: Squares, dtype: str) -> None:
    """Half of their distance is a tie in a quarter of all cases."""
    array = aligned(np.random.default_rng(3).standard_normal(2000).astype(dtype), 0)
    edges = np.concatenate([[0], np.cumsum(np.random.default_rng(4).integers(1, 4, 900))]).astype(np.int64)
    rows, segments = RowsLayout(1000, 2, 2000), OffsetsLayout(host_array(edges), edges)
    split = np.split(array[: edges[-1]], edges[1:-1])
    columns = (ColumnsLayout(1000, 2), list(array.reshape(2, -1).T))
    for layout, groups in ((rows, list(array.reshape(-1, 2))), (segments, split), columns):
        values, marked = squares(array, layout, "std")
        check(values, marked, exact(groups), "std")
        assert not marked.any()
