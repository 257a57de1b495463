"""Chunks of Dask arrays that are CuPy arrays: each is added up on the GPU that it lies on.

Exact sums stay on the GPU, where they are merged with others and rounded; no task waits for those of a chunk. Many sums
that no window holds, and those of squares, come to the host, where they are trimmed to a few digits each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.engines.dask_cupy_levels import ChunkLevels, levels_of, merged_levels, rounded_levels
from warpfold.kernels.cpu.grouped.digits import Digits
from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cuda.exact import SumKind
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.exact.shapes import SHAPES
from warpfold.kernels.cuda.exact.total import MOST_ADDED, MOST_GPUS, limbs_of
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, RowsLayout
from warpfold.kernels.cuda.grouped.totals import GroupedTotals
from warpfold.kernels.cuda.resident import Arrangement, ResidentTotals
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.ops import Terms, op_named

_NANS, _FLAGS, _DIGITS = 1, 2, 6
"""Where the limbs of a total are (`kernels.cuda.exact.total`)."""

_SHARED_STREAMS = (0, 1)
"""The handles of the stream that all threads share (cudaStreamLegacy)."""


@dataclass(frozen=True, slots=True)
class ChunkTotal:
    """The exact sum of all `count` elements of a chunk, or of several chunks: `limbs` are a CuPy array, which the GPU
    may still be adding to, and to each of which `added` numbers below 2**32 are added at most. `dtype` is that of the
    elements, and `shape` that of the value."""

    op: str
    dtype: DType
    shape: tuple[int, ...]
    count: int
    added: int
    limbs: Any

    @property
    def device(self) -> Any:
        """The GPU that has the sum, as CuPy's `Device`."""
        return self.limbs.device

    def brought(self) -> PartialResults:
        """The same sum on the host; waits for the GPU."""
        with self.limbs.device:
            limbs = self.limbs.get()
        return partial_of_totals(self.op, self.dtype, self.shape, self.count, limbs.reshape(1, -1))


Part = ChunkTotal | ChunkLevels | PartialResults


def on_gpu(values: NDArray[Any]) -> Any:
    """The values as a CuPy array."""
    import cupy

    # CuPy fills an array of no dimensions, and clears it where its value equals 0: −0 would become 0.
    return cupy.asarray(values.reshape(-1)).reshape(values.shape)


def whole_values(
    chunk: Any, *, axes: tuple[int, ...], op: str, ddof: int, result: "np.dtype[Any]", keepdims: bool
) -> Any:
    """The values along `axes` of a chunk that has all of their elements, as a CuPy array of dtype `result`. Those of
    integers are reduced on the host."""
    import cupy

    if chunk.dtype.name in SHAPES:
        made = _arrays().reduce(op, chunk, axes, keepdims, None, ddof)
        with chunk.device:
            _let_others_read(cupy.cuda.get_current_stream())
        return made
    values = PartialResults.of(cupy.asnumpy(chunk), axes, op).values(result, ddof)
    return on_gpu(values if keepdims else values.squeeze(axes))


def partial_of(chunk: Any, weights: Any, axes: tuple[int, ...], op: str) -> Part:
    """The exact sums of a chunk along `axes`, which stay with length 1. Those of integers, and dot products along some
    of the axes, are added up on the host."""
    import cupy

    from warpfold.engines.cupy import levels, totals

    dtype, whole = dtype_of(chunk.dtype), len(axes) == chunk.ndim
    mixed = weights is not None and (not isinstance(weights, cupy.ndarray) or weights.dtype != chunk.dtype or not whole)
    if dtype.name not in SHAPES or mixed or not chunk.size:
        return PartialResults.of(
            cupy.asnumpy(chunk), axes, op, other=None if weights is None else cupy.asnumpy(weights)
        )
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(chunk.shape))
    with chunk.device:
        if prod(shape) == 1:
            return _whole(totals(chunk.device.id), chunk, weights, op, shape)
        stream = cupy.cuda.get_current_stream()
        sums = levels_of(levels(chunk.device.id), chunk, axes, op, shape, stream)
        _let_others_read(stream)
        return _many(totals(chunk.device.id).gpu, chunk, axes, op, shape) if sums is None else sums


