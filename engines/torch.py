"""Exact reductions of PyTorch tensors on a GPU, on PyTorch's current stream, as `torch.sum` and the others are called.

They are differentiable, and the ops `torch.ops.warpfold.reduce` and `torch.ops.warpfold.dot` behind them go through
`torch.compile` and into CUDA graphs. The value of a row does not depend on the batch that it is in. `dim` is an axis or
several, None for all.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import torch

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
from warpfold.kernels.cuda.resident import Arrangement, ResidentReducer, reduce_along

_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64"}

torch.library.define("warpfold::reduce", "(Tensor x, str op, int[]? dim, bool keepdim, int ddof) -> Tensor")
torch.library.define("warpfold::dot", "(Tensor x, Tensor y) -> Tensor")


def sum(x: Any, dim: Axes = None, *, keepdim: bool = False, out: Any = None) -> Any:
    """Σ x along `dim`, correctly rounded."""
    return reduce("sum", x, dim, keepdim, out)


def mean(x: Any, dim: Axes = None, *, keepdim: bool = False, out: Any = None) -> Any:
    """Σ x / n, rounded once; NaN of no elements."""
    return reduce("mean", x, dim, keepdim, out)


def var(x: Any, dim: Axes = None, *, correction: int = 1, keepdim: bool = False, out: Any = None) -> Any:
    """Σ (x − mean)² / (n − correction) of the exact mean, rounded once; NaN where n ≤ correction."""
    return reduce("var", x, dim, keepdim, out, correction)


def std(x: Any, dim: Axes = None, *, correction: int = 1, keepdim: bool = False, out: Any = None) -> Any:
    """The root of `var`, rounded once."""
    return reduce("std", x, dim, keepdim, out, correction)


def sum_squares(x: Any, dim: Axes = None, *, keepdim: bool = False, out: Any = None) -> Any:
    """Σ x², correctly rounded."""
    return reduce("sum_squares", x, dim, keepdim, out)


def norm1(x: Any, dim: Axes = None, *, keepdim: bool = False, out: Any = None) -> Any:
    """Σ |x|, correctly rounded."""
    return reduce("norm1", x, dim, keepdim, out)


def norm2(x: Any, dim: Axes = None, *, keepdim: bool = False, out: Any = None) -> Any:
    """√ Σ x², rounded once."""
    return reduce("norm2", x, dim, keepdim, out)


def dot(x: Any, y: Any, *, out: Any = None) -> Any:
    """Σ x y of two tensors of one shape and dtype, over all elements, correctly rounded."""
    if out is None and (_recorded(x) or _recorded(y)):
        return torch.ops.warpfold.dot(x, y)
    return _dotted(x, y, out)


def reduce(op: str, x: Any, dim: Axes, keepdim: bool, out: Any, ddof: int = 0) -> Any:  # noqa: PLR0917
    """The values of the op of that name."""
    if dim is None and out is None and not keepdim and not _recorded(x):
        return _whole(op, x.dtype, x.device)(x, ddof)
    if out is None and _recorded(x):
        dims = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
        return torch.ops.warpfold.reduce(x, op, dims, keepdim, ddof)
    return _reduced(x, op, dim if dim is None or isinstance(dim, int) else tuple(dim), keepdim, ddof, out)


def _recorded(x: Any) -> bool:
    """Whether PyTorch has to see the op as one of its own."""
    return bool(x.requires_grad and torch.is_grad_enabled()) or bool(torch.compiler.is_compiling())


@cache
def _reducer(device: int) -> ResidentReducer:
    from warpfold.engines.cupy import reducer

    return reducer(device)


@cache
def _stream_at(pointer: int, device: int) -> Any:
    import cupy

    if not pointer:
        return cupy.cuda.Stream.null
    return cupy.cuda.Stream.from_external(torch.cuda.ExternalStream(pointer, device=device))


def _stream(device: int) -> Any:
    """PyTorch's current stream as a stream of CuPy. Making no object of PyTorch saves nine tenths of the time."""
    return _stream_at(torch._C._cuda_getCurrentRawStream(device), device)


