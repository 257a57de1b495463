"""The kernels of sums that stay on a GPU run on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_levels`."""

import numpy as np

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.total import limbs_of
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import ResidentLevels, ResidentTotals
from warpfold.kernels.cuda.resident.levels import ColumnLayout, RowLayout
from warpfold.kernels.dtypes import DTYPES

SIZE = 40_007


def sums_in_levels(gpu: Gpu) -> int:
    """How many reductions ran."""
    import cupy

    resident, ran = ResidentLevels(gpu), 0
    for name in ("float32", "float64"):
        dtype = DTYPES[name]
        array = on_device(adversarial("normal", dtype, SIZE), 0)
        for lie in (
            ColumnLayout(1, 0, 300),
            ColumnLayout(2000, 20, 17),
            ColumnLayout(7, 5001, 5000),
            RowLayout(3, 13_000, 12_999),
            RowLayout(5000, 8, 5),
        ):
            made = [
                resident.add(dtype, array.data.ptr, lie, -85 - number, gpu.stream, magnitudes=bool(number % 2))
                for number in range(9)
            ]
            assert all(map(resident.holds, made))
            together = resident.merge(made, gpu.stream)
            assert together is not None, "all windows are near each other"
            out = cupy.empty(lie.values, dtype.numpy)
            for divisor in (1, 3):
                resident.round(dtype, together, divisor, out.data.ptr, gpu.stream)
            ran += len(made)
    gpu.stream.synchronize()
    return ran


def totals(gpu: Gpu) -> int:
    """How many reductions ran."""
    import cupy

    resident, ran = ResidentTotals(gpu), 0
    for name in ("float32", "float64"):
        dtype = DTYPES[name]
        array = on_device(adversarial("special", dtype, SIZE), 0)
        out = cupy.empty(1, dtype.numpy)
        for op in FINISHED_OPS.values():
            addresses = (array.data.ptr,) * (1 if ResidentTotals.rounds(op) else 2)
            limbs = cupy.zeros(limbs_of(op.kind), np.int64)
            resident.add(op.kind, dtype, addresses, SIZE, limbs, gpu.stream)
            if ResidentTotals.rounds(op):
                resident.round(op, dtype, limbs, SIZE, out.data.ptr, gpu.stream, 0)
            ran += 1
    gpu.stream.synchronize()
    return ran


if __name__ == "__main__":
    watch("reductions to sums that stay", sums_in_levels, totals)
