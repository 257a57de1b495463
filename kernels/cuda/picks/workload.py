"""Picked elements and counts as workloads of benchmarks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import RowsLayout
from warpfold.kernels.cuda.picks.kernels import COUNT_BINS, COUNT_PICKS, WRITE_PICKS, name_of, picks_unit
from warpfold.kernels.cuda.picks.states import GroupedStates
from warpfold.kernels.cuda.ranks.rows import THREADS
from warpfold.kernels.cuda.ranks.whole import planned_ranks
from warpfold.kernels.cuda.strategies.strategy import PlannedKernel
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Value


def planned_picks(op: Op, dtype: DType) -> tuple[PlannedKernel, ...]:
    """The kernels of an op of bins or of one that picks elements in their order."""
    names = (COUNT_BINS,) if op.fold == "histogram" else (COUNT_PICKS, WRITE_PICKS)
    found = () if op.fold == "histogram" else (planned_ranks(dtype),)
    return (*found, *(PlannedKernel(picks_unit(dtype), name_of(name, dtype), THREADS, 0) for name in names))


class PicksWorkload:
    """The value of `op`, which picks or counts elements, of a CuPy array. The host waits for the steps."""

    waits = True

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> None:
        self._made = GroupedStates(gpu, array, RowsLayout(1, array.size, array.size), dtype, op, omit_nan=False)
        self._values: NDArray[Any] = np.zeros(1)
        self.read_bytes = int(array.nbytes)

    def run(self) -> None:
        self._made.start()
        self._values = self._made.values()

    def value(self) -> Value:
        value: Value = self._values.tolist()[0]
        return value
