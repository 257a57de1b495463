"""Exact reductions of CuPy arrays, and of JAX arrays by way of DLPack.

What follows from an op, a dtype and a shape is settled once and kept. A call asks CuPy for addresses, memory and the
stream, and hands them to the driver.
"""

from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any

import cupy
from cupy.cuda import get_current_stream, runtime

from warpfold.engines.axes import ZERO_OF_NONE, Axes, check_ddof, check_out, check_pair, float_dtype
from warpfold.engines.plans import Plan
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.resident import AlongReduction, ResidentReducer


@cache
def reducer(device: int) -> ResidentReducer:
    """The kernels of the GPU that CUDA numbers `device`."""
    return ResidentReducer(Gpu(device))


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


class _Whole:
    """An op of all elements of an array, prepared for a dtype and the device of that number."""

    __slots__ = ("_device", "_start")

    def __init__(self, op: str, dtype: Any, device: int) -> None:
        of = float_dtype(dtype.name)
        self._device, self._start = device, reducer(device).whole(FINISHED_OPS[op], of)

    def __call__(self, x: Any, out: Any, ddof: int) -> Any:
        """The value of an array of that dtype and device."""
        if runtime.getDevice() != self._device:
            with cupy.cuda.Device(self._device):
                return self(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if not x.flags.forc:
            x = cupy.ascontiguousarray(x)
        values = cupy.ndarray((), x.dtype) if out is None else _checked(out, (), x)
        stream = get_current_stream().ptr
        if runtime.streamIsCapturing(stream):
            with _kept_memory():
                self._start(x.data.ptr, x.size, values.data.ptr, stream, ddof, True)
        else:
            self._start(x.data.ptr, x.size, values.data.ptr, stream, ddof)
        return values


class _Along:
    """An op along axes of an array of one shape."""

    __slots__ = ("_device", "_op", "_plan", "_start")

    def __init__(  # noqa: PLR0917
        self, op: str, dtype: Any, device: int, shape: tuple[int, ...], strides: tuple[int, ...], axis: Axes,
        keepdims: bool,
    ) -> None:  # fmt: skip
        of = float_dtype(dtype.name)
        self._op, self._device = op, device
        self._plan = Plan(shape, [stride // dtype.itemsize for stride in strides], axis, keepdims)
        self._start: Any = None
        if not self._plan.empty:
            self._start = AlongReduction(reducer(device), op, of, self._plan.arranged)

    def __call__(self, x: Any, out: Any, ddof: int) -> Any:
        """The values of an array of that shape, dtype and device."""
        if runtime.getDevice() != self._device:
            with cupy.cuda.Device(self._device):
                return self(x, out, ddof)
        plan = self._plan
        if ddof:
            check_ddof(ddof)
        if out is not None:
            _checked(out, plan.shape, x)
        if plan.empty:
            values = cupy.full(plan.shape, 0 if self._op in ZERO_OF_NONE else cupy.nan, x.dtype)
            return values if out is None else _copied(values, out)
        if plan.copied is not None:
            x = cupy.ascontiguousarray(x.transpose(plan.copied))
        direct = out is not None and plan.in_order and out.flags.c_contiguous
        values = out if direct else cupy.ndarray(plan.lengths, x.dtype)
        stream = get_current_stream().ptr
        if runtime.streamIsCapturing(stream):
            with _kept_memory():
                self._start(x.data.ptr, values.data.ptr, stream, ddof, True)
        else:
            self._start(x.data.ptr, values.data.ptr, stream, ddof)
        if not plan.in_order:
            values = values.transpose(plan.order).reshape(plan.shape)
        return values if out is None or direct else _copied(values, out)


class _Dot:
    """The dot product of arrays of a dtype, prepared for the device of that number."""

    __slots__ = ("_device", "_start")

    def __init__(self, dtype: Any, device: int) -> None:
        of = float_dtype(dtype.name)
        self._device, self._start = device, reducer(device).dot(of)

    def __call__(self, x: Any, y: Any, out: Any) -> Any:
        """The value of two arrays, the first of that dtype and device."""
        if y.dtype != x.dtype or y.shape != x.shape:
            check_pair(x.shape, x.dtype.name, y.shape, y.dtype.name)
        if runtime.getDevice() != self._device:
            with cupy.cuda.Device(self._device):
                return self(x, y, out)
        if not x.flags.c_contiguous:
            x = cupy.ascontiguousarray(x)
        if not y.flags.c_contiguous:
            y = cupy.ascontiguousarray(y)
        left, right = x.data.ptr, y.data.ptr
        if (left - right) % 16:
            x, y = x.copy(), y.copy()
            left, right = x.data.ptr, y.data.ptr
        values = cupy.ndarray((), x.dtype) if out is None else _checked(out, (), x)
        stream = get_current_stream().ptr
        if runtime.streamIsCapturing(stream):
            with _kept_memory():
                self._start(left, right, x.size, values.data.ptr, stream, True)
        else:
            self._start(left, right, x.size, values.data.ptr, stream)
        return values


_whole = cache(_Whole)
_dot = cache(_Dot)
_along = lru_cache(maxsize=256)(_Along)


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
