"""Every kernel of ours runs once or twice on small arrays, for `tests/support/gpu/sanitize.py` to watch."""

import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.support.gpu.accumulators import early_choices, on_device
from tests.support.gpu.adversarial import adversarial
from warpfold.kernels.cuda.backend import CudaBackend
from warpfold.kernels.cuda.bench.reader import SHAPES, patternless, reading
from warpfold.kernels.cuda.bench.target import CudaTarget
from warpfold.kernels.cuda.exact import SHAPES as SHAPES_OF_SUMS
from warpfold.kernels.cuda.exact import ExactAccumulator, SumKind
from warpfold.kernels.cuda.exact import shapes as shapes_of_sums
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import CHOICES
from warpfold.kernels.cuda.resident import ResidentReducer
from warpfold.kernels.cuda.strategies.registry import cuda_strategies, own_strategies
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import OPS, NanPolicy
from warpfold.kernels.puzzles import ClusterShape, Puzzle, solve
from warpfold.kernels.source import GeneratedSource
from warpfold.kernels.strategy import EXACT

COUNTS = (1003, 40_007)
DTYPES_WATCHED = ("float32", "float64", "bfloat16", "int8", "int64")
PUZZLE_SHAPES = (
    ClusterShape(),
    ClusterShape(400, 64, 7),
)  # a full cluster, and an odd one whose last block is not full


def reduce_all(backend: CudaBackend, name: str) -> int:
    """Every pair that a strategy claims of the watched dtypes, one block of it and several; how many reductions."""
    reduced = 0
    for op, dtype in sorted(cuda_strategies()[name].claims):
        if dtype not in DTYPES_WATCHED:
            continue
        for count in COUNTS:
            source = GeneratedSource("uniform", count, 1, DTYPES[dtype])
            other = GeneratedSource("uniform", count, 2, DTYPES[dtype]) if OPS[op].sources > 1 else None
            backend.reduce(source, op, strategy=name, other=other)
            reduced += 1
        if OPS[op].sources == 1:
            backend.reduce(source, op, strategy=name, nan_policy=NanPolicy.OMIT)
            reduced += 1
    return reduced


def add_exactly(backend: CudaBackend) -> None:
    """Exact sums by all their paths: outside any window, with specials, from an odd address, by one block and many; and
    a dot product of two formats."""
    with backend.gpu.active():
        for dtype in (DTYPES[name] for name in SHAPES_OF_SUMS):
            for data in ("any finite", "special"):
                for count in COUNTS:
                    arrays = [on_device(adversarial(data, dtype, count, seed), 3) for seed in range(2)]
                    for kind in SumKind:
                        ExactAccumulator(backend.gpu, dtype, kind).add(*arrays[: 1 + (kind is SumKind.PRODUCTS)])
        backend.gpu.stream.synchronize()
    narrow, wide = (GeneratedSource("normal", 40_007, 1, DTYPES[name]) for name in ("float16", "bfloat16"))
    backend.reduce(narrow, "dot", other=wide)


def add_by_choice(backend: CudaBackend) -> None:
    """Sums by every kernel that data may choose: few exponents, more, and all; of jobs, and of arrays that stay."""
    with backend.gpu.active(), patch.object(shapes_of_sums, "CHOICES", early_choices(1000)):
        resident = ResidentReducer(backend.gpu)
        for name, kinds in CHOICES.items():
            for data in ("half as wide", "as wide as a window", "any finite", "special"):
                for kind in kinds:
                    for count in COUNTS:
                        arrays = [on_device(adversarial(data, DTYPES[name], count, seed), 3) for seed in range(2)]
                        ExactAccumulator(backend.gpu, DTYPES[name], kind).add(*arrays[: 1 + (kind is SumKind.PRODUCTS)])
                        reduce_in_place(resident, DTYPES[name], kind, arrays)
        backend.gpu.stream.synchronize()


def reduce_in_place(resident: ResidentReducer, dtype: DType, kind: SumKind, arrays: Sequence[Any]) -> None:
    """An op of that kind, of arrays that are on the GPU already."""
    out, stream = on_device(np.zeros(1, dtype.numpy), 0), resident.gpu.stream.ptr
    x, y = (array.data.ptr for array in arrays)
    if kind is SumKind.PRODUCTS:
        resident.dot(dtype)(x, y, arrays[0].size, out.data.ptr, stream)
    else:
        op = next(op for op in FINISHED_OPS.values() if op.kind is kind)
        resident.whole(op, dtype)(x, arrays[0].size, out.data.ptr, stream)


def solve_puzzles(backend: CudaBackend) -> None:
    """All three."""
    for puzzle in Puzzle:
        for shape in PUZZLE_SHAPES:
            solve(backend, puzzle, shape)


def flush_and_read(backend: CudaBackend) -> None:
    """A benchmark's own kernels but for the one that waits for the host, which a tool may run to its end first."""
    target = CudaTarget(backend)
    with target.active():
        target.timer.flush()
        array = patternless(backend.gpu, 1_000_016)
        for shape in SHAPES:
            reading(backend.gpu, array, shape).start()
        backend.gpu.stream.synchronize()


def main(names: Sequence[str]) -> int:
    """Run the strategies named, or everything."""
    backend, reduced = CudaBackend(0), 0
    for name in names or (EXACT, *own_strategies()):
        if name not in own_strategies() or own_strategies()[name].runs_on(backend.gpu.arch):
            reduced += reduce_all(backend, name)
    if not names:
        add_exactly(backend)
        add_by_choice(backend)
        solve_puzzles(backend)
        flush_and_read(backend)
    print(f"{reduced} reductions of {len(DTYPES_WATCHED)} dtypes")
    backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
