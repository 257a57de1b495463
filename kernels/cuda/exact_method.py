"""Exact sums of floats on the GPU, as a method of the backend."""

from typing import Any

from kernels.cuda.digits import DigitAccumulator
from kernels.cuda.launch import Gpu
from kernels.cuda.methods import Finished
from kernels.dtypes import DType
from kernels.exact.finish import value_of
from kernels.exact.state import ExactState
from kernels.ops import Op


class ExactFloats:
    """Sum, mean, norm1, sum of squares or norm2 of floats, rounded once. Elements to be left out must be −0."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType) -> None:
        self._op, self._dtype = op, dtype
        self._accumulator = DigitAccumulator(gpu, dtype, op.terms, magnitudes=op.name == "norm1")

    def add(self, array: Any, first: int) -> None:
        self._accumulator.add(array)

    def finish(self, count: int) -> Finished:
        added = self._accumulator.state()
        state = ExactState(added.terms, added.units, count, added.flags)  # without those left out
        return Finished(value_of(self._op, state, self._op.result_dtype(self._dtype)), True, state)
