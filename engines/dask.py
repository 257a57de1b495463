"""Exact reductions of Dask arrays and of columns of Dask's data frames: any chunks, any scheduler and any order of
merging give the same bits.

Each chunk is added up exactly on its Dask worker, partial results are merged in a tree, and each value is rounded once.
A partial result takes some tens of bytes a value.
"""

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from math import isnan, prod
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import NDArray

from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.reducing import Grouped, reduce_groups
from warpfold.kernels.dtypes import DTYPES, dtype_of
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN, ExactState, value_of
from warpfold.kernels.machine.cores import cores_at_most
from warpfold.kernels.ops import INTEGER, NanPolicy, Op, op_named
from warpfold.kernels.ops.operands import check, operands, result_dtype
from warpfold.kernels.parts.grouping import AlongAxes
from warpfold.kernels.source import ArraySource

Axes = int | Sequence[int] | None
_NAME = 16
_TOGETHER, _FEWEST = 64, 4
"""So many partial results of few values are merged at a time: a task costs Dask more than the merging."""
_TOGETHER_BYTES, _TOGETHER_ON_GPU, _VALUE_BYTES = 1 << 26, 1 << 30, 16
"""Partial results that are merged at a time take about so many bytes together, on a GPU more, and each value takes so
many."""
Collection = Any
"""A `dask.array.Array`, or a column of a `dask.dataframe.DataFrame`."""


