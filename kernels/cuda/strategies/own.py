"""Strategies written here: a .cu file in this folder each, whose leading comment is the row of the catalogue."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.gpu.recorded import RecordingGpu
from warpfold.kernels.cuda.strategies.comment import SourceError, parse_comment
from warpfold.kernels.cuda.strategies.partial_results import WORDS, PartialResult, reduction_of, value_of
from warpfold.kernels.cuda.strategies.rows import own_row
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, Finished, PlannedKernel
from warpfold.kernels.cuda.strategies.workloads import RecordedWorkload
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.ops import OPS, Op
from warpfold.kernels.ops.operands import Operands

PARTIAL_BYTES = 32
"""The bytes of the largest accumulator."""

STATE_BYTES = 48
"""The bytes of state that a block has: the largest accumulator that blocks send each other, of 24 bytes, with its
flags."""


@dataclass(frozen=True, kw_only=True)
class OwnStrategy(CudaStrategy):
    """A strategy in CUDA C++. `needs` is the first architecture that can run it, 0 for any: 90 for sm_90.

    The kernel bears the name of the file, as a template over a reduction (`include/reductions.cuh`), and takes (data,
    count, first index, omit NaN, partials, state, outcome); the state is 48 bytes a block, all 0, to be left 0. A
    kernel NAME_begin prepares the first partial before it, a kernel NAME_fold (partials, count, folded, outcome) folds
    partials after it until one is left.
    """

    source: Path
    launch: LaunchShape
    needs: int
    begins: bool
    folds: bool

    def runs_on(self, arch: str) -> bool:
        """Whether chips of `arch` ("sm_90") have what it needs."""
        return int(arch.removeprefix("sm_")) >= self.needs

    def kernels(self, reduction: str, dtype: DType) -> tuple[str, ...]:
        """The names of its kernels for a reduction of `dtype`, in the order in which they are launched."""
        stages = ("_begin",) * self.begins + ("",) + ("_fold",) * self.folds
        return tuple(f"{self.name}{stage}<{reduction}<{element(dtype)}>>" for stage in stages)

    def unit(self, dtype: DType) -> Unit:
        """The unit of all ops of `dtype` that the strategy claims. They are compiled together."""
        ops = (OPS[op] for op, name in sorted(self.claims) if name == dtype.name)
        reductions = dict.fromkeys(reduction_of(op, dtype) for op in ops)
        return Unit(self.source, tuple(name for reduction in reductions for name in self.kernels(reduction, dtype)))

    def units(self) -> tuple[tuple[DType, Unit], ...]:
        """All units of the strategy, each with its dtype."""
        claimed = {name for _, name in self.claims}
        return tuple((dtype, self.unit(dtype)) for dtype in DTYPES.values() if dtype.name in claimed)

    def start(self, gpu: Gpu, op: Op, taken: Operands, *, pieces: int = 1, omit_nan: bool = False) -> "OwnReducer":
        return self.reducer(gpu, op, taken.source.dtype, pieces=pieces, omit_nan=omit_nan)

    def reducer(self, gpu: Gpu, op: Op, dtype: DType, *, pieces: int = 1, omit_nan: bool = False) -> "OwnReducer":
        """Begin a reduction as `start` does, before there is a source."""
        return OwnReducer(gpu, self, op, dtype, pieces=pieces, omit_nan=omit_nan)

    def workload(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> RecordedWorkload:
        recorder = RecordingGpu(gpu)
        return RecordedWorkload(gpu, recorder, self.reducer(recorder, op, dtype), array)

    def planned(self, op: Op, dtype: DType, arch: str) -> tuple[PlannedKernel, ...]:
        if not self.runs_on(arch):
            raise Unavailable(f"strategy {self.name} needs sm_{self.needs} or newer, not {arch}")
        unit = self.unit(dtype)
        names = self.kernels(reduction_of(op, dtype), dtype)
        return tuple(PlannedKernel(unit, name, self.launch.threads, 0) for name in names)


def own_strategy(path: Path) -> OwnStrategy:
    """The strategy in `path`. Raises SourceError naming the file and what is wrong with its comment."""
    text = path.read_text(encoding="utf-8")
    comment = parse_comment(path.name, text)
    begins, folds = (bool(re.search(rf"\b{path.stem}_{stage}\(", text)) for stage in ("begin", "fold"))
    try:
        launch = LaunchShape.parse(comment.launch)
    except ValueError as error:
        raise SourceError(f"{path.name}: {error}") from error
    return OwnStrategy.of(own_row(path), source=path, launch=launch, needs=comment.needs, begins=begins, folds=folds)


def suited(launch: LaunchShape, op: Op, dtype: DType) -> LaunchShape:
    """`launch` as it suits the accumulators of `op` of `dtype`.

    In rounds every block folds its own threads and sends a partial, which pays for accumulators of one word. An
    element with its index, and a sum of integers in 128 bits, take longer: on an H200, in rounds, argmin of int8 read
    at 0.70 of the ceiling and a sum of int32 at 0.94; in one wave they read at 0.94 and 0.98.
    """
    wide = not dtype.is_float and op.adds
    return replace(launch, rounds=0) if op.places or wide else launch


class OwnReducer:
    """A reduction by kernels of our own. `pieces` is how many arrays are expected; more find room, too."""

    def __init__(
        self, gpu: Gpu, strategy: OwnStrategy, op: Op, dtype: DType, *, pieces: int = 1, omit_nan: bool = False
    ) -> None:
        import cupy

        if not strategy.runs_on(gpu.arch):
            raise Unavailable(f"strategy {strategy.name} needs sm_{strategy.needs} or newer; {gpu.name} is {gpu.arch}")
        self._gpu, self._strategy, self._op, self._dtype = gpu, strategy, op, dtype
        self._omit_nan = np.uint32(omit_nan)
        self._launch = suited(strategy.launch, op, dtype)
        unit = strategy.unit(dtype)
        names = list(strategy.kernels(reduction_of(op, dtype), dtype))
        kernels = [gpu.kernel(unit, name, cooperative=self._launch.cooperative) for name in names]
        self._begin = kernels.pop(0) if strategy.begins else None
        self._fold = kernels.pop() if strategy.folds else None
        (self._main,) = kernels
        self._resident = self._main.blocks_per_multiprocessor(self._launch.threads) * gpu.multiprocessors
        self._words = cupy.zeros((pieces, WORDS), dtype=np.uint64)
        self._partials = self._folded = self._state = cupy.empty(0, dtype=np.uint8)
        self._firsts: list[int] = []

    def add(self, arrays: Sequence[Any], first: int) -> None:
        import cupy

        (array,) = arrays
        blocks, threads = self._launch.grid(array.size, self._dtype.itemsize, self._gpu.multiprocessors)
        # Blocks run in one wave or in many. Of two waves the second would start when the first has almost ended.
        if blocks <= self._launch.blocks_per_multiprocessor * self._gpu.multiprocessors:
            blocks = min(blocks, self._resident // self._launch.cluster * self._launch.cluster)
        self._make_room(blocks)
        if len(self._firsts) == len(self._words):
            # On the same stream, so what is copied has been written; pieces that were folded keep their words.
            self._words = cupy.concatenate((self._words, cupy.zeros_like(self._words)))
        words = self._words[len(self._firsts)]
        self._firsts.append(first)
        if self._begin is not None:
            self._begin(1, 1, (self._partials,))
        self._main(
            blocks,
            threads,
            (
                array,
                np.uint64(array.size),
                np.uint64(first),
                self._omit_nan,
                self._partials,
                self._state,
                words,
            ),
        )
        if self._fold is not None:
            self._fold_partials(blocks, words)

    def _fold_partials(self, count: int, words: Any) -> None:
        tile = self._launch.tile or count
        source, target = self._partials, self._folded
        while True:
            blocks = -(-count // tile)
            assert self._fold is not None
            self._fold(blocks, self._launch.threads, (source, np.uint64(count), target, words))
            if blocks == 1:
                return
            source, target, count = target, source, blocks

    def _make_room(self, blocks: int) -> None:
        import cupy

        nbytes = blocks * PARTIAL_BYTES
        if self._partials.size < nbytes:
            self._partials = cupy.empty(nbytes, dtype=np.uint8)
            self._state = cupy.zeros(blocks * STATE_BYTES, dtype=np.uint8)
            self._folded = cupy.empty(nbytes if self._fold is not None else 1, dtype=np.uint8)

    def partial_results(self) -> list[PartialResult]:
        """The partial result of each array so far; waits for the work."""
        words = self._words.get()
        return [PartialResult(words[k], first) for k, first in enumerate(self._firsts)]

    def omitted(self) -> None:
        """None, because the kernels leave NaN elements out and do not count them."""

    def finish(self, count: int) -> Finished:
        value = value_of(self._op, self._dtype, self.partial_results(), count)
        return Finished(value, self._op.proved(self._dtype))
