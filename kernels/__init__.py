"""Reductions on CPUs and GPUs: what can be computed (ops, dtypes, strategies), of what (sources), where (backends)."""

import re

from warpfold.kernels.backend import GANG, Backend, Device, Progress, Reduction
from warpfold.kernels.catalog import backends_for, resolve, strategies, strategy_names
from warpfold.kernels.dtypes import DTYPES, DType, dtype_named, dtype_of
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.ops import OPS, NanPolicy, Op, Value, empty_value, op_named
from warpfold.kernels.source import ArraySource, GeneratedSource, Source
from warpfold.kernels.strategy import AUTO, EXACT, Strategy

__all__ = [
    "AUTO",
    "DTYPES",
    "EXACT",
    "GANG",
    "OPS",
    "ArraySource",
    "Backend",
    "CudaError",
    "DType",
    "Device",
    "GeneratedSource",
    "InvalidInput",
    "KernelError",
    "NanPolicy",
    "Op",
    "OutOfMemory",
    "Progress",
    "Reduction",
    "Source",
    "Strategy",
    "Unavailable",
    "Value",
    "backends_for",
    "dtype_named",
    "dtype_of",
    "empty_value",
    "op_named",
    "open_backend",
    "resolve",
    "strategies",
    "strategy_names",
]

_CUDA_SLOT = re.compile(r"cuda:(0|[1-9][0-9]{0,2})")


def open_backend(slot: str) -> Backend:
    """The backend of a slot: "cpu", "cuda:0", "cuda:1", … for a GPU, or "gang" for all GPUs of this machine.

    Raises InvalidInput for another name and Unavailable where this machine has no such device. Imports the device's
    libraries, so it takes seconds; the backend it returns does not.
    """
    if slot == "cpu":
        from warpfold.kernels.cpu.backend import CpuBackend

        return CpuBackend()
    if slot == GANG:
        from warpfold.kernels.cuda.scaling.gang import Gang

        return Gang()
    found = _CUDA_SLOT.fullmatch(slot)
    if not found:
        raise InvalidInput(f"unknown slot {slot!r}; a slot is cpu, gang, or cuda: and the number of a GPU", "slot")
    from warpfold.kernels.cuda.backend import CudaBackend

    return CudaBackend(int(found[1]))