def _whole(resident: ResidentTotals, chunk: Any, weights: Any, op: str, shape: tuple[int, ...]) -> ChunkTotal:
    """The exact sum of a whole chunk, on CuPy's current stream."""
    import cupy

    dtype, kind, stream = dtype_of(chunk.dtype), FINISHED_OPS[op].kind, cupy.cuda.get_current_stream()
    arrays = [chunk if chunk.flags.forc else cupy.ascontiguousarray(chunk)]  # the order of elements does not matter
    if weights is not None:
        arrays = [cupy.ascontiguousarray(array) for array in (chunk, weights)]
        if (arrays[0].data.ptr - arrays[1].data.ptr) % VECTOR_BYTES:
            arrays = [array.copy() for array in arrays]
    limbs = cupy.zeros(limbs_of(kind), np.int64)
    added = resident.add(kind, dtype, tuple(array.data.ptr for array in arrays), chunk.size, limbs, stream)
    _let_others_read(stream)
    return ChunkTotal(op, dtype, shape, chunk.size, added, limbs)


def merged(parts: Sequence[Part]) -> Part:
    """The merged parts of one reduction: on their GPU where all are there, or else on the host."""
    on_host = [part for part in parts if isinstance(part, PartialResults)]
    sums: list[ChunkTotal | ChunkLevels] = [_sum(some) for some in _alike(parts)]
    for some in _many_alike(parts):
        for part in _merged_levels(some):
            if isinstance(part, PartialResults):
                on_host.append(part)
            else:
                sums.append(part)
    if len(sums) == 1 and not on_host:
        return sums[0]
    return PartialResults.merge([*on_host, *(part.brought() for part in sums)])


def rounded(parts: Sequence[Part], result: "np.dtype[Any]", ddof: int) -> Any:
    """The values of a reduction, as a CuPy array in the shape of the parts."""
    import cupy

    from warpfold.engines.cupy import levels, totals

    part = merged(parts)
    if isinstance(part, PartialResults):
        return on_gpu(part.values(result, ddof))
    row = FINISHED_OPS[part.op]
    if isinstance(part, ChunkTotal) and not ResidentTotals.rounds(row):
        return on_gpu(part.brought().values(result, ddof))
    with part.device as device:
        stream = cupy.cuda.get_current_stream()
        if isinstance(part, ChunkLevels):
            values = rounded_levels(levels(device.id), part, stream)
        else:
            values = cupy.empty(part.shape, part.dtype.numpy)
            totals(device.id).round(row, part.dtype, part.limbs, part.count, values.data.ptr, stream, ddof)
        _let_others_read(stream)
    return values


def _let_others_read(stream: Any) -> None:
    """Wait where another thread, which will read what was made, may have another stream."""
    if stream.ptr not in _SHARED_STREAMS:
        stream.synchronize()


def _merged_levels(parts: Sequence[ChunkLevels]) -> list[ChunkLevels | PartialResults]:
    """The parts of one GPU in one where a window is known to hold them, and else in as few as may be. What the likely
    window of a chunk does not hold is added up again."""
    together = _in_one_window(parts)
    if together is not None:
        return [together]
    known = [checked(part) for part in parts]
    sums = [part for part in known if isinstance(part, ChunkLevels)]
    together = _in_one_window(sums) if sums else None
    return [part for part in known if isinstance(part, PartialResults)] + (sums if together is None else [together])


def _in_one_window(parts: Sequence[ChunkLevels]) -> ChunkLevels | None:
    import cupy

    from warpfold.engines.cupy import levels

    with parts[0].device as device:
        stream = cupy.cuda.get_current_stream()
        made = merged_levels(levels(device.id), parts, stream)
        _let_others_read(stream)
    return made


