"""Exact reductions of Dask arrays: any chunks, any scheduler and any order of merging give the same bits.

Each chunk is added up exactly on its Dask worker, partial results are merged in a tree, and each value is rounded once.
A partial result takes some tens of bytes a value.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.operands import check, result_dtype
from warpfold.kernels.ops import INTEGER, op_named

Axes = int | Sequence[int] | None


def sum(x: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ x along `axis` (all axes by default), correctly rounded to the dtype of `x`. The sums of integers and truth
    values are int64 or uint64; one that does not fit raises InvalidInput when it is computed.

    `split_every` is how many partial results are merged at a time.
    """
    return _reduced(x, "sum", axis, keepdims, split_every)


def mean(x: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ x / n, rounded once; NaN of no elements. Of integers it is a float64."""
    return _reduced(x, "mean", axis, keepdims, split_every)


def var(
    x: da.Array, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; NaN where n ≤ ddof."""
    return _reduced(x, "var", axis, keepdims, split_every, ddof=ddof)


def std(
    x: da.Array, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """The root of `var`, rounded once."""
    return _reduced(x, "std", axis, keepdims, split_every, ddof=ddof)


def sum_squares(x: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ x², correctly rounded."""
    return _reduced(x, "sum_squares", axis, keepdims, split_every)


def norm1(x: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ |x|, correctly rounded."""
    return _reduced(x, "norm1", axis, keepdims, split_every)


def norm2(x: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """√ Σ x², rounded once."""
    return _reduced(x, "norm2", axis, keepdims, split_every)


def dot(
    x: da.Array, y: da.Array, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """Σ x y of two arrays of one shape along `axis`, correctly rounded. Raises ValueError for two shapes."""
    if x.shape != y.shape:
        raise ValueError(f"dot needs two arrays of one shape, not {x.shape} and {y.shape}")
    return _reduced(x, "dot", axis, keepdims, split_every, other=y)


def _reduced(
    x: da.Array,
    op: str,
    axis: Axes,
    keepdims: bool,
    split_every: int | None,
    *,
    ddof: int = 0,
    other: da.Array | None = None,
) -> da.Array:
    row, first = op_named(op), dtype_of(x.dtype)
    second = None if other is None else dtype_of(other.dtype)
    check(row, first, second, ddof)
    name = result_dtype(row, first, second)
    if name != INTEGER:
        dtype = DTYPES[name].numpy
    else:
        dtype = np.dtype(np.uint64 if x.dtype.kind == "u" and (other is None or other.dtype.kind == "u") else np.int64)
    reduced: da.Array = da.reduction(
        x,
        partial(_of_chunk, op=op),
        partial(_rounded, result=dtype, ddof=ddof),
        axis=axis,
        keepdims=keepdims,
        dtype=dtype,
        split_every=split_every,
        combine=_merged,
        concatenate=False,
        meta=np.empty((0,) * x.ndim, dtype),
        weights=other,
    )
    return reduced


def _of_chunk(
    chunk: NDArray[Any],
    weights: NDArray[Any] | None = None,
    *,
    axis: tuple[int, ...],
    keepdims: bool,
    op: str,
    computing_meta: bool = False,
) -> PartialResults | NDArray[Any]:
    if computing_meta:  # Dask asks for an array that is like the results of chunks, which are no arrays
        return chunk
    for array in (chunk, weights):
        if array is not None and type(array) is not np.ndarray:
            raise TypeError(f"chunks are NumPy arrays, not {type(array).__module__}.{type(array).__name__}")
    return PartialResults.of(chunk, axis, op, other=weights)


def _merged(parts: Any, *, axis: tuple[int, ...], keepdims: bool) -> PartialResults:
    return PartialResults.merge(list(_flat(parts)))


def _rounded(parts: Any, *, axis: tuple[int, ...], keepdims: bool, result: "np.dtype[Any]", ddof: int) -> Any:
    values = PartialResults.merge(list(_flat(parts))).values(result, ddof)
    return values if keepdims else values.squeeze(axis)


def _flat(parts: Any) -> Iterator[PartialResults]:
    if isinstance(parts, PartialResults):
        yield parts
    else:
        for part in parts:
            yield from _flat(part)
