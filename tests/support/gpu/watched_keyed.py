"""Every kernel of exact sums by key runs on small arrays, for compute-sanitizer to watch:
`compute-sanitizer --tool racecheck python -m tests.support.gpu.watched_keyed`."""

import numpy as np

from tests.support.gpu.accumulators import on_device
from tests.support.gpu.adversarial import adversarial
from tests.support.gpu.watching import watch
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed import KeyedSums
from warpfold.kernels.dtypes import DTYPES

ROWS = 40_007


def add_by_key(gpu: Gpu) -> int:
    """How many reductions ran."""
    random, ran = np.random.default_rng(1), 0
    for name, data in (("float32", "special"), ("float64", "negative zeros"), ("float32", "as wide as a window")):
        dtype = DTYPES[name]
        for groups in (3, 900, 30_000, 3_000_000):
            for in_order in (False, True):
                keys = random.integers(0, groups, ROWS).astype(np.int32 if groups % 2 else np.int64)
                keys = np.sort(keys) if in_order else keys
                array = adversarial(data, dtype, ROWS)
                made = KeyedSums(
                    gpu, on_device(keys, 0), DTYPES[keys.dtype.name], on_device(array, 0), dtype, omit_nan=in_order
                )
                made.add()
                if made.strategy == "stream":
                    made.values(mean=True)
                elif made.strategy != "sorted":  # which is by CuPy's kernels, whose scans racecheck warns of
                    made.dense(mean=in_order)
                    made.groups()
                    made.least(0, 0, (1 << 31) - 1, first=True)
                ran += 1
    numbers = on_device(random.integers(-9, 9, ROWS), 0)
    made = KeyedSums(gpu, numbers, DTYPES["int64"], numbers, DTYPES["int64"])
    made.add()
    made.dense()
    gpu.stream.synchronize()
    return ran + 1


if __name__ == "__main__":
    watch("reductions by key", add_by_key)