def _name(x: Any) -> str:
    return _name_on(x.dtype, x.device)


def _name_on(dtype: Any, device: Any) -> str:
    if device.type != "cuda":
        raise TypeError(f"give a tensor on a GPU; this tensor is on {device}")
    return _NAMES.get(dtype) or str(dtype).removeprefix("torch.")


class _Whole:
    """An op of all elements of a tensor, prepared for a dtype and a device: a call costs Python a few microseconds."""

    def __init__(self, op: str, name: str, device: int) -> None:
        self._op, self._dtype, self._device = FINISHED_OPS[op], float_dtype(name), device
        self._reducer = _reducer(device)

    def __call__(self, x: Any, ddof: int) -> Any:
        device = self._device
        if device != torch.cuda.current_device():
            with torch.cuda.device(device):
                return self(x, ddof)
        if ddof:
            check_ddof(ddof)
        if not x.is_contiguous():
            x = _dense(x)
        values = x.new_empty(())
        captured = torch.cuda.is_current_stream_capturing()
        with _memory(captured):
            self._reducer.reduce(
                self._op, self._dtype, x.data_ptr(), x.numel(), values.data_ptr(), _stream(device), ddof, captured
            )
        return values


@cache
def _whole(op: str, dtype: Any, device: Any) -> _Whole:
    return _Whole(op, _name_on(dtype, device), device.index)


class _Plan:
    """The properties that follow from the shape of a tensor and from the axes that are reduced."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], axis: Axes, keepdim: bool) -> None:
        self.axes = normal_axes(axis, len(shape))
        self.shape = result_shape(shape, self.axes, keepdims=keepdim)
        arranged = Arrangement.of(shape, strides, self.axes)
        self.copied = None
        if arranged is None:
            arranged = Arrangement.rows(shape, self.axes)
            self.copied = [*arranged.kept, *sorted(self.axes)]
        self.arranged = arranged
        self.size = 1
        for length in self.shape:
            self.size *= length
        self.in_order = arranged.order == tuple(range(len(arranged.order)))


_plan = lru_cache(maxsize=1024)(_Plan)


def _reduced(x: Any, op: str, axis: Axes, keepdim: bool, ddof: int, out: Any = None) -> Any:  # noqa: PLR0917
    dtype = float_dtype(_name(x))
    check_ddof(ddof)
    plan = _plan(tuple(x.shape), x.stride(), axis, keepdim)
    if out is not None:
        check_out(plan.shape, dtype.name, tuple(out.shape), _name(out))
    device = x.device.index
    if device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return _reduced(x, op, axis, keepdim, ddof, out)
    if not x.numel():
        values = x.new_full(plan.shape, 0.0 if op in ZERO_OF_NONE else float("nan"))
        return values if out is None else out.copy_(values)
    stream, captured = _stream(device), torch.cuda.is_current_stream_capturing()
    if plan.copied is not None:
        x = x.permute(plan.copied).contiguous()
    arranged = plan.arranged
    direct = out is not None and out.is_contiguous() and plan.in_order
    values = out if direct else x.new_empty(plan.shape if plan.in_order else arranged.lengths)
    with stream, _memory(captured):
        reduce_along(_reducer(device), op, dtype, x.data_ptr(), arranged, values.data_ptr(), stream, ddof, captured)
    if not plan.in_order:
        values = values.permute(arranged.order).reshape(plan.shape)
    return values if out is None or direct else out.copy_(values)


def _dotted(x: Any, y: Any, out: Any = None) -> Any:
    dtype = float_dtype(_name(x))
    check_pair(tuple(x.shape), dtype.name, tuple(y.shape), _name(y))
    if out is not None:
        check_out((), dtype.name, tuple(out.shape), _name(out))
    device = x.device.index
    if y.device != x.device:
        raise ValueError(f"dot needs two tensors on one device, not on {x.device} and {y.device}")
    if device != torch.cuda.current_device():
        with torch.cuda.device(device):
            return _dotted(x, y, out)
    captured = torch.cuda.is_current_stream_capturing()
    x, y = x.contiguous(), y.contiguous()
    left, right = x.data_ptr(), y.data_ptr()
    if (left - right) % 16:
        x, y = x.clone(), y.clone()
        left, right = x.data_ptr(), y.data_ptr()
    values = x.new_empty(()) if out is None else out
    with _memory(captured):
        _reducer(device).dot(dtype, left, right, x.numel(), values.data_ptr(), _stream(device), captured)
    return values


def _dense(x: Any) -> Any:
    """A tensor with the same elements, in any order, and no gaps."""
    return x if Arrangement.of(x.shape, x.stride(), frozenset(range(x.dim()))) is not None else x.contiguous()


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_NOTHING = _Nothing()


def _memory(captured: bool) -> Any:
    """A context in which CuPy's memory is that of the graph that PyTorch captures, if it captures one."""
    if not captured:
        return _NOTHING
    import cupy

    return cupy.cuda.using_allocator(_of_torch)


