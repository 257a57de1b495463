"""Every kernel that picks elements, counts bins or moves windows runs on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_picks`."""

import numpy as np

from tests.support.gpu.arrays import data
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.picks.states import GroupedStates
from warpfold.kernels.cuda.rolling.values import WindowPlaces, WindowValues
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import OPS, Parameters, op_named

PICKED = (
    ("nth", Parameters(n=2)),
    ("mode", Parameters()),
    ("nunique", Parameters()),
    ("top_k", Parameters(k=5)),
    ("argbottom_k", Parameters(k=5)),
    ("histogram", Parameters(bins=300, range=(-2.0, 2.0))),
)


def pick(gpu: Gpu) -> int:
    """Picks and counts; how many ran."""
    import cupy

    ran = 0
    layouts: tuple[tuple[int, Layout], ...] = (
        (900, RowsLayout(9, 100, 900)),
        (900, ColumnsLayout(30, 30)),
        (300_000, RowsLayout(1, 300_000, 300_000)),
        (900, OffsetsLayout.of(np.array([0, 0, 7, 500, 900]))),
    )
    for name in ("float64", "bfloat16", "int8"):
        for size, layout in layouts:
            array = cupy.asarray(data("special", DTYPES[name], size).view(carrier(DTYPES[name])))
            for op, parameters in PICKED:
                made = GroupedStates(gpu, array, layout, DTYPES[name], op_named(op).having(parameters), omit_nan=True)
                made.start()
                made.values()
                ran += 1
    return ran


def move(gpu: Gpu) -> int:
    """Windows; how many ops ran."""
    import cupy

    ran, size = 0, 5000
    begins = np.maximum(np.arange(size) - 20, 0)
    places = (
        WindowPlaces(None, None, size, 0, 0, size),
        WindowPlaces(None, None, 100, 9, 4, 9),
        WindowPlaces(cupy.asarray(begins), cupy.asarray(np.arange(size) + 1), size, 0, 0, 21),
    )
    for name in ("float64", "bfloat16", "int8", "bool"):
        for kind in ("benign", "special"):
            array = cupy.asarray(data(kind, DTYPES[name], size).view(carrier(DTYPES[name])))
            for where in places:
                for op in ("sum", "mean", "max", "count_nonzero"):
                    made = WindowValues(gpu, array, DTYPES[name], where, OPS[op], omit=kind == "special")
                    if made.holds():
                        made.values(made.counts())
                        ran += 1
    return ran


if __name__ == "__main__":
    watch("picks and windows", pick, move)
