"""Reductions on CPUs and GPUs: what can be computed (ops, dtypes, strategies), of what (sources), where (backends)."""

from warpfold.kernels.backend import GANG, Backend, Device, Progress, Reduction
from warpfold.kernels.catalog import backends_for, resolve, strategies, strategy_names
from warpfold.kernels.dtypes import DTYPES, DType, dtype_named, dtype_of
from warpfold.kernels.errors import CudaError, InvalidInput, KernelError, OutOfMemory, Unavailable
from warpfold.kernels.open import open_backend
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
