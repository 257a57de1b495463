"""Every kernel of ours, once or twice on small arrays, for compute-sanitizer to watch:

compute-sanitizer --tool memcheck --error-exitcode 9 python -m tests.gpu.sanitize [strategy …]
"""

import sys
from collections.abc import Sequence

from kernels.catalog import EXACT
from kernels.cuda.backend import CudaBackend
from kernels.cuda.strategies import cuda_strategies, own_strategies
from kernels.dtypes import DTYPES
from kernels.ops import NanPolicy
from kernels.source import GeneratedSource

COUNTS = (1003, 40_007)
DTYPES_WATCHED = ("float32", "float64", "bfloat16", "int8", "int64")


def main(names: Sequence[str]) -> int:
    """Run the strategies named, or all of ours and `exact`, on every pair they claim of the watched dtypes."""
    backend, reduced = CudaBackend(0), 0
    for name in names or (EXACT, *own_strategies()):
        if name in own_strategies() and not own_strategies()[name].runs_on(backend.gpu.arch):
            continue
        (row,) = [row for row in cuda_strategies() if row.name == name]
        for op, dtype in sorted(row.claims):
            if dtype not in DTYPES_WATCHED:
                continue
            for count in COUNTS:
                source = GeneratedSource("uniform", count, 1, DTYPES[dtype])
                backend.reduce(source, op, strategy=name)
                reduced += 1
            backend.reduce(source, op, strategy=name, nan_policy=NanPolicy.OMIT)
    print(f"{reduced} reductions of {len(DTYPES_WATCHED)} dtypes")
    backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
