"""Sums, squares and variances of many values on a GPU, in windows that are open below, against integers and totals."""

from typing import Any

import numpy as np
import pytest

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import ADVERSARIAL, adversarial
from tests.support.gpu.hard import HARD, hard
from tests.support.gpu.rounded import expected
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.grouped.totals import GroupedTotals
from warpfold.kernels.cuda.grouped.values import grouped_serves
from warpfold.kernels.dtypes import DTYPES

SIZE = 240_000
OPS = ("sum", "mean", "sum_squares", "norm2", "var", "std")


def layouts() -> list[Layout]:
    """Rows and columns of many lengths, and segments, of SIZE elements or fewer."""
    lengths = (1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 60, 64, 100, 128, 160, 256, 333, 500, 1000, 4096, 8192, 60_000)
    made: list[Layout] = [RowsLayout(SIZE // length, length, SIZE // length * length) for length in lengths]
    widths = (2, 3, 7, 16, 100, 128, 255, 1000, 8192, SIZE // 2)
    made += [ColumnsLayout(width, SIZE // width) for width in widths]
    for mean in (2, 3, 9, 40, 150, 300):
        drawn = np.random.default_rng(mean).geometric(1 / mean, SIZE // mean * 2) - 1
        edges = np.concatenate([[0], np.cumsum(drawn)])
        made.append(OffsetsLayout.of(edges[edges <= SIZE].astype(np.int64)))
    return made


def members_of(array: Any, layout: Layout, number: int) -> Any:
    if isinstance(layout, ColumnsLayout):
        return array[: layout.total][number :: layout.width]
    if isinstance(layout, RowsLayout):
        return array[number * layout.length : (number + 1) * layout.length]
    return array[layout.host[number] : layout.host[number + 1]]


def counts_of(layout: Layout) -> Any:
    return np.diff(layout.host) if isinstance(layout, OffsetsLayout) else np.full(layout.count, layout.longest)


@pytest.mark.parametrize("data", [*ADVERSARIAL, *HARD])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_have_the_bits_of_totals_and_of_exact_integers(gpu: Gpu, dtype: str, data: str) -> None:
    row, random = DTYPES[dtype], np.random.default_rng(len(data))
    array = hard(data, SIZE, dtype, random) if data in HARD else adversarial(data, row, SIZE)
    with gpu.active():
        placed = [on_device(array, start) for start in (0, 1)]
        for layout in layouts():
            x = placed[int(random.integers(4)) == 0]
            op = OPS[int(random.integers(len(OPS)))]
            finished, ddof, omit_nan = FINISHED_OPS[op], int(random.integers(2)), bool(random.integers(2))
            assert grouped_serves(gpu, row, finished.kind, layout)
            rounding = Rounding(finished.finish, ddof, omit_nan)
            made = FinishedValues(gpu, x[: layout.total], layout, row, finished.kind, rounding)
            made.start()
            made.finish()
            totals = GroupedTotals(gpu, x[: layout.total], layout, row, finished.kind, rounding=rounding)
            totals.start()
            bits = f"u{row.itemsize}"
            entered = counts_of(layout) - (made.omitted.get() if omit_nan else 0)
            same = (made.values.view(bits) == totals.values.view(bits)).get()
            assert same[entered > 0].all(), (layout, op, ddof, omit_nan)
            if omit_nan:
                assert (made.omitted == totals.omitted).all()
            for number in random.integers(layout.count, size=3).tolist():
                members = members_of(array, layout, number)
                if members.size and not omit_nan:
                    wanted = expected(op, row, members, ddof=ddof)
                    assert float(made.values[number]).hex() == wanted.hex(), (layout, number, op, ddof)
