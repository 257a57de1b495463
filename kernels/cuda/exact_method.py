"""Exact sums of floats on the GPU, as a method of the backend."""

from typing import Any

from kernels.cuda.exact import ExactAccumulator
from kernels.cuda.launch import Gpu
from kernels.cuda.methods import Finished
from kernels.dtypes import DType
from kernels.exact.finish import value_of
from kernels.ops import Op


class ExactFloats:
    """Sum, mean, norm1, sum of squares or norm2 of floats, rounded once; without the NaN elements if `omit_nan`."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        self._op, self._dtype, self._omit_nan = op, dtype, omit_nan
        self._accumulator = ExactAccumulator(gpu, dtype, op.terms, magnitudes=op.name == "norm1")

    def add(self, array: Any, first: int) -> None:
        self._accumulator.add(array)

    @property
    def omitted(self) -> int:
        """How many elements are left out; waits for the work."""
        return self._accumulator.nans if self._omit_nan else 0

    def finish(self, count: int) -> Finished:
        state = self._accumulator.state(omit_nan=self._omit_nan)
        assert state.count == count, f"{state.count} elements were added, not {count}"
        return Finished(value_of(self._op, state, self._op.result_dtype(self._dtype)), True, state)
