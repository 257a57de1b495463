"""Exact reductions of CuPy arrays, and of JAX arrays by way of DLPack."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import cupy

from warpfold.engines.axes import (
    ZERO_OF_NONE,
    Axes,
    check_ddof,
    check_out,
    check_pair,
    float_dtype,
    normal_axes,
    result_shape,
)
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import (
    Arrangement,
    ResidentLevels,
    ResidentReducer,
    ResidentTotals,
    reduce_along,
)
from warpfold.kernels.dtypes import DType

_OPENING = Lock()
"""Of threads that begin together, one opens a GPU: each `Gpu` would compile and load the kernels anew."""


def reducer(device: int) -> ResidentReducer:
    """The kernels of the GPU that CUDA numbers `device`."""
    with _OPENING:
        return _reducer(device)


@cache
def _reducer(device: int) -> ResidentReducer:
    return ResidentReducer(Gpu(device))


def totals(device: int) -> ResidentTotals:
    """The kernels of the same GPU for totals that stay on it."""
    gpu = reducer(device).gpu
    with _OPENING:
        return _totals(gpu)


@cache
def _totals(gpu: Gpu) -> ResidentTotals:
    return ResidentTotals(gpu)


def levels(device: int) -> ResidentLevels:
    """The kernels of the same GPU for sums of many values that stay on it."""
    gpu = reducer(device).gpu
    with _OPENING:
        return _levels(gpu)


@cache
def _levels(gpu: Gpu) -> ResidentLevels:
    return ResidentLevels(gpu)


class CupyArrays:
    """CuPy arrays on their device, on CuPy's current stream."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def reduce(self, op: str, x: Any, axis: Axes, keepdims: bool, out: Any, ddof: int = 0) -> Any:  # noqa: PLR0917
        """The values of `op`."""
        dtype = float_dtype(x.dtype.name)
        check_ddof(ddof)
        axes = normal_axes(axis, x.ndim)
        shape = result_shape(x.shape, axes, keepdims=keepdims)
        if out is not None:
            check_out(shape, dtype.name, out.shape, out.dtype.name)
        with x.device, self._stream() as (stream, captured):
            if not x.size:
                values = cupy.full(shape, 0 if op in ZERO_OF_NONE else cupy.nan, x.dtype)
                return values if out is None else _copied(values, out)
            if len(axes) == x.ndim:
                x = x if x.flags.forc else cupy.ascontiguousarray(x)
                values = cupy.empty(shape, x.dtype) if out is None else out
                reducer(x.device.id).reduce(
                    FINISHED_OPS[op], dtype, x.data.ptr, x.size, values.data.ptr, stream, ddof, captured
                )
                return values
            values = self._along(op, x, dtype, axes, stream, ddof, captured).reshape(shape)
            return values if out is None else _copied(values, out)

    def _along(  # noqa: PLR0917
        self, op: str, x: Any, dtype: DType, axes: frozenset[int], stream: Any, ddof: int, captured: bool
    ) -> Any:
        arranged = Arrangement.of(x.shape, [stride // x.itemsize for stride in x.strides], axes)
        if arranged is None:
            arranged = Arrangement.rows(x.shape, axes)
            x = cupy.ascontiguousarray(x.transpose([*arranged.kept, *sorted(axes)]))
        values = cupy.empty(x.size // arranged.count, x.dtype)
        reduce_along(reducer(x.device.id), op, dtype, x.data.ptr, arranged, values.data.ptr, stream, ddof, captured)
        return values.reshape(arranged.lengths).transpose(arranged.order)

    def dot(self, x: Any, y: Any, *, out: Any = None) -> Any:
        """Σ x y."""
        dtype = float_dtype(x.dtype.name)
        check_pair(x.shape, dtype.name, y.shape, y.dtype.name)
        if out is not None:
            check_out((), dtype.name, out.shape, out.dtype.name)
        with x.device, self._stream() as (stream, captured):
            x, y = cupy.ascontiguousarray(x), cupy.ascontiguousarray(y)
            if (x.data.ptr - y.data.ptr) % 16:
                x, y = x.copy(), y.copy()
            values = cupy.empty((), x.dtype) if out is None else out
            reducer(x.device.id).dot(dtype, x.data.ptr, y.data.ptr, x.size, values.data.ptr, stream, captured)
            return values

    @contextmanager
    def _stream(self) -> Iterator[tuple[Any, bool]]:
        """CuPy's stream, and whether it is captured into a graph: the memory of a graph is kept, because the graph may
        run as long as the process does."""
        stream = cupy.cuda.get_current_stream()
        if not stream.is_capturing():
            yield stream, False
            return
        with cupy.cuda.using_allocator(self._keeping):
            yield stream, True

    def _keeping(self, size: int) -> Any:
        memory = cupy.get_default_memory_pool().malloc(size)
        self._kept.append(memory)
        return memory


class JaxArrays:
    """JAX arrays of one GPU each, and of dtypes that CuPy has. They are read where they lie."""

    def __init__(self) -> None:
        self._arrays = CupyArrays()

    def reduce(self, op: str, x: Any, axis: Axes, keepdims: bool, ddof: int) -> Any:
        """The values of `op`, as a JAX array."""
        return _to_jax(self._arrays.reduce(op, cupy.from_dlpack(x), axis, keepdims, None, ddof))

    def dot(self, x: Any, y: Any) -> Any:
        """Σ x y, as a JAX array."""
        return _to_jax(self._arrays.dot(cupy.from_dlpack(x), cupy.from_dlpack(y)))


def _to_jax(values: Any) -> Any:
    import jax

    return jax.dlpack.from_dlpack(values)


def _copied(values: Any, out: Any) -> Any:
    out[...] = values
    return out
