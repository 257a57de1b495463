"""Exact reductions of PyTorch tensors on a GPU, on PyTorch's current stream, as `torch.sum` and the others are called.

They are differentiable, and the ops `torch.ops.warpfold.reduce` and `torch.ops.warpfold.dot` behind them go through
`torch.compile` and into CUDA graphs. The value of a row does not depend on the batch that it is in. `dim` is an axis or
several, None for all.
"""

from collections.abc import Sequence
from typing import Any

import torch

from warpfold.engines.axes import Axes, normal_axes, result_shape
from warpfold.engines.tensors import dotted, reduced

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
    return dotted(x, y, out)


def reduce(op: str, x: Any, dim: Axes, keepdim: bool, out: Any, ddof: int = 0) -> Any:  # noqa: PLR0917
    """The values of the op of that name."""
    if out is None and _recorded(x):
        dims = [dim] if isinstance(dim, int) else None if dim is None else list(dim)
        return torch.ops.warpfold.reduce(x, op, dims, keepdim, ddof)
    return reduced(op, x, dim, keepdim, out, ddof)


def _recorded(x: Any) -> bool:
    """Whether PyTorch has to see the op as one of its own."""
    return bool((x.requires_grad and torch.is_grad_enabled()) or torch.compiler.is_compiling())


@torch.library.impl("warpfold::reduce", "cuda")
def _reduce_on_gpu(x: Any, op: str, dim: Sequence[int] | None, keepdim: bool, ddof: int) -> Any:
    return reduced(op, x, dim, keepdim, None, ddof)


@torch.library.impl("warpfold::dot", "cuda")
def _dot_on_gpu(x: Any, y: Any) -> Any:
    return dotted(x, y, None)


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
