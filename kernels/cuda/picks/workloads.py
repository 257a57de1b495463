"""Ops that rank elements, pick or count them as workloads of benchmarks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import RowsLayout
from warpfold.kernels.cuda.picks.kernels import COUNT_BINS, COUNT_PICKS, WRITE_PICKS, name_of, picks_unit
from warpfold.kernels.cuda.picks.states import GroupedStates
from warpfold.kernels.cuda.ranks import kernels as of_ranks
from warpfold.kernels.cuda.ranks.digits import DigitCounts
from warpfold.kernels.cuda.ranks.rows import THREADS
from warpfold.kernels.cuda.strategies.strategy import PlannedKernel
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Value


def planned_picks(op: Op, dtype: DType) -> tuple[PlannedKernel, ...]:
    """The kernels of an op of bins or of one that picks elements in their order."""
    names = (COUNT_BINS,) if op.fold == "histogram" else (COUNT_PICKS, WRITE_PICKS)
    ranks = () if op.fold == "histogram" else (planned_ranks(dtype),)
    return (*ranks, *(PlannedKernel(picks_unit(dtype), name_of(name, dtype), THREADS, 0) for name in names))


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


def planned_ranks(dtype: DType) -> PlannedKernel:
    """The kernel that is launched for each digit of the keys of `dtype`."""
    return PlannedKernel(of_ranks.ranks_unit(dtype), of_ranks.name_of(of_ranks.COUNT_DIGITS, dtype), THREADS, 0)


class RanksWorkload:
    """The value of `op`, which puts elements in order, of a CuPy array without NaN. The host waits for each digit."""

    waits = True

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> None:
        self._gpu, self._op, self._dtype, self._array = gpu, op, dtype, array
        self._ranks = Ranks(op, np.array([array.size]))
        self._keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.read_bytes = int(array.nbytes)

    def run(self) -> None:
        digits = DigitCounts(self._gpu, self._dtype, lambda: iter((self._array,)))
        self._keys = digits.keys(self._ranks.sorted[0].tolist())

    def value(self) -> Value:
        values = of_ranks.values_of(self._keys.reshape(1, -1), self._ranks, None, self._op, self._dtype)
        value: Value = values.tolist()[0]
        return value
