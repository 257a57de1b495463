"""What CuPy's own reductions give, called as its users call them."""

from collections.abc import Callable, Mapping
from typing import Any

from warpfold.kernels.cuda.strategies.reducer import Finished
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op, Value


class CupyMethod:
    """A reduction by CuPy of one array that holds all elements."""

    def __init__(self, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        self._op, self._dtype, self._omit_nan = op, dtype, omit_nan
        self._result: Any = None

    def add(self, array: Any, first: int) -> None:
        import cupy

        assert first == 0
        if not self._dtype.is_float and self._op.adds:
            low, high = self._dtype.bounds
            if array.size * max(-low, high) >= 1 << 63:
                raise InvalidInput(
                    f"CuPy adds integers in 64 bits, which {array.size:,} elements of {self._dtype.name} may exceed",
                    "strategy",
                )
        if self._omit_nan:
            if self._op.places:
                self._result = getattr(cupy, f"nan{self._op.name}")(array)
                return
            array = array[~cupy.isnan(array)]
            if array.size == 0:  # the backend has the value of nothing
                return
        self._result = cupy_calls()[self._op.name](array)

    def finish(self, count: int) -> Finished:
        value: Value = self._result.item() if hasattr(self._result, "item") else self._result
        if self._dtype.is_float and self._op.result_dtype(self._dtype) == self._dtype.name:
            value = float(value)
        return Finished(value, not self._op.rounds)  # its integers wrap at 64 bits


def cupy_calls() -> Mapping[str, Callable[[Any], Any]]:
    """By op, what CuPy's users call."""
    import cupy

    return {
        "sum": cupy.sum,
        "mean": cupy.mean,
        "prod": cupy.prod,
        "min": cupy.min,
        "max": cupy.max,
        "argmin": cupy.argmin,
        "argmax": cupy.argmax,
        "norm1": lambda x: cupy.abs(x).sum(),
        "sum_squares": lambda x: cupy.square(x).sum(),
        "norm2": cupy.linalg.norm,
        "norm_inf": lambda x: cupy.abs(x).max(),
        "count_nonzero": cupy.count_nonzero,
        "any": cupy.any,
        "all": cupy.all,
    }
