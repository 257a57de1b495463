"""CUB's reductions to many values, as peers of benchmarks by shape: a call puts one reduction on the GPU's stream."""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.baselines.toolkit import build
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import CudaError

SOURCE = Path(__file__).parent / "shaped_peers.cu"


def cub_matrix(gpu: Gpu, array: Any, dtype: DType, rows: int, columns: int) -> Callable[[], Any]:
    """The sums of the rows of a matrix, `rows` × `columns` elements of the CuPy array `array`. Raises Unavailable
    without a compiler."""
    import cupy

    out = cupy.empty(rows, dtype=dtype.numpy)
    sums = _Call(gpu, _library(gpu, dtype, "BY_ROWS").peer_rows, (array, out, rows, columns))

    def run() -> Any:
        sums()
        return out

    return run


def cub_segments(gpu: Gpu, array: Any, dtype: DType, offsets: Any) -> Callable[[], Any]:
    """The sums of segments by `offsets`, a CuPy array of int64. Raises Unavailable without a compiler."""
    import cupy

    segments = int(offsets.size) - 1
    out = cupy.empty(segments, dtype=dtype.numpy)
    sums = _Call(gpu, _library(gpu, dtype, "BY_OFFSETS").peer_offsets, (array, out, segments, offsets))

    def run() -> Any:
        sums()
        return out

    return run


def cub_keys(gpu: Gpu, array: Any, dtype: DType, keys: Any, *, in_order: bool) -> Callable[[], Any]:
    """The keys that there are, their sums, and how many there are: a reduction by key of int32 keys, which are sorted
    first unless they are `in_order`. Raises Unavailable without a compiler."""
    import cupy

    library, count = _library(gpu, dtype, "BY_KEYS"), int(keys.size)
    names, sums, key_count = cupy.empty_like(keys), cupy.empty_like(array), cupy.zeros(1, dtype=np.int64)
    steps = []
    if not in_order:
        ordered, moved = cupy.empty_like(keys), cupy.empty_like(array)
        steps.append(_Call(gpu, library.peer_sort, (keys, ordered, array, moved, count)))
        keys, array = ordered, moved
    steps.append(_Call(gpu, library.peer_reduce, (keys, names, array, sums, key_count, count)))

    def run() -> Any:
        for step in steps:
            step()
        return names, sums, key_count

    return run


def _library(gpu: Gpu, dtype: DType, by: str) -> Any:
    element = {"float32": "float", "float64": "double"}[dtype.name]
    return ctypes.CDLL(str(build({by: "", "ELEMENT": element}, gpu.arch, gpu.cache, source=SOURCE)))


class _Call:
    """A function of the library with its workspace and its arguments: CuPy arrays, and counts in 64 bits."""

    def __init__(self, gpu: Gpu, function: Any, arguments: Sequence[Any]) -> None:
        import cupy

        self._function, self._kept, self._wanted = function, arguments, ctypes.c_size_t()
        values = [
            ctypes.c_int64(argument) if isinstance(argument, int) else ctypes.c_void_p(argument.data.ptr)
            for argument in arguments
        ]
        self._rest = (ctypes.byref(self._wanted), *values, ctypes.c_void_p(gpu.stream.ptr))
        self._check(function(None, *self._rest))
        self._space = cupy.empty(max(1, self._wanted.value), dtype=np.uint8)
        self._address = ctypes.c_void_p(self._space.data.ptr)

    def __call__(self) -> None:
        self._check(self._function(self._address, *self._rest))

    def _check(self, status: int) -> None:
        if status:
            raise CudaError(f"{self._function.__name__} of CUB ended with the error {status}")
