"""Every kernel of sums of products for many values runs on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_products`."""

import numpy as np

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.pairs import CANCELLING, pairs
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.cuda.grouped.folds import DOT, GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import Other
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.generate import plan
from warpfold.kernels.parts.blocks import Runs
from warpfold.kernels.source import GeneratedSource

DATA = ("normal times normal", "special times any finite", CANCELLING)
INTEGERS = (("int8", "int8"), ("uint32", "uint32"), ("uint64", "int64"))


def layouts() -> list[tuple[int, Layout]]:
    """Rows, columns and segments of all shapes, and how many elements each has."""
    made: list[tuple[int, Layout]] = [
        *((length * rows, RowsLayout(rows, length, length * rows)) for length, rows in
          ((1, 40), (4, 90), (9, 40), (32, 30), (100, 9), (150, 9), (1024, 9), (2000, 3), (150_000, 2))),
        *((width * height, ColumnsLayout(width, height)) for width, height in
          ((2, 9000), (3, 900), (31, 300), (130, 300), (1024, 70), (3000, 3))),
    ]  # fmt: skip
    for mean in (2, 40, 120, 900):
        lengths = np.random.default_rng(mean).geometric(1 / mean, 100)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        made.append((int(lengths.sum()), OffsetsLayout.of(offsets)))
    return made


def add_products(gpu: Gpu) -> int:
    """Products of floats; how many reductions ran."""
    ran = 0
    for name in SHAPES:
        for number, (size, layout) in enumerate(layouts()):
            data = DATA[number % len(DATA)]
            x, y = (on_device(each, number % 2) for each in pairs(data, DTYPES[name], size, number))
            rounding = Rounding(Finishing.SUM, omit_nan="special" in data)
            made = FinishedValues(gpu, x, layout, DTYPES[name], SumKind.PRODUCTS, rounding, other=y)
            made.start()
            made.finish()
            ran += 1
    gpu.stream.synchronize()
    return ran


def add_integers(gpu: Gpu) -> int:
    """Products of integers; how many reductions ran."""
    ran = 0
    for names in INTEGERS:
        rows = [DTYPES[name] for name in names]
        for size, layout in layouts():
            x, y = (on_device(np.arange(size).astype(row.numpy), 1) for row in rows)
            GroupedFolds(gpu, x, layout, rows[0], DOT, other=Other(y, rows[1])).start()
            ran += 1
    gpu.stream.synchronize()
    return ran


def make_runs(gpu: Gpu) -> int:
    """Parts of generated arrays; 0, for they are no reductions."""
    import cupy

    for name in ("float32", "int16"):
        made = plan(GeneratedSource("uniform", 1 << 20, 1, DTYPES[name]))
        array = cupy.empty(10_007, dtype=DTYPES[name].numpy)
        for runs in (Runs(7, 1, 90), Runs(7, 33, 90), Runs(0, 4096, 9000)):
            fill(gpu, made, array, 11, runs)
    gpu.stream.synchronize()
    return 0


if __name__ == "__main__":
    watch("reductions of products", add_products, add_integers, make_runs)
