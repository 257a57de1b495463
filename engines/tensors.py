"""Tensors of PyTorch on a GPU: launches on PyTorch's current stream, with memory of PyTorch.

What follows from an op, a dtype and a shape is settled once and kept. A call asks PyTorch for addresses, memory and the
stream, by functions of `torch._C` that make no objects, and hands them to the driver.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any

import torch

from warpfold.engines.axes import ZERO_OF_NONE, Axes, check_ddof, check_out, check_pair, float_dtype
from warpfold.engines.plans import Plan
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.resident import AlongReduction, Arrangement, ResidentReducer

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


class _Prepared:
    """What PyTorch is asked for in each call on one device, whose number is `index`."""

    __slots__ = ("_device", "_index", "_is_capturing", "_stream_of")

    def __init__(self, device: Any) -> None:
        self._index: int = device.index
        self._device: Callable[[], int] = torch._C._cuda_getDevice
        self._is_capturing: Callable[[], bool] = torch._C._cuda_isCurrentStreamCapturing
        self._stream_of: Callable[[int], int] = torch._C._cuda_getCurrentRawStream


class _Whole(_Prepared):
    """An op of all elements of a tensor."""

    __slots__ = ("_start",)

    def __init__(self, op: str, dtype: Any, device: Any) -> None:
        of = float_dtype(_name(dtype, device))
        super().__init__(device)
        self._start = _reducer(device.index).whole(FINISHED_OPS[op], of)

    def __call__(self, x: Any, out: Any, ddof: int) -> Any:
        """The value of a tensor of that dtype and device."""
        if self._device() != self._index:
            with torch.cuda.device(self._index):
                return self(x, out, ddof)
        if ddof:
            check_ddof(ddof)
        if x.is_neg() or not x.is_contiguous():
            x = _dense(x)
        values = x.new_empty(()) if out is None else _checked(out, (), x)
        stream = self._stream_of(self._index)
        if self._is_capturing():
            with _memory_of_graph():
                self._start(x.data_ptr(), x.numel(), values.data_ptr(), stream, ddof, True)
        else:
            self._start(x.data_ptr(), x.numel(), values.data_ptr(), stream, ddof)
        return values


class _Along(_Prepared):
    """An op along axes of a tensor of one shape."""

    __slots__ = ("_name", "_op", "_plan", "_start")

    def __init__(  # noqa: PLR0917
        self, op: str, dtype: Any, device: Any, shape: tuple[int, ...], strides: tuple[int, ...], axis: Axes,
        keepdim: bool,
    ) -> None:  # fmt: skip
        of = float_dtype(_name(dtype, device))
        super().__init__(device)
        self._op, self._plan = op, Plan(shape, strides, axis, keepdim)
        self._start: Any = None
        if not self._plan.empty:
            self._start = AlongReduction(_reducer(device.index), op, of, self._plan.arranged)

    def __call__(self, x: Any, out: Any, ddof: int) -> Any:
        """The values of a tensor of that shape, dtype and device."""
        if self._device() != self._index:
            with torch.cuda.device(self._index):
                return self(x, out, ddof)
        plan = self._plan
        if ddof:
            check_ddof(ddof)
        if out is not None:
            _checked(out, plan.shape, x)
        if plan.empty:
            values = x.new_full(plan.shape, 0.0 if self._op in ZERO_OF_NONE else float("nan"))
            return values if out is None else out.copy_(values)
        if x.is_neg():
            x = x.resolve_neg()
        if plan.copied is not None:
            x = x.permute(plan.copied).contiguous()
        direct = out is not None and plan.in_order and out.is_contiguous()
        values = out if direct else x.new_empty(plan.lengths)
        stream = self._stream_of(self._index)
        if self._is_capturing():
            with _memory_of_graph():
                self._start(x.data_ptr(), values.data_ptr(), stream, ddof, True)
        else:
            self._start(x.data_ptr(), values.data_ptr(), stream, ddof)
        if not plan.in_order:
            values = values.permute(plan.order).reshape(plan.shape)
        return values if out is None or direct else out.copy_(values)


class _Dot(_Prepared):
    """The dot product of tensors of a dtype."""

    __slots__ = ("_start",)

    def __init__(self, dtype: Any, device: Any) -> None:
        of = float_dtype(_name(dtype, device))
        super().__init__(device)
        self._start = _reducer(device.index).dot(of)

    def __call__(self, x: Any, y: Any, out: Any) -> Any:
        """The value of two tensors, the first of that dtype and device."""
        if y.dtype is not x.dtype or y.shape != x.shape:
            check_pair(tuple(x.shape), _name(x.dtype, x.device), tuple(y.shape), _name(y.dtype, y.device))
        if y.get_device() != self._index:
            raise ValueError(f"dot needs two tensors on one device, not on {x.device} and {y.device}")
        if self._device() != self._index:
            with torch.cuda.device(self._index):
                return self(x, y, out)
        x, y = _in_order(x), _in_order(y)
        left, right = x.data_ptr(), y.data_ptr()
        if (left - right) % 16:
            x, y = x.clone(), y.clone()
            left, right = x.data_ptr(), y.data_ptr()
        values = x.new_empty(()) if out is None else _checked(out, (), x)
        stream = self._stream_of(self._index)
        if self._is_capturing():
            with _memory_of_graph():
                self._start(left, right, x.numel(), values.data_ptr(), stream, True)
        else:
            self._start(left, right, x.numel(), values.data_ptr(), stream)
        return values


_whole = cache(_Whole)
_dot = cache(_Dot)
_along = lru_cache(maxsize=256)(_Along)


@cache
def _reducer(device: int) -> ResidentReducer:
    from warpfold.engines.cupy import reducer

    return reducer(device)


def _name(dtype: Any, device: Any) -> str:
    """The name of a dtype of tensors on a GPU."""
    if device.type != "cuda":
        raise TypeError(f"tensors are on a GPU; this one is on {device}")
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
