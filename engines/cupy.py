"""Exact reductions of CuPy arrays, and of JAX arrays by way of DLPack.

What follows from an op, a dtype and a shape is settled once and kept. A call asks CuPy for addresses, memory and the
stream, and hands them to the driver.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from threading import RLock
from typing import Any, TypeVar

import cupy
from cupy.cuda import get_current_stream
from cupy.cuda.runtime import getDevice, streamIsCapturing

from warpfold.engines.axes import Axes, check_ddof, check_out, check_pair, float_dtype
from warpfold.engines.plans import Plan
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import AlongReduction, ResidentLevels, ResidentReducer, ResidentTotals
from warpfold.kernels.ops import op_named

T = TypeVar("T")

_OPENING = RLock()
"""Of threads that begin together, one opens a GPU: each `Gpu` would compile and load the kernels anew."""


def opened_once(make: Callable[[int], T]) -> Callable[[int], T]:
    """What `make` opens on a device, kept for all later calls."""
    kept = cache(make)

    def opened(device: int) -> T:
        with _OPENING:
            return kept(device)

    return opened


@opened_once
def reducer(device: int) -> ResidentReducer:
    """The kernels of the GPU that CUDA numbers `device`."""
    return ResidentReducer(Gpu(device))


@opened_once
def totals(device: int) -> ResidentTotals:
    """The kernels of the same GPU for totals that stay on it."""
    return ResidentTotals(reducer(device).gpu)


@opened_once
def levels(device: int) -> ResidentLevels:
    """The kernels of the same GPU for sums of many values that stay on it."""
    return ResidentLevels(reducer(device).gpu)


class CupyArrays:
    """CuPy arrays on their device, on CuPy's current stream."""

    def reduce(self, op: str, x: Any, axis: Axes, keepdims: bool, out: Any, ddof: int = 0) -> Any:  # noqa: PLR0917
        """The values of `op`."""
        if axis is None and not keepdims:
            return _whole(op, x.dtype, x.data.device_id)(x, out, ddof)
        chosen = axis if axis is None or isinstance(axis, int) else tuple(axis)
        return _along(op, x.dtype, x.data.device_id, x.shape, x.strides, chosen, keepdims)(x, out, ddof)

    def dot(self, x: Any, y: Any, *, out: Any = None) -> Any:
        """Σ x y."""
        return _dot(x.dtype, x.data.device_id)(x, y, out)


Call = Callable[[Any, Any, int], Any]
"""The values of an array of the shape, dtype and device that the call was prepared for, in `out` unless that is None,
with a ddof."""


@cache
def _whole(op: str, dtype: Any, device: int) -> Call:
    """An op of all elements."""
    start = reducer(device).whole(FINISHED_OPS[op], float_dtype(dtype.name))

    def call(x: Any, out: Any, ddof: int) -> Any:
        if getDevice() != device:
            with cupy.cuda.Device(device):
                return call(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if not x.flags.forc:
            x = cupy.ascontiguousarray(x)
        values = cupy.ndarray((), dtype) if out is None else _checked(out, (), x)
        stream = get_current_stream().ptr
        if streamIsCapturing(stream):
            with _kept_memory():
                start(x.data.ptr, x.size, values.data.ptr, stream, ddof, True)
        else:
            start(x.data.ptr, x.size, values.data.ptr, stream, ddof)
        return values

    return call


@lru_cache(maxsize=256)
def _along(  # noqa: PLR0917
    op: str, dtype: Any, device: int, shape: tuple[int, ...], strides: tuple[int, ...], axis: Axes, keepdims: bool
) -> Call:
    """An op along axes."""
    of = float_dtype(dtype.name)
    plan = Plan(shape, [stride // dtype.itemsize for stride in strides], axis, keepdims)
    start = AlongReduction(reducer(device), op, of, plan.arranged) if not plan.empty else None

    def call(x: Any, out: Any, ddof: int) -> Any:
        if getDevice() != device:
            with cupy.cuda.Device(device):
                return call(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if out is not None:
            _checked(out, plan.shape, x)
        if start is None:
            values = cupy.full(plan.shape, op_named(op).empty_or_nan, dtype)
            return values if out is None else _copied(values, out)
        if plan.copied is not None:
            x = cupy.ascontiguousarray(x.transpose(plan.copied))
        direct = out is not None and plan.in_order and out.flags.c_contiguous
        values = out if direct else cupy.ndarray(plan.lengths, dtype)
        stream = get_current_stream().ptr
        if streamIsCapturing(stream):
            with _kept_memory():
                start(x.data.ptr, values.data.ptr, stream, ddof, True)
        else:
            start(x.data.ptr, values.data.ptr, stream, ddof)
        if not plan.in_order:
            values = values.transpose(plan.order).reshape(plan.shape)
        return values if out is None or direct else _copied(values, out)

    return call


@cache
def _dot(dtype: Any, device: int) -> Callable[[Any, Any, Any], Any]:
    """The dot product of two arrays, in `out` unless that is None."""
    start = reducer(device).dot(float_dtype(dtype.name))

    def call(x: Any, y: Any, out: Any) -> Any:
        if y.dtype != dtype or y.shape != x.shape:
            check_pair(x.shape, dtype.name, y.shape, y.dtype.name)
        if getDevice() != device:
            with cupy.cuda.Device(device):
                return call(x, y, out)
        if not x.flags.c_contiguous:
            x = cupy.ascontiguousarray(x)
        if not y.flags.c_contiguous:
            y = cupy.ascontiguousarray(y)
        left, right = x.data.ptr, y.data.ptr
        if (left - right) % 16:
            x, y = x.copy(), y.copy()
            left, right = x.data.ptr, y.data.ptr
        values = cupy.ndarray((), dtype) if out is None else _checked(out, (), x)
        stream = get_current_stream().ptr
        if streamIsCapturing(stream):
            with _kept_memory():
                start(left, right, x.size, values.data.ptr, stream, True)
        else:
            start(left, right, x.size, values.data.ptr, stream)
        return values

    return call


def _checked(out: Any, shape: tuple[int, ...], x: Any) -> Any:
    """`out`, where it takes values of this shape that are like the elements of `x`."""
    check_out(shape, x.dtype.name, out.shape, out.dtype.name)
    return out


class _Kept:
    """Memory of graphs, which is kept because a graph may run as long as the process does."""

    def __init__(self) -> None:
        self._memory: list[Any] = []

    def malloc(self, size: int) -> Any:
        """New memory from CuPy's own pool."""
        memory = cupy.get_default_memory_pool().malloc(size)
        self._memory.append(memory)
        return memory


@cache
def _kept() -> _Kept:
    return _Kept()


def _kept_memory() -> AbstractContextManager[None]:
    """A context in which CuPy's memory is kept."""
    context: AbstractContextManager[None] = cupy.cuda.using_allocator(_kept().malloc)
    return context


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