def checked(part: ChunkLevels) -> ChunkLevels | PartialResults:
    """The same sums in a window that is known to hold them, or on the host."""
    import cupy

    from warpfold.engines.cupy import levels, totals

    if part.chunk is None:
        return part
    with part.device as device:
        resident, stream = levels(device.id), cupy.cuda.get_current_stream()
        if resident.holds(part.sums):
            return replace(part, chunk=None)
        made = levels_of(resident, part.chunk, part.axes, part.op, part.shape, stream, waits=True)
        if made is None:
            return _many(totals(device.id).gpu, part.chunk, part.axes, part.op, part.shape)
    return made


def _sum(totals: Sequence[ChunkTotal]) -> ChunkTotal:
    """Totals of one GPU in one, added up there."""
    import cupy

    first = totals[0]
    if len(totals) == 1:
        return first
    with first.device:
        limbs = cupy.concatenate([total.limbs for total in totals]).reshape(len(totals), -1).sum(axis=0)
        _let_others_read(cupy.cuda.get_current_stream())
    return replace(
        first, count=sum(total.count for total in totals), added=sum(total.added for total in totals), limbs=limbs
    )


def _alike(parts: Sequence[Part]) -> Iterator[list[ChunkTotal]]:
    """The totals of each GPU among the parts of one reduction, of which no more may be added up."""
    by_gpu: dict[int, list[ChunkTotal]] = {}
    for part in parts:
        if isinstance(part, ChunkTotal):
            by_gpu.setdefault(part.device.id, []).append(part)
    for alike in by_gpu.values():
        some: list[ChunkTotal] = []
        for total in alike:
            if some and sum(part.added for part in some) + total.added > MOST_ADDED * MOST_GPUS:
                yield some
                some = []
            some.append(total)
        yield some


def _many_alike(parts: Sequence[Part]) -> Iterator[list[ChunkLevels]]:
    """The sums in levels of each GPU among the parts of one reduction."""
    by_gpu: dict[int, list[ChunkLevels]] = {}
    for part in parts:
        if isinstance(part, ChunkLevels):
            by_gpu.setdefault(part.device.id, []).append(part)
    yield from by_gpu.values()


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
    return partial_of_totals(op, dtype, shape, arranged.count, limbs.reshape(prod(shape), -1))


def partial_of_totals(
    op: str, dtype: DType, shape: Sequence[int], count: int, limbs: NDArray[np.int64]
) -> PartialResults:
    """The partial results that `limbs`, shape (values, limbs), are for an op of elements of a float `dtype`. `shape` is
    that of the values, and `count` says how many elements entered each: the limbs need not."""
    row, kind = op_named(op), FINISHED_OPS[op].kind
    flags = _flags(kind, count, limbs)
    if kind is not SumKind.MOMENTS:
        sums: tuple[Digits, ...] = (_digits(kind.terms, limbs, flags),)
    else:
        values = limbs_of(SumKind.VALUES)
        sums = (
            _digits(Terms.VALUES, limbs[:, :values], flags),
            _digits(Terms.PRODUCTS, limbs[:, values:], _of_squares(flags, count)),
        )
    return PartialResults(op, row.result_dtype(dtype), tuple(shape), count, sums)


def _flags(kind: SumKind, count: int, limbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The flags of the first sum of each total."""
    flags = np.where(limbs[:, _NANS] != 0, int(Flags.NAN), 0)
    for place in range(4):
        flags |= np.where(limbs[:, _FLAGS + place] != 0, 1 << place, 0)
    # A sum with any other flag is not −0, nor is one of terms that are not.
    signed = kind.signed & (flags == 0)
    return np.where(signed | (count == 0), flags, flags | int(Flags.NOT_NEGATIVE_ZERO))


def _of_squares(flags: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The flags of the squares of values with these flags: the square of −∞ is +∞, and none is −0."""
    turned = flags & ~int(Flags.NEG_INF) | int(Flags.POS_INF)
    turned = np.where(flags & int(Flags.NEG_INF), turned, flags)
    return np.where(count > 0, turned | int(Flags.NOT_NEGATIVE_ZERO), turned)


def _digits(terms: Terms, limbs: NDArray[np.int64], flags: NDArray[np.int64]) -> Digits:
    digits = np.ascontiguousarray(limbs[:, _DIGITS:].T)
    return Digits.of_limbs(terms, ORIGIN[terms], digits.copy(), flags)
