"""Every kernel of ours, once or twice on small arrays, for compute-sanitizer to watch:

compute-sanitizer --tool memcheck --error-exitcode 9 python -m tests.gpu.sanitize
"""

import sys
from pathlib import Path

from kernels.cuda.backend import CudaBackend
from kernels.cuda.strategies import own_strategies
from kernels.dtypes import DTYPES
from kernels.ops import NanPolicy
from kernels.source import GeneratedSource

COUNTS = (1003, 40_007)
DTYPES_WATCHED = ("float32", "float64", "bfloat16", "int8", "int64")


def main(cache: str) -> int:
    """Run them all; kernels are compiled into, or taken from, the folder `cache`."""
    backend, reduced = CudaBackend(0, Path(cache)), 0
    for name, own in own_strategies().items():
        if not own.runs_on(backend.gpu.arch):
            continue
        for op, dtype in sorted(own.row.claims):
            if dtype in DTYPES_WATCHED:
                for count in COUNTS:
                    backend.reduce(GeneratedSource("uniform", count, 1, DTYPES[dtype]), op, strategy=name)
                    reduced += 1
    for dtype in DTYPES_WATCHED:
        for policy in NanPolicy:
            backend.reduce(
                GeneratedSource("uniform", COUNTS[0], 1, DTYPES[dtype]), "sum", strategy="exact", nan_policy=policy
            )
            reduced += 1
    print(f"{reduced} reductions of {len(DTYPES_WATCHED)} dtypes by {len(own_strategies())} strategies and exact")
    backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