def sum(x: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ x along `axis` (all axes by default), correctly rounded to the dtype of `x`. The sums of integers and truth
    values are int64 or uint64; one that does not fit raises InvalidInput when it is computed.

    `split_every` is how many partial results are merged at a time: by default 64 where they have few values, and else
    as many as Dask's configuration says.
    """
    return _reduced(x, "sum", axis, keepdims, split_every)


def mean(x: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ x / n, rounded once; NaN of no elements. Of integers it is a float64."""
    return _reduced(x, "mean", axis, keepdims, split_every)


def var(
    x: Collection, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """Σ (x − mean)² / (n − ddof) of the exact mean, rounded once; NaN where n ≤ ddof."""
    return _reduced(x, "var", axis, keepdims, split_every, ddof=ddof)


def std(
    x: Collection, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """The root of `var`, rounded once."""
    return _reduced(x, "std", axis, keepdims, split_every, ddof=ddof)


def sum_squares(
    x: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """Σ x², correctly rounded."""
    return _reduced(x, "sum_squares", axis, keepdims, split_every)


def norm1(x: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Σ |x|, correctly rounded."""
    return _reduced(x, "norm1", axis, keepdims, split_every)


def norm2(x: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """√ Σ x², rounded once."""
    return _reduced(x, "norm2", axis, keepdims, split_every)


def dot(
    x: Collection, y: Collection, axis: Axes = None, *, keepdims: bool = False, split_every: int | None = None
) -> da.Array:
    """Σ x y of two arrays of one shape along `axis`, correctly rounded. Raises ValueError for two shapes."""
    x, y = _array(x), _array(y)
    if x.shape != y.shape:
        raise ValueError(f"dot needs two arrays of one shape, not {x.shape} and {y.shape}")
    return _reduced(x, "dot", axis, keepdims, split_every, other=y)


def _reduced(
    x: Collection,
    op: str,
    axis: Axes,
    keepdims: bool,
    split_every: int | None,
    *,
    ddof: int = 0,
    other: da.Array | None = None,
) -> da.Array:
    x = _array(x)
    row, first = op_named(op), dtype_of(x.dtype)
    second = None if other is None else dtype_of(other.dtype)
    check(row, first, second, ddof)
    name = result_dtype(row, first, second)
    if name != INTEGER:
        dtype = DTYPES[name].numpy
    else:
        dtype = np.dtype(np.uint64 if x.dtype.kind == "u" and (other is None or other.dtype.kind == "u") else np.int64)
    meta, on_gpu = np.empty((0,) * x.ndim, dtype), _takes_cupy(x)
    if on_gpu:
        meta = meta_from_array(x, x.ndim, dtype)
    if other is None and (whole := _whole_in_chunks(x, axis)):
        return _of_whole_values(x, op, whole, keepdims, ddof, meta, on_gpu=on_gpu)
    if split_every is None:
        split_every = _merged_together(x, axis, _TOGETHER_ON_GPU if on_gpu else _TOGETHER_BYTES)
    reduced: da.Array = da.reduction(
        x,
        partial(_of_chunk, op=op, on_gpu=on_gpu),
        partial(_rounded, result=dtype, ddof=ddof, on_gpu=on_gpu),
        axis=axis,
        keepdims=keepdims,
        dtype=dtype,
        split_every=split_every,
        combine=_merged,
        concatenate=False,
        meta=meta,
        weights=other,
    )
    return reduced


def _merged_together(x: da.Array, axis: Axes, most: int) -> int | None:
    """How many partial results are merged at a time: as many as take `most` bytes and at most _TOGETHER, or as few as
    Dask's configuration says."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    kept = set(range(x.ndim)) - {at % max(1, x.ndim) for at in axes}
    values = prod(max(x.chunks[at], default=0) for at in kept)
    if isnan(values):  # lengths may be unknown
        return None
    together = most // max(1, _VALUE_BYTES * values)
    return min(_TOGETHER, together) if together > _FEWEST else None


def _whole_in_chunks(x: da.Array, axis: Axes) -> tuple[int, ...]:
    """The axes that are reduced, where each value has all of its elements in one chunk; none otherwise."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if not all(-x.ndim <= at < x.ndim and x.numblocks[at] == 1 for at in axes):
        return ()
    return tuple(sorted({at % x.ndim for at in axes})) if len({at % x.ndim for at in axes}) == len(axes) else ()


def _of_whole_values(  # noqa: PLR0917
    x: da.Array, op: str, axes: tuple[int, ...], keepdims: bool, ddof: int, meta: NDArray[Any], *, on_gpu: bool
) -> da.Array:
    """The values of chunks that hold all elements of each value. They are rounded with their chunk, because there is
    nothing to merge."""
    dropped = () if keepdims else axes
    chunks = tuple((1,) if at in axes else sizes for at, sizes in enumerate(x.chunks) if at not in dropped)
    values_of = _of_whole_cupy_chunk if on_gpu else _of_whole_chunk
    rounded = partial(values_of, op=op, axes=axes, ddof=ddof, result=meta.dtype, keepdims=keepdims)
    meta = meta_from_array(meta, x.ndim - len(dropped), meta.dtype)
    values: da.Array = da.map_blocks(
        rounded, x, dtype=meta.dtype, chunks=chunks, meta=meta, drop_axis=list(dropped) or None
    )
    return values


def _of_whole_cupy_chunk(chunk: Any, **asked: Any) -> Any:
    from warpfold.engines import dask_cupy

    return dask_cupy.whole_values(chunk, **asked)


def _of_whole_chunk(chunk: Any, *, axes: tuple[int, ...], keepdims: bool, **asked: Any) -> Any:
    values = _whole_chunk_values(chunk, axes=axes, **asked)
    return values if keepdims else values.squeeze(axes)  # here, because a step of Dask's own takes a task a chunk


def _whole_chunk_values(chunk: Any, *, op: str, axes: tuple[int, ...], ddof: int, result: "np.dtype[Any]") -> Any:
    _check_numpy(chunk)
    if (sums := PartialResults.in_levels(chunk, axes, op)) is not None:
        return sums.values(result, ddof)
    in_rows = chunk.flags.c_contiguous and axes == tuple(range(chunk.ndim))[-len(axes) :]
    single_value = prod(chunk.shape[at] for at in axes) == chunk.size
    if not in_rows or single_value or chunk.dtype.kind != "f" or not chunk.size:
        return PartialResults.of(chunk, axes, op).values(result, ddof)
    row, source = op_named(op), ArraySource(chunk)
    asked = Grouped(operands(row, source, ddof=ddof), chunk.shape, AlongAxes(axes, keepdims=True))
    with cores_at_most(1):  # Dask has a thread for each core
        reduced = reduce_groups(asked, row, NanPolicy.PROPAGATE, None)
    values = reduced.values
    if not isinstance(values, np.ndarray):
        values = np.array([np.nan if value is None else value for value in values], np.float64)
    with np.errstate(invalid="ignore"):
        return values.astype(result).reshape(reduced.shape)


def _takes_cupy(x: da.Array) -> bool:
    """Whether the chunks are CuPy arrays, which are reduced on the GPU that they lie on."""
    return type(x._meta).__module__.partition(".")[0] == "cupy"


def _check_numpy(array: Any) -> None:
    if type(array) is not np.ndarray:
        raise TypeError(f"chunks are NumPy arrays, not {type(array).__module__}.{type(array).__name__}")


def _array(x: Collection) -> da.Array:
    return x if isinstance(x, da.Array) else x.to_dask_array()


def aggregation(op: str = "sum") -> Any:
    """An aggregation for `groupby(…).agg` of dask.dataframe: sum, mean, norm1, norm2 or sum_squares of the rows of each
    group, rounded once to the dtype of the column; of integers a mean or a root is a float64, and any other sum is an
    int64. A NaN is not left out: it makes its value NaN. Raises InvalidInput for another op.

    Partial results are the bytes of exact states (docs/exact-state.md), some microseconds each to make: the aggregation
    is for groups of many rows.
    """
    from dask import dataframe

    row = op_named(op)
    if row.terms not in ORIGIN or row.sources > 1:
        raise InvalidInput(
            f"{op} of groups has no single exact state; known: sum, mean, norm1, norm2, sum_squares", "op"
        )
    return dataframe.Aggregation(
        f"exact_{op}",
        lambda groups: groups.agg(partial(_state_of_rows, op=row)),
        lambda groups: groups.agg(_merged_states),
        partial(_finished, op=row),
    )


def _state_of_rows(column: Any, op: Op) -> bytes:
    """The dtype of a pandas column, in 16 letters, and the bytes of the state of its elements."""
    if not isinstance(column.dtype, np.dtype):
        raise TypeError(f"columns are of NumPy's dtypes, not {column.dtype}, whose nulls have no place in a sum")
    dtype = dtype_of(column.dtype)
    adding = accumulator([dtype], op.terms, magnitudes=op.magnitudes)
    adding.add(np.ascontiguousarray(column.to_numpy(), dtype=dtype.numpy))
    return dtype.name.encode().ljust(_NAME) + adding.state().to_bytes()


def _merged_states(states: Any) -> bytes:
    all_states = list(states)
    whole = reduce(ExactState.merge, (ExactState.from_bytes(state[_NAME:]) for state in all_states))
    return bytes(all_states[0][:_NAME]) + whole.to_bytes()


def _finished(states: Any, op: Op) -> Any:
    """A series of values in place of one of states."""

    def value(state: bytes) -> Any:
        elements = DTYPES[state[:_NAME].decode().strip()]
        name = op.result_dtype(elements)
        rounded = value_of(op, [ExactState.from_bytes(state[_NAME:])], name)
        return np.int64(rounded) if name == INTEGER else DTYPES[name].numpy.type(rounded)

    return type(states)([value(state) for state in states], index=states.index, name=states.name)


def _of_chunk(
    chunk: Any,
    weights: Any = None,
    *,
    axis: tuple[int, ...],
    keepdims: bool,
    op: str,
    on_gpu: bool,
    computing_meta: bool = False,
) -> Any:
    if computing_meta:  # Dask asks for an array like the results of the chunks, but these results are not arrays
        return chunk
    if on_gpu:
        from warpfold.engines import dask_cupy

        return dask_cupy.partial_of(chunk, weights, axis, op)
    for array in (chunk, weights):
        if array is not None:
            _check_numpy(array)
    return PartialResults.of(chunk, axis, op, other=weights)


def _merged(parts: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    flat = list(_flat(parts))
    if all(isinstance(part, PartialResults) for part in flat):
        return PartialResults.merge(flat)
    from warpfold.engines import dask_cupy

    return dask_cupy.merged(flat)


def _rounded(
    parts: Any, *, axis: tuple[int, ...], keepdims: bool, result: "np.dtype[Any]", ddof: int, on_gpu: bool
) -> Any:
    flat = list(_flat(parts))
    if on_gpu:
        from warpfold.engines import dask_cupy

        values = dask_cupy.rounded(flat, result, ddof)
    else:
        values = PartialResults.values_of(flat, result, ddof)
    return values if keepdims else values.squeeze(axis)


def _flat(parts: Any) -> Iterator[Any]:
    if isinstance(parts, (list, tuple)):
        for part in parts:
            yield from _flat(part)
    else:
        yield parts
