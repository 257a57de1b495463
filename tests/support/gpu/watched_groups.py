"""Every kernel of exact reductions of many values that add up runs on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_groups`."""

import numpy as np

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped import ColumnsLayout, FinishedValues, Layout, OffsetsLayout, Rounding, RowsLayout
from warpfold.kernels.dtypes import DTYPES

ROWS = (
    *((5, 60), (16, 60), (64, 30), (100, 9)),
    *((2, 1001), (4, 300), (8, 301), (12, 30), (32, 30), (60, 30), (128, 30), (250, 9), (512, 9), (1024, 9)),
    *((3, 40), (9, 40), (33, 40), (150, 9), (2000, 3), (150_000, 2)),
)
COLUMNS = (
    (2, 90_000),
    (3, 900),
    (8, 256),
    (31, 300),
    (130, 300),
    (1024, 700),
    (1001, 30),
    (3000, 3),
    (3000, 14),
    (3000, 2),
)


def add_groups(gpu: Gpu) -> int:
    """How many reductions ran."""
    ran = 0
    for name in ("float32", "float64"):
        dtype = DTYPES[name]
        layouts: list[tuple[int, Layout]] = [
            *((length * rows, RowsLayout(rows, length, length * rows)) for length, rows in ROWS),
            *((width * height, ColumnsLayout(width, height)) for width, height in COLUMNS),
        ]
        for mean in (2, 8, 40, 120, 900):
            lengths = np.random.default_rng(mean).geometric(1 / mean, 100)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            layouts.append((int(lengths.sum()), OffsetsLayout.of(offsets)))
        for size, layout in layouts:
            for data in ("normal", "special", "any finite"):
                array = on_device(adversarial(data, dtype, size), 0)
                for op in ("mean" if data == "normal" else "sum", "norm2", "std"):
                    row = FINISHED_OPS[op]
                    rounding = Rounding(row.finish, 0, data == "special")
                    made = FinishedValues(gpu, array, layout, dtype, row.kind, rounding)
                    made.start()
                    made.finish()
                    ran += 1
    gpu.stream.synchronize()
    return ran


if __name__ == "__main__":
    watch("reductions to many values", add_groups)
