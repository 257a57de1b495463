"""Sums along axes of chunks that are CuPy arrays: their exact sums stay on the GPU, in two levels of one window, until
each value is rounded there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from warpfold.kernels.cpu.grouped.partial import PartialResults
from warpfold.kernels.cpu.grouped.runs import Arranged
from warpfold.kernels.cpu.grouped.two_levels import TwoLevels, window_for
from warpfold.kernels.cuda.resident.levels import STEP, TAKEN, ColumnLayout, LevelSums, ResidentLevels, RowLayout
from warpfold.kernels.dtypes import DType, dtype_of
from warpfold.kernels.ops import Terms, op_named

_KEPT = 256
"""A chunk of up to this part of the GPU's memory is kept until its sums are merged: of 64 chunks that are merged at a
time that is a quarter."""


@dataclass(frozen=True, slots=True)
class ChunkLevels:
    """The exact sums of a chunk, or of several, to the values of `shape`, each of `count` elements of `dtype`.

    Where `chunk` is not None, nobody has looked yet whether the window holds its elements: a wait for the GPU with
    each chunk would cost Python's threads more than the sums take. `checked` looks, and others call it first.
    """

    op: str
    dtype: DType
    shape: tuple[int, ...]
    count: int
    sums: LevelSums
    chunk: Any = None

    @property
    def device(self) -> Any:
        """The GPU that has the sums, as CuPy's `Device`."""
        return self.sums.words.device

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are reduced. An axis of one element may be among them: its sums are the same."""
        return tuple(axis for axis, length in enumerate(self.shape) if length == 1)

    def __reduce__(self) -> tuple[Any, ...]:
        """Chunks stay where they are: the sums that go to another process are known to be right."""
        from warpfold.engines import dask_cupy

        part = dask_cupy.checked(self)
        if isinstance(part, PartialResults):
            return replace, (part,)
        return ChunkLevels, (part.op, part.dtype, part.shape, part.count, part.sums)

    def brought(self) -> PartialResults:
        """The same sums on the host; waits for the GPU. The window must be known to hold them."""
        assert self.chunk is None, "the part is checked"
        values = self.sums.values
        with self.device:
            words = self.sums.words.get()
        upper, lower = words[:values], words[values : 2 * values]
        upper += lower >> STEP
        lower &= (1 << STEP) - 1
        most, negative = int(words[2 * values + 1]), words[2 * values + 2 :].view(np.uint8)[:values] == 0
        levels = TwoLevels(self.sums.unit, upper, lower, most, negative if negative.any() else None)
        return PartialResults(self.op, op_named(self.op).result_dtype(self.dtype), self.shape, self.count, (levels,))


def levels_of(  # noqa: PLR0917
    resident: ResidentLevels,
    chunk: Any,
    axes: tuple[int, ...],
    op: str,
    shape: tuple[int, ...],
    stream: Any,
    *,
    waits: bool = False,
) -> ChunkLevels | None:
    """The exact sums of a chunk along axes, on its GPU and CuPy's current stream; None where the op is none of sum,
    mean and norm1. With `waits`, and for a large chunk, the window is known to hold all elements, and it is None where
    there is no such window."""
    import cupy

    dtype, row = dtype_of(chunk.dtype), op_named(op)
    if dtype.name not in TAKEN or row.terms is not Terms.VALUES:
        return None
    lie, elements = _lie(chunk, axes), chunk
    if lie is None:
        kept = [axis for axis in range(chunk.ndim) if axis not in axes]
        chunk = cupy.ascontiguousarray(chunk.transpose([*kept, *axes]))
        lie = _lie(chunk, tuple(range(len(kept), chunk.ndim)))
    assert lie is not None, "rows without gaps"
    waits = waits or elements.nbytes > _most_kept(chunk.device.id)
    for unit in _units(chunk, dtype, chunk.size // lie.values):
        sums = resident.add(dtype, chunk.data.ptr, lie, unit, stream, magnitudes=row.magnitudes)
        made = ChunkLevels(op, dtype, shape, chunk.size // lie.values, sums, None if waits else elements)
        if not waits or resident.holds(sums):
            return made
    return None


@cache
def _most_kept(device: int) -> int:
    import cupy

    return int(cupy.cuda.Device(device).mem_info[1]) // _KEPT


def merged_levels(resident: ResidentLevels, parts: Sequence[ChunkLevels], stream: Any) -> ChunkLevels | None:
    """The parts of one reduction, of one GPU, in one whose window is known to hold all elements; None where they have
    to be merged otherwise."""
    sums = resident.merge([part.sums for part in parts], stream)
    seen = len(parts) == 1 and parts[0].chunk is None
    if sums is None or not (seen or resident.holds(sums)):
        return None
    return replace(parts[0], count=sum(part.count for part in parts), sums=sums, chunk=None)


def rounded_levels(resident: ResidentLevels, part: ChunkLevels, stream: Any) -> Any:
    """The values, as a CuPy array in the shape of the part."""
    import cupy

    values = cupy.empty(part.shape, part.dtype.numpy)
    resident.round(part.dtype, part.sums, part.count if part.op == "mean" else 1, values.data.ptr, stream)
    return values


def _lie(chunk: Any, axes: tuple[int, ...]) -> ColumnLayout | RowLayout | None:
    """Where the elements of each value lie; None where they are neither rows nor columns, and where the values do not
    lie in C order."""
    strides = [stride // chunk.itemsize for stride in chunk.strides]
    if any(stride < 1 for stride, length in zip(strides, chunk.shape, strict=True) if length > 1):
        return None
    arranged = Arranged.of(chunk.shape, strides, axes)
    runs = arranged.runs
    if runs[-1].stride != 1 or arranged.order != tuple(range(len(arranged.order))):
        return None
    match [(run.length, run.stride, run.output > 0) for run in runs]:
        case [(width, _, True)]:
            return ColumnLayout(1, 0, width)
        case [(rows, stride, False), (width, _, True)]:
            return ColumnLayout(rows, stride, width)
        case [(values, stride, True), (length, _, False)]:
            return RowLayout(values, stride, length)
    return None


def _units(chunk: Any, dtype: DType, count: int) -> Iterator[int]:
    """Units of windows that may hold all elements: the likely one, then those that the largest element needs."""
    import cupy

    likely = window_for(0, dtype, 1)
    if likely is not None:
        yield likely
    largest = float(cupy.abs(chunk).max())
    if not np.isfinite(largest):
        return
    top = int(np.frexp(largest)[1])
    for unit in dict.fromkeys((window_for(top, dtype, count), window_for(top, dtype, count, tight=True))):
        if unit is not None and unit != likely:
            yield unit
