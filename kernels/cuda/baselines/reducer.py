"""A baseline as a method of the backend, for reductions of whole arrays."""

from typing import Any

from warpfold.kernels.cuda.baselines.bound import Baseline, Bound
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.strategies.reducer import Finished
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op


class BaselineMethod:
    """One reduction by a peer of one array that holds all elements."""

    def __init__(self, gpu: Gpu, baseline: Baseline, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        if omit_nan:
            raise InvalidInput(f"strategy {baseline.row.name} cannot leave NaN out", "nan_policy")
        self._gpu, self._baseline, self._op, self._dtype = gpu, baseline, op, dtype
        self._bound: Bound | None = None

    def add(self, array: Any, first: int) -> None:
        assert first == 0
        assert self._bound is None
        self._bound = self._baseline.bind(self._gpu, self._op, self._dtype, array)
        self._bound.run()

    def finish(self, count: int) -> Finished:
        assert self._bound is not None
        selects = not self._op.rounds
        return Finished(self._bound.value(), selects)  # of what a peer adds, in what width, nothing is proved here