def _of_torch(size: int) -> Any:
    import cupy

    room = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(room.data_ptr(), size, room), 0)


@torch.library.impl("warpfold::reduce", "cuda")
def _reduce_on_gpu(x: Any, op: str, dim: Sequence[int] | None, keepdim: bool, ddof: int) -> Any:
    return _reduced(x, op, None if dim is None else tuple(dim), keepdim, ddof)


@torch.library.impl("warpfold::dot", "cuda")
def _dot_on_gpu(x: Any, y: Any) -> Any:
    return _dotted(x, y)


@torch.library.register_fake("warpfold::reduce")
def _reduce_fake(x: Any, op: str, dim: Sequence[int] | None, keepdim: bool, ddof: int) -> Any:
    return x.new_empty(result_shape(x.shape, normal_axes(dim, x.dim()), keepdims=keepdim))


@torch.library.register_fake("warpfold::dot")
def _dot_fake(x: Any, y: Any) -> Any:
    return x.new_empty(())


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.op, ctx.dim, ctx.keepdim, ctx.ddof = inputs
    ctx.save_for_backward(x, output)


def _backward(ctx: Any, grad: Any) -> Any:
    """The gradient of each op by its formula."""
    x, values = ctx.saved_tensors
    axes = normal_axes(ctx.dim, x.dim())
    shape = result_shape(x.shape, axes, keepdims=True)
    grad, values = grad.reshape(shape), values.reshape(shape)
    count = x.numel() // max(1, values.numel())
    match ctx.op:
        case "sum":
            slope: Any = torch.ones_like(grad)
        case "mean":
            slope = torch.full_like(grad, 1.0 / max(1, count))
        case "sum_squares":
            slope = 2 * x
        case "norm1":
            slope = torch.sign(x)
        case "norm2":
            slope = torch.where(values == 0, torch.zeros_like(x), x / values)
        case _:
            away = x - torch.ops.warpfold.reduce(x, "mean", ctx.dim, True, 0).reshape(shape)
            slope = away * (2 / (count - ctx.ddof))
            if ctx.op == "std":
                slope = torch.where(values == 0, torch.zeros_like(x), slope / (2 * values))
    return (grad * slope).expand(x.shape), None, None, None, None


def _setup_dot(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward_dot(ctx: Any, grad: Any) -> Any:
    x, y = ctx.saved_tensors
    return grad * y, grad * x


torch.library.register_autograd("warpfold::reduce", _backward, setup_context=_setup)
torch.library.register_autograd("warpfold::dot", _backward_dot, setup_context=_setup_dot)
