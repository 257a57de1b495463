"""PyTorch's own reductions, on the memory where the array lies."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.ops import Op, Value
from warpfold.kernels.strategy import claims

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_CALLS: Mapping[str, str] = {
    "sum": "sum",
    "mean": "mean",
    "prod": "prod",
    "min": "amin",
    "max": "amax",
    "argmin": "argmin",
    "argmax": "argmax",
    "count_nonzero": "count_nonzero",
    "any": "any",
    "all": "all",
}


def torch_baseline() -> Baseline:
    """PyTorch as a peer. Where PyTorch is missing, the row of the catalogue says so."""
    return Baseline(
        name="torch",
        summary="What PyTorch's own reductions give, on the array as a whole.",
        error_bound="PyTorch promises none; any order of additions keeps γ_n Σ|x| in the accumulator's precision "
        "(float32 for 16-bit floats); integers wrap at 64 bits",
        claims=claims(("sum", "prod", "min", "max", "argmin", "argmax", "count_nonzero", "any", "all"), _FLOATS)
        | claims(("mean",), _FLOATS)
        | claims(("sum", "min", "max", "argmin", "argmax", "count_nonzero", "any", "all"), _INTEGERS)
        | claims(("count_nonzero", "any", "all"), ("bool",)),
        missing=_missing(),
        bind=TorchReduction,
    )


def _missing() -> str | None:
    return None if find_spec("torch") is not None else "PyTorch is not installed"


def torch_on(gpu: Gpu) -> Any:
    """PyTorch, whose current stream is the GPU's from here on. Raises Unavailable where it cannot use the GPU."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"PyTorch cannot be loaded: {error}") from error
    if not torch.cuda.is_available():
        raise Unavailable("this PyTorch cannot use the GPU")
    torch.cuda.set_stream(torch.cuda.ExternalStream(gpu.stream.ptr, device=torch.device("cuda", gpu.index)))
    return torch


class TorchReduction:
    """One reduction of one array, called as PyTorch's users call it: the result is a new tensor on the device."""

    waits = False

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> None:
        torch = torch_on(gpu)
        tensor = torch.from_dlpack(array)
        self._tensor = tensor.view(torch.bfloat16) if dtype.name == "bfloat16" else tensor
        self._call: Callable[[Any], Any] = getattr(torch, _CALLS[op.name])
        self._result: Any = None

    def run(self) -> None:
        self._result = self._call(self._tensor)

    def value(self) -> Value:
        value: Value = self._result.item()
        return value
