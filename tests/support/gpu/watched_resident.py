"""Every kernel of arrays that are on a GPU already runs on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_resident`."""

import cupy

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.rounded import REDUCED
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import SHAPES
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import AlongReduction, Arrangement, ResidentReducer
from warpfold.kernels.dtypes import DTYPES

SIZES = (1, 1000, 70_001)
ROWS = ((7, 200), (300, 33))


def reduce_resident(gpu: Gpu) -> int:
    """How many reductions ran."""
    reducer, stream, ran = ResidentReducer(gpu), gpu.stream.ptr, 0
    for dtype in (DTYPES[name] for name in SHAPES):
        values = cupy.zeros(300 * dtype.itemsize, cupy.uint8)
        wholes = [reducer.whole(FINISHED_OPS[name], dtype) for name in REDUCED]
        dot = reducer.dot(dtype)
        for data in ("normal", "special", "any finite"):
            for size in SIZES:
                array = on_device(adversarial(data, dtype, size), 0)
                for whole in wholes:
                    whole(array.data.ptr, size, values.data.ptr, stream)
                dot(array.data.ptr, array.data.ptr, size, values.data.ptr, stream)
                ran += len(wholes) + 1
        for shape in ROWS:
            for axis in (0, 1):
                arrangement = Arrangement.of(shape, (shape[1], 1), frozenset({axis}))
                assert arrangement is not None, "the array has no gaps"
                for name in REDUCED:
                    along = AlongReduction(reducer, name, dtype, arrangement)
                    for data in ("normal", "any finite", "special"):
                        array = on_device(adversarial(data, dtype, shape[0] * shape[1]), 0)
                        along(array.data.ptr, values.data.ptr, stream)
                        ran += 1
    gpu.stream.synchronize()
    return ran


if __name__ == "__main__":
    watch("reductions of resident arrays", reduce_resident)
