"""Tensors of PyTorch on a GPU: launches on PyTorch's current stream, with memory of PyTorch.

What follows from an op, a dtype and a shape is settled once and kept. A call asks PyTorch for addresses, memory and the
stream, by functions that make no objects, and hands them to the driver.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any

import torch

from warpfold.engines.axes import Axes, check_ddof, check_out, check_pair, float_dtype
from warpfold.engines.plans import Plan
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.resident import AlongReduction, Arrangement, ResidentReducer
from warpfold.kernels.ops import op_named

_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64"}


def reduced(op: str, x: Any, dim: Axes, keepdim: bool, out: Any, ddof: int) -> Any:  # noqa: PLR0917
    """The values of the op of that name, of which PyTorch makes no gradient."""
    if dim is None and not keepdim:
        return _whole(op, x.dtype, x.device)(x, out, ddof)
    axis = dim if dim is None or isinstance(dim, int) else tuple(dim)
    return _along(op, x.dtype, x.device, x.shape, x.stride(), axis, keepdim)(x, out, ddof)


def dotted(x: Any, y: Any, out: Any) -> Any:
    """Σ x y, of which PyTorch makes no gradient."""
    return _dot(x.dtype, x.device)(x, y, out)


Call = Callable[[Any, Any, int], Any]
"""The values of a tensor of the shape, dtype and device that the call was prepared for, in `out` unless that is None,
with a ddof."""


@cache
def _whole(op: str, dtype: Any, device: Any) -> Call:
    """An op of all elements."""
    of, index = float_dtype(_name(dtype, device)), device.index
    start = _reducer(index).whole(FINISHED_OPS[op], of)
    current_device, is_capturing, stream_of, empty = _functions()

    def call(x: Any, out: Any, ddof: int) -> Any:
        if current_device() != index:
            with torch.cuda.device(index):
                return call(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if x.is_neg() or not x.is_contiguous():
            x = _dense(x)
        values = empty((), (), dtype) if out is None else _checked(out, (), x)
        stream = stream_of(index)
        if is_capturing(stream):
            with _memory_of_graph():
                start(x.data_ptr(), x.numel(), values.data_ptr(), stream, ddof, True)
        else:
            start(x.data_ptr(), x.numel(), values.data_ptr(), stream, ddof)
        return values

    return call


@lru_cache(maxsize=256)
def _along(  # noqa: PLR0917
    op: str, dtype: Any, device: Any, shape: tuple[int, ...], strides: tuple[int, ...], axis: Axes, keepdim: bool
) -> Call:
    """An op along axes."""
    of, index = float_dtype(_name(dtype, device)), device.index
    plan = Plan(shape, strides, axis, keepdim)
    start = AlongReduction(_reducer(index), op, of, plan.arranged) if not plan.empty else None
    lengths, steps, copied, in_order = plan.lengths, plan.steps, plan.copied, plan.in_order
    current_device, is_capturing, stream_of, empty = _functions()

    def call(x: Any, out: Any, ddof: int) -> Any:
        if current_device() != index:
            with torch.cuda.device(index):
                return call(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if out is not None:
            _checked(out, plan.shape, x)
        if start is None:
            values = x.new_full(plan.shape, op_named(op).empty_or_nan)
            return values if out is None else out.copy_(values)
        if x.is_neg():
            x = x.resolve_neg()
        if copied is not None:
            x = x.permute(copied).contiguous()
        direct = out is not None and in_order and out.is_contiguous()
        values = out if direct else empty(lengths, steps, dtype)
        stream = stream_of(index)
        if is_capturing(stream):
            with _memory_of_graph():
                start(x.data_ptr(), values.data_ptr(), stream, ddof, True)
        else:
            start(x.data_ptr(), values.data_ptr(), stream, ddof)
        if not in_order:
            values = values.permute(plan.order).reshape(plan.shape)
        return values if out is None or direct else out.copy_(values)

    return call


@cache
def _dot(dtype: Any, device: Any) -> Callable[[Any, Any, Any], Any]:
    """The dot product of two tensors, in `out` unless that is None."""
    of, index = float_dtype(_name(dtype, device)), device.index
    start = _reducer(index).dot(of)
    current_device, is_capturing, stream_of, empty = _functions()

    def call(x: Any, y: Any, out: Any) -> Any:
        if y.dtype is not dtype or y.shape != x.shape:
            check_pair(tuple(x.shape), _name(dtype, device), tuple(y.shape), _name(y.dtype, y.device))
        if y.get_device() != index:
            raise ValueError(f"dot needs two tensors on one device, not on {device} and {y.device}")
        if current_device() != index:
            with torch.cuda.device(index):
                return call(x, y, out)
        x, y = _in_order(x), _in_order(y)
        left, right = x.data_ptr(), y.data_ptr()
        if (left - right) % 16:
            x, y = x.clone(), y.clone()
            left, right = x.data_ptr(), y.data_ptr()
        values = empty((), (), dtype) if out is None else _checked(out, (), x)
        stream = stream_of(index)
        if is_capturing(stream):
            with _memory_of_graph():
                start(left, right, x.numel(), values.data_ptr(), stream, True)
        else:
            start(left, right, x.numel(), values.data_ptr(), stream)
        return values

    return call


def _functions() -> tuple[Callable[[], int], Callable[[int], bool], Callable[[int], int], Callable[..., Any]]:
    """What each call asks for, by the quickest functions: the current device, whether a stream is captured into a
    graph, PyTorch's stream of a device, and memory for an array of lengths, steps and a dtype."""
    from cupy.cuda import runtime

    try:  # as the code that PyTorch's compiler makes gets its memory, past the dispatcher
        from torch._C._dynamo.guards import _empty_strided_cuda as empty
    except ImportError:
        empty = _empty
    return runtime.getDevice, runtime.streamIsCapturing, torch._C._cuda_getCurrentRawStream, empty


def _empty(lengths: tuple[int, ...], steps: tuple[int, ...], dtype: Any) -> Any:
    return torch.empty_strided(lengths, steps, dtype=dtype, device="cuda")


@cache
def _reducer(device: int) -> ResidentReducer:
    from warpfold.engines.cupy import reducer

    return reducer(device)


def _name(dtype: Any, device: Any) -> str:
    """The name of a dtype of tensors on a GPU."""
    if device.type != "cuda":
        raise TypeError(f"give a tensor on a GPU; this tensor is on {device}")
    return _NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def _checked(out: Any, shape: tuple[int, ...], x: Any) -> Any:
    """`out`, where it takes values of this shape that are like the elements of `x`."""
    check_out(shape, _name(x.dtype, x.device), tuple(out.shape), _name(out.dtype, out.device))
    if out.device != x.device:
        raise ValueError(f"out is on {out.device}; the values are on {x.device}")
    return out


def _dense(x: Any) -> Any:
    """A tensor with the same elements, in any order, and no gaps."""
    x = x.resolve_neg()
    return x if Arrangement.of(x.shape, x.stride(), frozenset(range(x.dim()))) is not None else x.contiguous()


def _in_order(x: Any) -> Any:
    """A tensor with the same elements in C order."""
    return x.resolve_neg().contiguous() if x.is_neg() or not x.is_contiguous() else x


def _memory_of_graph() -> AbstractContextManager[None]:
    """A context in which CuPy's memory is that of the graph that PyTorch captures."""
    import cupy

    context: AbstractContextManager[None] = cupy.cuda.using_allocator(_of_torch)
    return context


def _of_torch(size: int) -> Any:
    import cupy

    room = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(room.data_ptr(), size, room), 0)
