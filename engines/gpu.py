"""Exact reductions of arrays that are on a GPU: of CuPy, of PyTorch, and of JAX.

An array is read where it lies, on the stream that its library uses at the time, and the value is an array of the same
library on the same GPU; the host waits for nothing. Each value is rounded once. So it depends neither on the batch, nor
on the order of the elements, nor on the GPU.

`x` is of float16, bfloat16, float32 or float64. `axis` is an axis or several, None for all. Arrays of JAX that are
within `jax.jit` or on a CPU are reduced as `warpfold.jax` says. Raises TypeError for an array of another library, dtype
or place, and ValueError naming the argument that is wrong.
"""

from functools import cache
from typing import Any, Protocol

from warpfold.engines.axes import Axes


class Library(Protocol):
    """What a library of arrays does for these reductions."""

    def reduce(self, op: str, x: Any, axis: Axes, keepdims: bool, out: Any, ddof: int = 0) -> Any:  # noqa: PLR0917
        """The values of the op of that name."""

    def dot(self, x: Any, y: Any, *, out: Any = None) -> Any:
        """Σ x y."""


def sum(x: Any, axis: Axes = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Σ x along `axis`, correctly rounded."""
    return _library(x).reduce("sum", x, axis, keepdims, out)


def mean(x: Any, axis: Axes = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Σ x / n, rounded once; NaN of no elements."""
    return _library(x).reduce("mean", x, axis, keepdims, out)


def var(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, out: Any = None) -> Any:
    """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; NaN where n ≤ ddof."""
    return _library(x).reduce("var", x, axis, keepdims, out, ddof)


def std(x: Any, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, out: Any = None) -> Any:
    """The root of `var`, rounded once."""
    return _library(x).reduce("std", x, axis, keepdims, out, ddof)


def sum_squares(x: Any, axis: Axes = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Σ x², correctly rounded."""
    return _library(x).reduce("sum_squares", x, axis, keepdims, out)


def norm1(x: Any, axis: Axes = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Σ |x|, correctly rounded."""
    return _library(x).reduce("norm1", x, axis, keepdims, out)


def norm2(x: Any, axis: Axes = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """√ Σ x², rounded once."""
    return _library(x).reduce("norm2", x, axis, keepdims, out)


def dot(x: Any, y: Any, *, out: Any = None) -> Any:
    """Σ x y of two arrays of one shape and dtype, over all elements, correctly rounded."""
    return _library(x).dot(x, y, out=out)


def _library(x: Any) -> Library:
    kind: Any = type(x)
    return _library_of(kind)


@cache
def _library_of(kind: Any) -> Library:
    """The library of arrays of this type: a module, or an object like it."""
    names = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if "torch" in names:
        from warpfold.engines import torch as of_torch

        return of_torch
    if "cupy" in names:
        from warpfold.engines.cupy import CupyArrays

        return CupyArrays()
    if "jaxlib" in names or "jax" in names:
        from warpfold.engines import jax as of_jax

        return of_jax
    raise TypeError(f"give an array of CuPy, PyTorch or JAX on a GPU, not a {kind.__module__}.{kind.__qualname__}")
