"""Exact reductions of JAX arrays, within `jax.jit`, `jax.vmap` and `jax.grad` as well.

Within a transformation JAX calls back into this process (`jax.pure_callback`), and a CPU adds up: the bits are the same
as outside, but an array on a GPU goes through the memory of the host. Outside of transformations an array on a GPU is
reduced where it lies, as `warpfold.gpu` does. Derivatives, forward and reverse, are JAX's own arithmetic with the
formulas of calculus.

`x` is of float16, bfloat16, float32 or float64. `axis` is an axis or several, None for all. Raises TypeError for other
dtypes, and ValueError naming the argument that is wrong.
"""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from warpfold.engines.axes import Axes, check_ddof, check_pair, float_dtype, normal_axes, result_shape
from warpfold.kernels.cpu.backend import CpuBackend
from warpfold.kernels.ops import op_named
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.source import ArraySource


def sum(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Σ x along `axis`, correctly rounded."""
    return reduce("sum", x, axis, keepdims)


def mean(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Σ x / n, rounded once; NaN of no elements."""
    return reduce("mean", x, axis, keepdims)


def var(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; NaN where n ≤ ddof."""
    return reduce("var", x, axis, keepdims, ddof=ddof)


def std(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """The root of `var`, rounded once."""
    return reduce("std", x, axis, keepdims, ddof=ddof)


def sum_squares(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Σ x², correctly rounded."""
    return reduce("sum_squares", x, axis, keepdims)


def norm1(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Σ |x|, correctly rounded."""
    return reduce("norm1", x, axis, keepdims)


def norm2(x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """√ Σ x², rounded once."""
    return reduce("norm2", x, axis, keepdims)


def dot(x: Any, y: Any, *, out: Any = None) -> Any:
    """Σ x y of two arrays of one shape and dtype, over all elements, correctly rounded. `out` must be None."""
    _check_out(out)
    x, y = jnp.asarray(x), jnp.asarray(y)
    float_dtype(x.dtype.name)
    check_pair(x.shape, x.dtype.name, y.shape, y.dtype.name)
    if _lies_on_gpu(x) and _lies_on_gpu(y):
        return _arrays().dot(x, y)
    return _dot(x, y)


def reduce(op: str, x: Any, axis: Axes, keepdims: bool, out: Any = None, ddof: int = 0) -> Any:  # noqa: PLR0917
    """The values of the op of that name. `out` must be None."""
    _check_out(out)
    x = jnp.asarray(x)
    float_dtype(x.dtype.name)
    check_ddof(ddof)
    axes = normal_axes(axis, x.ndim)
    if _lies_on_gpu(x):
        return _arrays().reduce(op, x, tuple(axes), keepdims, ddof)
    return _reduce(op, tuple(sorted(axes)), bool(keepdims), int(ddof), x)


def _check_out(out: Any) -> None:
    if out is not None:
        raise ValueError("leave `out` out: it cannot be given, because arrays of JAX do not change")


def _lies_on_gpu(x: Any) -> bool:
    """Whether CuPy can read the array where it lies."""
    if isinstance(x, jax.core.Tracer) or x.dtype.name == "bfloat16" or len(x.devices()) > 1:
        return False
    return all(device.platform in ("gpu", "cuda") for device in x.devices())


@cache
def _arrays() -> Any:
    from warpfold.engines.cupy import JaxArrays

    return JaxArrays()


def _called_back(op: str, axes: tuple[int, ...], keepdims: bool, ddof: int, x: Any) -> Any:
    shape = result_shape(x.shape, frozenset(axes), keepdims=keepdims)
    of_host = partial(_on_host, op, tuple(axis - x.ndim for axis in axes), keepdims, ddof)
    # Arrays of a batch come with its axes in front, which the axes counted from the end leave out.
    return jax.pure_callback(of_host, jax.ShapeDtypeStruct(shape, x.dtype), x, vmap_method="broadcast_all")


_reduce: Any = jax.custom_jvp(_called_back, nondiff_argnums=(0, 1, 2, 3))


def _reduce_derivative(  # noqa: PLR0917
    op: str, axes: tuple[int, ...], keepdims: bool, ddof: int, primals: Any, tangents: Any
) -> Any:
    """The value and its derivative along a tangent, by the formula of each op."""
    (x,), (tangent,) = primals, tangents
    value = _reduce(op, axes, keepdims, ddof, x)
    kept = jnp.expand_dims(value, axes) if not keepdims else value
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    match op:
        case "sum":
            slope: Any = jnp.ones_like(x)
        case "mean":
            slope = jnp.full_like(x, 1 / max(1, count))
        case "sum_squares":
            slope = 2 * x
        case "norm1":
            slope = jnp.sign(x)
        case "norm2":
            slope = jnp.where(kept == 0, 0, x / jnp.where(kept == 0, 1, kept))
        case _:
            slope = (x - _reduce("mean", axes, True, 0, x)) * (2 / (count - ddof) if count > ddof else np.nan)
            if op == "std":
                slope = jnp.where(kept == 0, 0, slope / jnp.where(kept == 0, 1, 2 * kept))
    return value, jnp.sum(slope * tangent, axis=axes, keepdims=keepdims).astype(value.dtype)


_reduce.defjvp(_reduce_derivative)


def _dot_called_back(x: Any, y: Any) -> Any:
    of_host = partial(_dot_on_host, x.ndim)
    return jax.pure_callback(of_host, jax.ShapeDtypeStruct((), x.dtype), x, y, vmap_method="broadcast_all")


_dot: Any = jax.custom_jvp(_dot_called_back)


def _dot_derivative(primals: Any, tangents: Any) -> Any:
    (x, y), (of_x, of_y) = primals, tangents
    return _dot(x, y), jnp.sum(of_x * y + x * of_y).astype(x.dtype)


_dot.defjvp(_dot_derivative)


@cache
def _backend() -> CpuBackend:
    return CpuBackend()


def _on_host(op: str, axes: tuple[int, ...], keepdims: bool, ddof: int, x: Any) -> Any:
    """The values along axes, which are counted from the end, as a NumPy array."""
    elements = np.asarray(x)
    reduced = frozenset(elements.ndim + axis for axis in axes)
    shape = result_shape(elements.shape, reduced, keepdims=keepdims)
    return _values(op, sorted(reduced), ddof, elements).reshape(shape)


def _dot_on_host(rank: int, x: Any, y: Any) -> Any:
    left, right = np.asarray(x), np.asarray(y)
    shape = left.shape[: left.ndim - rank]
    return _values("dot", list(range(len(shape), left.ndim)), 0, left, right).reshape(shape)


def _values(op: str, axes: list[int], ddof: int, *arrays: Any) -> Any:
    """The values in C order of the axes that are kept."""
    first = arrays[0]
    dtype, count = first.dtype, int(np.prod([first.shape[axis] for axis in axes], dtype=np.int64))
    if not first.size or ((op in ("var", "std")) and count <= ddof):
        kept = result_shape(first.shape, frozenset(axes), keepdims=False)
        return np.full(kept, op_named(op).empty_or_nan, dtype)
    if not axes:  # each element is a value of its own
        arrays, axes = tuple(array[..., None] for array in arrays), [first.ndim]
    source, *others = (ArraySource(np.ascontiguousarray(array).reshape(-1)) for array in arrays)
    made = _backend().reduce_groups(
        source, arrays[0].shape, AlongAxes(tuple(axes)), op, ddof=ddof, other=others[0] if others else None
    )
    values = [np.nan if value is None else value for value in made.listed()]
    return (made.values if isinstance(made.values, np.ndarray) else np.array(values)).astype(dtype)
