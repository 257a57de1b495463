"""CuPy's own reductions as a strategy, called as its users call them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.strategies.rows import CUPY_ROW
from warpfold.kernels.cuda.strategies.strategy import Finished, PeerStrategy
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Op, Value
from warpfold.kernels.ops.operands import Operands


class CupyStrategy(PeerStrategy):
    """CuPy, on an array that lies in the GPU's memory as a whole."""

    def start(self, gpu: Gpu, op: Op, taken: Operands, *, pieces: int = 1, omit_nan: bool = False) -> "CupyReducer":
        return CupyReducer(op, taken.source.dtype, omit_nan=omit_nan)

    def workload(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> "CupyWorkload":
        return CupyWorkload(op, array)


def cupy_strategy() -> CupyStrategy:
    """CuPy as a strategy; whether it is installed is seen when a GPU is opened."""
    return CupyStrategy.of(CUPY_ROW)


class CupyReducer:
    """A reduction by CuPy of one array that holds all elements."""

    def __init__(self, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        self._op, self._dtype, self._omit_nan = op, dtype, omit_nan
        self._result: Any = None

    def add(self, arrays: Sequence[Any], first: int) -> None:
        import cupy

        (array,) = arrays
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
            if array.size == 0:  # the backend itself knows the value of no elements
                return
        self._result = cupy_calls()[self._op.name](array)

    def omitted(self) -> None:
        """None, because CuPy does not count the elements that it leaves out."""

    def finish(self, count: int) -> Finished:
        value: Value = self._result.item() if hasattr(self._result, "item") else self._result
        if self._dtype.is_float and self._op.result_dtype(self._dtype) == self._dtype.name:
            value = float(value)
        return Finished(value, not self._op.rounds)  # integers wrap at 64 bits


class CupyWorkload:
    """CuPy, called as its users call it: the result is a new array on the device."""

    waits = False

    def __init__(self, op: Op, array: Any) -> None:
        self._call, self._array = cupy_calls()[op.name], array
        self._result: Any = None
        self.read_bytes = int(array.nbytes)

    def run(self) -> None:
        self._result = self._call(self._array)

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            value: Value = self._result.item()
            return value


def cupy_calls() -> Mapping[str, Callable[[Any], Any]]:
    """The function that CuPy's users call, by op."""
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
