"""Exact sums of many values on the host: launches and device code, against exact fractions, value by value."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.pairs import PAIRS, pairs
from tests.support.kernels import on_host
from tests.support.kernels.grouped_on_host import HostGpu, aligned, as_cupy, host_array, small_shapes
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, Terms

Array = NDArray[Any]

# A GPU has all kinds (tests/gpu/test_grouped.py).
DATA = ("normal", "any finite", "special", "cancelling", "negative zeros", "all largest", "least and subnormal")
Sums = Callable[..., tuple[Array, Array, HostGpu, int]]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    if on_host.COMPILER is None or sys.platform != "linux":
        pytest.skip("needs g++ to build the device code for the host")
    return on_host.build_grouped()


@pytest.fixture
def sums(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Sums:
    """Values and how many elements were left out of each, the kernels that ran, and how many values no window held."""
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())

    def run(array: Array, layout: Layout, *, mean: bool, omit_nan: bool = False) -> tuple[Array, Array, HostGpu, int]:
        gpu: Any = HostGpu(library)
        dtype = DTYPES[array.dtype.name]
        rounding, kind = Rounding(Finishing.MEAN if mean else Finishing.SUM, omit_nan=omit_nan), SumKind.VALUES
        made = FinishedValues(gpu, host_array(array), layout, dtype, kind, rounding, shapes=small_shapes(kind))
        made.start()
        wide = made.finish()
        omitted = made.omitted.get() if omit_nan else np.zeros(made.values.size, int)
        return made.values.get(), omitted, gpu, wide

    return run


def expected(op: str, members: Array, *, omit_nan: bool) -> float | None:
    """The value of the op for these elements; None where any will do, for there is none."""
    kept = members[~np.isnan(members)] if omit_nan else members
    if not kept.size:
        return None
    state = ExactState.empty(Terms.VALUES).add(np.ascontiguousarray(kept))
    return float(value_of(OPS[op], [state], members.dtype.name))


def check(values: Array, omitted: Array, groups: list[Array], *, mean: bool, omit_nan: bool) -> None:
    assert values.size == len(groups)
    for number, (value, members) in enumerate(zip(values.tolist(), groups, strict=True)):
        wanted = expected("mean" if mean else "sum", members, omit_nan=omit_nan)
        assert wanted is None or float(value).hex() == wanted.hex(), (number, members[:20])
    left_out = [int(np.isnan(members).sum()) if omit_nan else 0 for members in groups]
    assert omitted.tolist() == left_out


# length and start of rows: pairs, whole reads in registers, at odd addresses, by warps, in parts, in parts of parts
ROWS = (
    *((1, 0), (2, 0), (2, 1), (3, 0), (4, 0), (8, 0), (12, 0), (32, 0), (100, 0), (128, 0), (129, 1)),
    *((1100, 0), (5000, 0)),
)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_means_of_rows_are_correctly_rounded(sums: Sums, dtype: str, data: str) -> None:
    for length, start in ROWS:
        rows = 5 if length < 1000 else 2
        array = aligned(adversarial(data, DTYPES[dtype], rows * length, length), start)
        layout = RowsLayout(rows, length, array.size)
        for mean, omit_nan in ((False, False), (True, data == "special")):
            values, omitted, _, _ = sums(array, layout, mean=mean, omit_nan=omit_nan)
            check(values, omitted, list(array.reshape(rows, length)), mean=mean, omit_nan=omit_nan)


def test_a_mean_hardly_above_a_tie_is_rounded_up(sums: Sums) -> None:
    row = np.array([1.0] * 59 + [3.0, 62 * 2.0**-53 - 2.0**-53, 2.0**-53 + 2.0**-105])  # 62 (1 + 2^−53) + 2^−105
    array = aligned(np.concatenate([row, -row]), 0)
    values, _, _, _ = sums(array, RowsLayout(2, 62, 124), mean=True)
    assert values.tolist() == [1 + 2.0**-52, -1 - 2.0**-52]


def test_means_that_are_ties_need_no_second_look(sums: Sums) -> None:
    random = np.random.default_rng(6)
    for length in (6, 82, 94, 98):
        rows = np.repeat(random.integers(2**52, 2**53 - 100, 40).astype(np.float64), length).reshape(40, length)
        rows[:, 0] += length // 2  # half of a unit of the mean
        rows[:, 1:3] += (-8.0, 8.0)
        array = aligned(rows.reshape(-1), 1)
        values, omitted, _, wide = sums(array, RowsLayout(40, length, array.size), mean=True)
        check(values, omitted, list(rows), mean=True, omit_nan=False)
        assert wide == 0, length


def test_means_next_to_ties_are_rounded_to_even(sums: Sums) -> None:
    random = np.random.default_rng(5)
    for length in (2, 3, 4, 6, 7, 31, 48, 100):
        for least in (2**23, 2.0**-126, 2.0**-148):  # means of whole numbers of units, and halves of one
            rows = aligned((random.integers(1, 9, 40 * length) * least).astype(np.float32), 0)
            values, omitted, _, _ = sums(rows, RowsLayout(40, length, rows.size), mean=True)
            check(values, omitted, list(rows.reshape(40, length)), mean=True, omit_nan=False)
        rows = aligned(random.integers(2**23, 2**24, 40 * length).astype(np.float32), 0)
        values, omitted, _, _ = sums(rows, RowsLayout(40, length, rows.size), mean=True)
        check(values, omitted, list(rows.reshape(40, length)), mean=True, omit_nan=False)


# width and height of columns: several rows a read, a column a thread, of odd widths, more than a block, in parts
COLUMNS = (
    *(
        (1, 9),
        (2, 3000),
        (3, 8),
        (4, 100),
        (7, 31),
        (7, 601),
        (8, 256),
        (24, 40),
        (30, 3),
        (31, 700),
        (64, 50),
        (100, 3),
    ),
    *((130, 9), (256, 300)),
)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_means_of_columns_are_correctly_rounded(sums: Sums, dtype: str, data: str) -> None:
    for width, height in COLUMNS:
        array = aligned(adversarial(data, DTYPES[dtype], width * height, height), 1 if width == 64 else 0)
        each = ((False, data == "special"), (True, False))
        for mean, omit_nan in each if width < 64 or data == "special" else each[DATA.index(data) % 2 :][:1]:
            values, omitted, _, _ = sums(array, ColumnsLayout(width, height), mean=mean, omit_nan=omit_nan)
            check(values, omitted, list(array.reshape(height, width).T), mean=mean, omit_nan=omit_nan)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_and_means_of_segments_are_correctly_rounded(sums: Sums, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    for lengths in (
        random.geometric(0.4, 300) - 1,
        random.geometric(0.08, 40),
        random.geometric(1 / 20, 20),
        random.geometric(1 / 300, 5),
        np.array([0, 3, 6000, 0, 1]),  # a giant
    ):
        offsets = np.concatenate([[2], 2 + np.cumsum(lengths)]).astype(np.int64)
        start = int(lengths.size == 20)
        array = aligned(adversarial(data, DTYPES[dtype], int(offsets[-1]) + 3, lengths.size), start)
        layout = OffsetsLayout(host_array(offsets), offsets)
        groups = np.split(array, offsets)[1:-1]
        for mean, omit_nan in ((False, False), (True, data == "special")):
            values, omitted, _, _ = sums(array, layout, mean=mean, omit_nan=omit_nan)
            check(values, omitted, groups, mean=mean, omit_nan=omit_nan)


def drawn_lengths(random: np.random.Generator) -> Array:
    """Lengths of segments: mostly empty, of one kind, with a giant among them, or with empty ones at both ends."""
    few = random.geometric(1 / 10, random.integers(1, 40))
    return (
        lambda: random.integers(0, 5, 300) * random.integers(0, 2, 300),
        lambda: random.geometric(1 / 40, random.integers(1, 60)),
        lambda: random.geometric(1 / 700, random.integers(1, 6)),
        lambda: np.concatenate([few, [20_000], few]),
        lambda: np.concatenate([np.zeros(150, int), random.geometric(1 / 300, 4), np.zeros(40, int)]),
    )[random.integers(5)]()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segments_of_any_lengths_at_any_start_are_correctly_rounded(sums: Sums, dtype: str, seed: int) -> None:
    random, row = np.random.default_rng([seed, DTYPES[dtype].itemsize]), DTYPES[dtype]
    for data in ("positive", "normal", "cancelling", "special"):
        offsets = np.concatenate([[0], np.cumsum(drawn_lengths(random))]).astype(np.int64) + random.integers(0, 9)
        size = int(offsets[-1]) + int(random.integers(0, 4))
        values = random.random(size) if data == "positive" else adversarial(data, row, size, seed)
        array, layout = aligned(values.astype(row.numpy), 0), OffsetsLayout(host_array(offsets), offsets)
        for mean, omit_nan in ((False, False), (True, data == "special")):
            values, omitted, _, _ = sums(array, layout, mean=mean, omit_nan=omit_nan)
            check(values, omitted, np.split(array, offsets)[1:-1], mean=mean, omit_nan=omit_nan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_streams_of_as_many_exponents_as_they_hold_are_exact(sums: Sums, dtype: str) -> None:
    """Elements whose last places are set, of one sign and of both, of about as many exponents as a window has."""
    random, row = np.random.default_rng(2), DTYPES[dtype]
    spans = (22, 23, 24) if dtype == "float32" else (36, 37, 38)
    for span in spans:
        for signs in ((1,), (-1, 1)):
            lengths = random.geometric(1 / 40, 30)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            size = int(offsets[-1])
            fractions = random.integers(1 << row.precision - 1, 1 << row.precision, size) | 1
            exponents = random.choice([-span, -span, 0, -3], size)
            array = np.ldexp(fractions * random.choice(signs, size).astype(np.float64), exponents).astype(row.numpy)
            array[size // 2] *= 2.0**12  # and a change of the window
            values, omitted, gpu, _ = sums(aligned(array, 0), OffsetsLayout(host_array(offsets), offsets), mean=False)
            assert any(name.startswith("streamed<") for name in gpu.ran)
            check(values, omitted, np.split(array, offsets)[1:-1], mean=False, omit_nan=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_row_may_be_shorter(sums: Sums, dtype: str) -> None:
    array = adversarial("any finite", DTYPES[dtype], 41, 3)
    for mean in (False, True):
        values, omitted, _, _ = sums(array, RowsLayout(5, 9, 41), mean=mean)
        check(values, omitted, np.split(array, range(9, 41, 9)), mean=mean, omit_nan=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_usual_data_need_no_second_look(sums: Sums, dtype: str) -> None:
    layouts = (RowsLayout(30, 100, 3000), ColumnsLayout(100, 30), ColumnsLayout(4, 750), RowsLayout(2, 1500, 3000))
    for layout in layouts:
        for data in ("normal", "mostly zeros", "negative zeros"):
            array = aligned(adversarial(data, DTYPES[dtype], 3000, 1), 0)
            assert sums(array, layout, mean=False)[3] == 0, (layout, data)


Products = Callable[..., tuple[Array, Array, HostGpu, int]]


@pytest.fixture
def products(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Products:
    """Sums of products, how many pairs were left out of each, the kernels that ran, and how many values no window
    held."""
    monkeypatch.setitem(sys.modules, "cupy", as_cupy())

    def run(x: Array, y: Array, layout: Layout, *, omit_nan: bool = False) -> tuple[Array, Array, HostGpu, int]:
        gpu: Any = HostGpu(library)
        dtype, kind, rounding = DTYPES[x.dtype.name], SumKind.PRODUCTS, Rounding(Finishing.SUM, omit_nan=omit_nan)
        made = FinishedValues(
            gpu, host_array(x), layout, dtype, kind, rounding, shapes=small_shapes(kind), other=host_array(y)
        )
        made.start()
        wide = made.finish()
        omitted = made.omitted.get() if omit_nan else np.zeros(made.values.size, int)
        return made.values.get(), omitted, gpu, wide

    return run


def check_products(values: Array, omitted: Array, groups: list[tuple[Array, Array]], *, omit_nan: bool) -> None:
    assert values.size == len(groups)
    for number, (value, (x, y)) in enumerate(zip(values.tolist(), groups, strict=True)):
        missing = np.isnan(x) | np.isnan(y)
        kept = ~missing if omit_nan else np.ones(x.size, bool)
        if kept.any():
            state = ExactState.of_products(np.ascontiguousarray(x[kept]), np.ascontiguousarray(y[kept]))
            wanted = float(value_of(OPS["dot"], [state], x.dtype.name))
            assert float(value).hex() == wanted.hex(), (number, x[:20], y[:20])
        assert omitted[number] == (missing.sum() if omit_nan else 0)


def both(data: str, dtype: str, size: int, seed: int, starts: tuple[int, int]) -> tuple[Array, Array]:
    """A pair of arrays so many elements behind multiples of 16 bytes."""
    x, y = pairs(data, DTYPES[dtype], size, seed)
    return aligned(x, starts[0]), aligned(y, starts[1])


PRODUCT_ROWS = (
    (1, 0, 0),
    (3, 0, 0),
    (4, 0, 0),
    (8, 1, 1),
    (32, 0, 0),
    (60, 0, 1),
    (256, 0, 0),
    (1100, 0, 0),
    (5000, 0, 0),
)


@pytest.mark.parametrize("data", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_rows_and_columns_are_correctly_rounded(products: Products, dtype: str, data: str) -> None:
    for length, *starts in PRODUCT_ROWS:
        rows = 5 if length < 1000 else 2
        x, y = both(data, dtype, rows * length, length, (starts[0], starts[1]))
        omit_nan = "special" in data and length % 2 == 0
        values, omitted, _, _ = products(x, y, RowsLayout(rows, length, x.size), omit_nan=omit_nan)
        groups = list(zip(x.reshape(rows, length), y.reshape(rows, length), strict=True))
        check_products(values, omitted, groups, omit_nan=omit_nan)
    for width, height in ((2, 3000), (3, 8), (4, 100), (7, 601), (31, 70), (64, 50), (130, 9)):
        x, y = both(data, dtype, width * height, height, (0, int(width == 64)))
        omit_nan = "special" in data and width % 2 == 0
        values, omitted, _, _ = products(x, y, ColumnsLayout(width, height), omit_nan=omit_nan)
        groups = list(zip(x.reshape(height, width).T, y.reshape(height, width).T, strict=True))
        check_products(values, omitted, groups, omit_nan=omit_nan)


@pytest.mark.parametrize("data", PAIRS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_segments_are_correctly_rounded(products: Products, dtype: str, data: str) -> None:
    random = np.random.default_rng(1)
    for lengths in (random.geometric(0.4, 200) - 1, random.geometric(1 / 20, 20), random.geometric(1 / 300, 5)):
        offsets = np.concatenate([[2], 2 + np.cumsum(lengths)]).astype(np.int64)
        x, y = both(data, dtype, int(offsets[-1]) + 3, lengths.size, (0, 0))
        layout, omit_nan = OffsetsLayout(host_array(offsets), offsets), "special" in data
        values, omitted, _, _ = products(x, y, layout, omit_nan=omit_nan)
        groups = list(zip(np.split(x, offsets)[1:-1], np.split(y, offsets)[1:-1], strict=True))
        check_products(values, omitted, groups, omit_nan=omit_nan)


def test_products_of_float16_are_correctly_rounded(products: Products) -> None:
    for data in PAIRS[:4]:
        x, y = both(data, "float16", 600, 1, (0, 0))
        for layout in (RowsLayout(6, 100, 600), ColumnsLayout(6, 100)):
            shaped = [
                each.reshape(6, 100) if isinstance(layout, RowsLayout) else each.reshape(100, 6).T for each in (x, y)
            ]
            values, omitted, _, _ = products(x, y, layout)
            check_products(values, omitted, list(zip(*shaped, strict=True)), omit_nan=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_usual_data_need_no_second_look(products: Products, dtype: str) -> None:
    for layout in (RowsLayout(30, 100, 3000), ColumnsLayout(100, 30), ColumnsLayout(4, 750), RowsLayout(2, 1500, 3000)):
        for data in ("normal times normal", "negative zeros times normal"):
            x, y = both(data, dtype, 3000, 1, (0, 0))
            assert products(x, y, layout)[3] == 0, (layout, data)
