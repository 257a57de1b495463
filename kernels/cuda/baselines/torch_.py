"""PyTorch's own reductions, on the memory where the array lies."""

from collections.abc import Callable, Mapping
from typing import Any

from warpfold.kernels.cuda.baselines.peer import Baseline
from warpfold.kernels.cuda.baselines.rows import TORCH_ROW
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import Unavailable
from warpfold.kernels.ops import Op, Value

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
    return Baseline.of(TORCH_ROW, bind=TorchReduction)


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
