"""The exact strategy on a GPU: fixed-point totals for ops that add, the fast strategy for ops that select or test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpfold.kernels.bench.workload import Workload
from warpfold.kernels.cuda.exact import ExactAccumulator, states_of_limbs
from warpfold.kernels.cuda.exact.shapes import LARGEST_SHARED, SHAPES, exact_unit, kernel_name
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.picks.workloads import PicksWorkload, RanksWorkload, planned_picks, planned_ranks
from warpfold.kernels.cuda.strategies.exact_reducers import ExactFloats, ExactIntegers, finished, kind_of
from warpfold.kernels.cuda.strategies.own import OwnStrategy
from warpfold.kernels.cuda.strategies.rows import exact_row
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, PlannedKernel, Reducer
from warpfold.kernels.cuda.strategies.workloads import RecordedWorkload
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.exact.encoding import ORIGIN
from warpfold.kernels.exact.state import ExactState
from warpfold.kernels.ops import OPS, SUMS_OF_MOMENTS, Op, Terms, Value
from warpfold.kernels.ops.operands import Operands


@dataclass(frozen=True, kw_only=True)
class ExactCudaStrategy(CudaStrategy):
    """The correctly rounded value.

    `fast` computes the ops that select or test elements, and sums of integers, which are exact in any strategy of ours.
    """

    fast: OwnStrategy

    def omits(self, op: Op) -> bool:
        return op.adds

    def state_of_nothing(self, op: Op) -> ExactState | None:
        return ExactState.empty(op.terms) if op.terms in ORIGIN else None

    def start(self, gpu: Gpu, op: Op, taken: Operands, *, pieces: int = 1, omit_nan: bool = False) -> Reducer:
        if not op.adds:
            return self.fast.start(gpu, op, taken, pieces=pieces, omit_nan=omit_nan)
        sources = taken.both if op.sources == 2 else (taken.source,)
        dtypes = [source.dtype for source in sources]
        if op.sources == 2 or dtypes[0].is_float:
            return ExactFloats(gpu, op, dtypes, taken.ddof, omit_nan=omit_nan)
        return ExactIntegers(gpu, self.fast, op, dtypes[0], taken.ddof, pieces=pieces)

    def workload(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> Workload:
        if op.selects:
            return RanksWorkload(gpu, op, dtype, array)
        if op.ranks:
            return PicksWorkload(gpu, op, dtype, array)
        if not op.adds:
            return self.fast.workload(gpu, op, dtype, array)
        if dtype.is_float:
            return ExactWorkload(gpu, op, dtype, array)
        recorder = RecordingGpu(gpu)
        return RecordedWorkload(gpu, recorder, ExactIntegers(recorder, self.fast, op, dtype), array)

    def planned(self, op: Op, dtype: DType, arch: str) -> tuple[PlannedKernel, ...]:
        if op.adds and dtype.is_float:
            kind = kind_of(op)
            shape = SHAPES[dtype.name][kind].fitted(LARGEST_SHARED)
            name = kernel_name(dtype, kind, shape)
            return (PlannedKernel(exact_unit(dtype), name, shape.threads, shape.threads * shape.shared),)
        if op.selects:
            return (planned_ranks(dtype),)
        if op.fold == "histogram" or (op.picks and op.extreme is not None):
            return planned_picks(op, dtype)
        if op.sources == 2:
            raise Unavailable(f"which kernels {op.name} of {dtype.name} takes is decided on a GPU")
        if op.ranks:
            raise Unavailable(f"{op.name} has no kernels of its own")
        parts = [OPS[name] for name in SUMS_OF_MOMENTS] if op.terms is Terms.MOMENTS else [op]
        return tuple(kernel for part in parts for kernel in self.fast.planned(part, dtype, arch))


def exact_strategy(fast: OwnStrategy) -> ExactCudaStrategy:
    """The row of the catalogue: the ops that add, and those that `fast` computes without rounding."""
    return ExactCudaStrategy.of(exact_row(), fast=fast)


class ExactWorkload:
    """The exact accumulator as a workload of a benchmark: its single launch, recorded.

    Each run adds the array to the same total, which is never cleared. Limbs are sums modulo 2^64, so the difference of
    the limbs before and after a run is exactly what the run added.
    """

    waits = False

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> None:
        self._op, self._dtype = op, dtype
        recorder = RecordingGpu(gpu)
        self._sum = ExactAccumulator(recorder, dtype, kind_of(op))
        with recorder.recording() as launches:
            self._sum.add(array)
        self._prepared = Prepared(gpu, launches)
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = self._prepared.start

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            before = self._sum.limbs.get()
            self.run()
            states = states_of_limbs(self._sum.kind, self._sum.limbs.get() - before)
        return finished(self._op, states, self._op.result_dtype(self._dtype), 0).value
