"""Sums of sorted keys of many groups: the groups come out side by side (include/keyed_stream.cuh)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed.adding import KeyedAdder
from warpfold.kernels.cuda.keyed.sample import KeyedSample
from warpfold.kernels.cuda.keyed.shapes import MOST_READ_AGAIN, WORDS, SerialShape, stream_kernels, unit_of
from warpfold.kernels.dtypes import Kind

_UNSORTED, _LISTED, _UNFIT, _GROUPS, _NOTES = range(5)
"""The fields that kernels note, as `StreamNote` in include/keyed_stream.cuh has them."""

_TOGETHER = 32
"""Tiles of which one looks far back (include/keyed_progress.cuh)."""

_JOIN_THREADS, _END_THREADS, _AGAIN_THREADS = 256, 128, 128


@dataclass(frozen=True, slots=True)
class StreamedGroups:
    """CuPy arrays of the same length: the keys in their order, the values, and how many elements each group has
    (uint32)."""

    keys: Any
    values: Any
    counts: Any


@dataclass(frozen=True, slots=True)
class SortedStream:
    """How sorted rows are streamed: `planes` whole numbers an element, of which the last counts 2**unit."""

    gpu: Gpu
    rows: KeyedAdder
    planes: int
    unit: int

    @classmethod
    def of(cls, gpu: Gpu, rows: KeyedAdder, sample: KeyedSample) -> "SortedStream | None":
        """How to stream `rows`, of which a sample looked sorted; None for rows that other ways take: those of few
        groups, of integers, and elements of too many exponents."""
        few = rows.reach.range * rows.shapes.longest_streamed <= rows.count
        if few or not rows.reach.sorted or not rows.dtype.is_float:
            return None
        planes = sample.planes(rows.dtype, rows.count)
        stream = None if planes is None else cls(gpu, rows, *planes)
        return stream if stream is not None and stream._shared() <= gpu.shared_per_block else None

    def _shared(self, *, mean: bool = False) -> int:
        rows = self.rows
        shape = rows.shapes.stream_of(rows.key, self.planes, mean=mean)
        return shape.shared(rows.key.itemsize, self.planes)

    def _serial(self, *, mean: bool) -> SerialShape | None:
        """How threads add up row after row; None where they do not, or where a block finds no room."""
        rows, room = self.rows, self.gpu.shared_per_block
        shape = rows.shapes.serial_of(rows.key, rows.dtype, self.planes, mean=mean)
        if shape is None:
            return None
        return shape if shape.shared(rows.key.itemsize) <= room else None

    def groups(self, *, mean: bool) -> StreamedGroups | bool:
        """The sums or means of all groups. Otherwise whether the keys are sorted: False if they are not, and True if
        too many groups, or too long ones, have elements that the units do not hold."""
        import cupy

        rows = self.rows
        size, planes = rows.key.itemsize, self.planes
        serial = self._serial(mean=mean)
        shape = serial or rows.shapes.stream_of(rows.key, planes, mean=mean)
        shared = self._shared(mean=mean) if serial is None else serial.shared(size)
        tile = shape.tile
        tiles, most = -(-rows.count // tile), min(rows.count, rows.reach.range)
        known = tiles + -(-tiles // _TOGETHER)
        after = known + tiles * (2 * planes + 2)
        words = cupy.zeros(after + _NOTES // 2, dtype=np.uint64)  # cleared by one launch
        start = int(words.data.ptr)
        heads, dozens, joined, notes = (np.uint64(start + 8 * at) for at in (0, tiles, known, after))
        keys, values, counts = (
            cupy.empty(most + tile, kind) for kind in (rows.keys.dtype, rows.values.dtype, np.uint32)
        )
        parts = cupy.empty(tiles * (2 * planes + 3), np.uint64)
        listed = cupy.empty(3 * MOST_READ_AGAIN, np.uint64)
        out = (
            keys, values, counts, heads, dozens, parts, joined, listed, notes, np.uint32(MOST_READ_AGAIN),
            np.uint32(most),
        )  # fmt: skip
        chosen = rows.shapes if serial else replace(rows.shapes, serial=None, wide_serial=None)
        sums, joins, ends, again = stream_kernels(rows.key, rows.dtype, planes, chosen, mean=mean)
        turned = (np.uint64 if size == 8 else np.uint32)(1 << 8 * size - 1 if rows.key.kind is Kind.INT else 0)
        unit, count = np.int32(self.unit), np.uint64(rows.count)
        self.gpu.kernel(unit_of(sums), sums)(
            tiles, shape.threads, (rows.keys, rows.values, count, turned, unit, *out), shared
        )
        self._run(joins, -(-tiles // _JOIN_THREADS), _JOIN_THREADS, (parts, joined, notes, np.uint32(tiles)))
        sizes = (np.uint32(tiles), np.uint32(tile), count)
        self._run(ends, -(-tiles // _END_THREADS), _END_THREADS, (unit, *sizes, *out))
        totals = cupy.empty(MOST_READ_AGAIN * WORDS, np.uint64)
        self._run(
            again, self.gpu.multiprocessors, _AGAIN_THREADS, (rows.values, np.uint32(rows.omit_nan), totals, *out)
        )
        noted: NDArray[np.uint32] = words[after:].get().view(np.uint32)
        if noted[_UNSORTED]:
            return False
        if noted[_LISTED] > MOST_READ_AGAIN or noted[_UNFIT]:
            return True
        groups = int(noted[_GROUPS])
        return StreamedGroups(keys[:groups], values[:groups], counts[:groups])

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...]) -> None:
        self.gpu.kernel(unit_of(name), name)(grid, block, args)
