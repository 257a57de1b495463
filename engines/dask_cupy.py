"""Chunks of Dask arrays that are CuPy arrays: each is added up on the GPU that it lies on.

The exact sum of a whole chunk stays on the GPU until it is merged with others, and the task does not wait for it. Exact
sums of many values come to the host, where they are trimmed to a few digits each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.grouped.digits import Digits
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.exact.accumulator import ExactAccumulator, ExactDot, ExactMoments
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import SHAPES
from warpfold.kernels.cuda.exact.total import MOST_GPUS, limbs_of
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, RowsLayout
from warpfold.kernels.cuda.grouped.totals import GroupedTotals
from warpfold.kernels.cuda.resident import Arrangement
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.ops import Terms, op_named

_NANS, _FLAGS, _DIGITS = 1, 2, 6
"""Where the limbs of a total are (`kernels.cuda.exact.total`)."""


@dataclass(frozen=True, slots=True)
class ChunkTotal:
    """The exact sum of all `count` elements of a chunk: `limbs` are a CuPy array, which the GPU may still be adding to.
    `dtype` is that of the elements, and `shape` that of the value."""

    op: str
    dtype: DType
    shape: tuple[int, ...]
    count: int
    limbs: Any


Part = ChunkTotal | PartialResults


def on_gpu(values: NDArray[Any]) -> Any:
    """The values as a CuPy array."""
    import cupy

    # CuPy fills an array of no dimensions, and clears it where its value equals 0: −0 would become 0.
    return cupy.asarray(values.reshape(-1)).reshape(values.shape)


def whole_values(chunk: Any, axes: tuple[int, ...], op: str, ddof: int, result: "np.dtype[Any]") -> Any:
    """The values along `axes`, which stay with length 1, of a chunk that has all of their elements, as a CuPy array of
    dtype `result`. Those of integers are reduced on the host."""
    import cupy

    if chunk.dtype.name in SHAPES:
        return _arrays().reduce(op, chunk, axes, True, None, ddof)
    return on_gpu(PartialResults.of(cupy.asnumpy(chunk), axes, op).values(result, ddof))


def partial_of(chunk: Any, weights: Any, axes: tuple[int, ...], op: str) -> Part:
    """The exact sums of a chunk along `axes`, which stay with length 1. Those of integers, and dot products along some
    of the axes, are added up on the host."""
    import cupy

    from warpfold.engines.cupy import reducer

    dtype, whole = dtype_of(chunk.dtype), len(axes) == chunk.ndim
    mixed = weights is not None and (not isinstance(weights, cupy.ndarray) or weights.dtype != chunk.dtype or not whole)
    if dtype.name not in SHAPES or mixed or not chunk.size:
        return PartialResults.of(
            cupy.asnumpy(chunk), axes, op, other=None if weights is None else cupy.asnumpy(weights)
        )
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(chunk.shape))
    with chunk.device:
        gpu, kind = reducer(chunk.device.id).gpu, FINISHED_OPS[op].kind
        if prod(shape) > 1:
            return _many(gpu, chunk, axes, op, shape)
        adding: ExactAccumulator | ExactMoments | ExactDot
        if kind is SumKind.PRODUCTS:
            adding = ExactDot(gpu, dtype)
            adding.add(cupy.ascontiguousarray(chunk).reshape(-1), cupy.ascontiguousarray(weights).reshape(-1))
        else:
            # The order of the elements does not matter.
            flat = chunk.T.reshape(-1) if chunk.flags.f_contiguous else cupy.ascontiguousarray(chunk).reshape(-1)
            row = op_named(op)
            if kind is SumKind.MOMENTS:
                adding = ExactMoments(gpu, dtype)
            else:
                adding = ExactAccumulator(gpu, dtype, row.terms, magnitudes=row.magnitudes)
            adding.add(flat)
        return ChunkTotal(op, dtype, shape, chunk.size, adding.limbs)


def fetched(parts: Sequence[Part]) -> list[PartialResults]:
    """The same parts, with those of whole chunks brought to the host: all of a GPU at once, and added up."""
    import cupy

    made = [part for part in parts if isinstance(part, PartialResults)]
    totals = [part for part in parts if isinstance(part, ChunkTotal)]
    for some in _by_device(totals):
        first = some[0]
        with first.limbs.device:
            limbs = cupy.concatenate([part.limbs for part in some]).get().reshape(len(some), -1)
        counts = np.array([sum(part.count for part in some)])
        made.append(partial_of_totals(first.op, first.dtype, first.shape, counts, limbs.sum(axis=0, keepdims=True)))
    return made


def _by_device(totals: Sequence[ChunkTotal]) -> Iterator[list[ChunkTotal]]:
    """Totals of one op and one GPU each, of which no more than may be added up."""
    by_key: dict[tuple[Any, ...], list[ChunkTotal]] = {}
    for total in totals:
        by_key.setdefault((total.op, total.dtype, total.shape, total.limbs.device.id), []).append(total)
    for some in by_key.values():
        for start in range(0, len(some), MOST_GPUS):
            yield some[start : start + MOST_GPUS]


@cache
def _arrays() -> Any:
    from warpfold.engines.cupy import CupyArrays

    return CupyArrays()


def _many(gpu: Any, chunk: Any, axes: tuple[int, ...], op: str, shape: tuple[int, ...]) -> PartialResults:
    """The exact sums of many values, on the host."""
    import cupy

    dtype, kind, reduced = dtype_of(chunk.dtype), FINISHED_OPS[op].kind, frozenset(axes)
    arranged = Arrangement.of(chunk.shape, [stride // chunk.itemsize for stride in chunk.strides], reduced)
    if arranged is None:
        arranged = Arrangement.rows(chunk.shape, reduced)
        chunk = cupy.ascontiguousarray(chunk.transpose([*arranged.kept, *sorted(reduced)]))
    members = arranged.members()
    layout: Layout = ColumnsLayout(members.values, members.count)
    if members.stride == 1:
        layout = RowsLayout(members.values, members.count, chunk.size)
    # All elements from the first on, in the order in which they lie.
    flat = cupy.ndarray((chunk.size,), chunk.dtype, chunk.data)
    totals = GroupedTotals(gpu, flat, layout, dtype, kind)
    totals.start()
    limbs = totals.limbs()
    limbs = limbs.reshape(*arranged.lengths, -1).transpose(*arranged.order, len(arranged.order))
    counts = np.full(prod(shape), arranged.count)
    return partial_of_totals(op, dtype, shape, counts, limbs.reshape(counts.size, -1))


def partial_of_totals(
    op: str, dtype: DType, shape: Sequence[int], counts: NDArray[np.int64], limbs: NDArray[np.int64]
) -> PartialResults:
    """The partial results that `limbs`, shape (values, limbs), are for an op of elements of a float `dtype`. `shape` is
    that of the values, and `counts` says how many elements entered each: the limbs need not."""
    row, kind = op_named(op), FINISHED_OPS[op].kind
    flags = _flags(kind, counts, limbs)
    if kind is not SumKind.MOMENTS:
        sums: tuple[Digits, ...] = (_digits(kind.terms, limbs, flags),)
    else:
        values = limbs_of(SumKind.VALUES)
        sums = (
            _digits(Terms.VALUES, limbs[:, :values], flags),
            _digits(Terms.PRODUCTS, limbs[:, values:], _of_squares(flags, counts)),
        )
    return PartialResults(op, row.result_dtype(dtype), tuple(shape), counts, sums)


def _flags(kind: SumKind, counts: NDArray[np.int64], limbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The flags of the first sum of each total."""
    flags = np.where(limbs[:, _NANS] != 0, int(Flags.NAN), 0)
    for place in range(4):
        flags |= np.where(limbs[:, _FLAGS + place] != 0, 1 << place, 0)
    # A sum with any other flag is not −0, nor is one of terms that are not.
    signed = kind.signed & (flags == 0)
    return np.where(signed | (counts == 0), flags, flags | int(Flags.NOT_NEGATIVE_ZERO))


def _of_squares(flags: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The flags of the squares of values with these flags: the square of −∞ is +∞, and none is −0."""
    turned = flags & ~int(Flags.NEG_INF) | int(Flags.POS_INF)
    turned = np.where(flags & int(Flags.NEG_INF), turned, flags)
    return np.where(counts > 0, turned | int(Flags.NOT_NEGATIVE_ZERO), turned)


def _digits(terms: Terms, limbs: NDArray[np.int64], flags: NDArray[np.int64]) -> Digits:
    digits = np.ascontiguousarray(limbs[:, _DIGITS:].T)
    return Digits.of_limbs(terms, ORIGIN[terms], digits.copy(), flags)
