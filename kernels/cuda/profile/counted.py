"""The program that ncu watches: one run of a strategy, after runs that load what is loaded at first use.

`python -m warpfold.kernels.cuda.profile.counted GPU STRATEGY OP DTYPE N`, under ncu with `--profile-from-start off`.
"""

import sys
from collections.abc import Sequence

from warpfold.kernels.bench.data import Data
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench.target import CudaTarget

_WARM_UP = 3


def main(arguments: Sequence[str]) -> int:
    """Run the case that `arguments` name."""
    import cupy

    index, strategy, op, dtype, n = arguments
    backend = CudaBackend(int(index))
    target = CudaTarget(backend)
    with target.active():
        workload = target.load(Data().source(dtype, int(n))).workload(op, strategy)
        for _ in range(_WARM_UP):
            workload.run()
        backend.gpu.stream.synchronize()
        cupy.cuda.profiler.start()
        workload.run()
        backend.gpu.stream.synchronize()
        cupy.cuda.profiler.stop()
    backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
