"""Exact reductions of many values on a GPU that add up elements, squares, both, or products of two arrays: of rows, of
columns and of segments.

The shape and the kind of sums choose the kernels of `../sources/grouped.cu` (`shapes.py`). Each value is rounded once
by what adds it up. The few whose rounding is not sure are marked, and added up as whole arrays are (`totals.py`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.cuda.grouped.layouts import ColumnsLaunch, ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import (
    FLOATS,
    KINDS,
    MOST_TRIED,
    SHAPES,
    SHORT_COLUMNS,
    GroupedShapes,
    close_kernel,
    columns_kernel,
    lanes_of,
    later_kernel,
    pairs_kernel,
    part_bytes,
    part_sums,
    parts_kernel,
    rows_kernel,
    short_columns_kernel,
    spans_kernel,
    stream_kernel,
    unit_of,
)
from warpfold.kernels.dtypes import DType

MARKS = {"float32": (np.uint32, 0x7FC66D6B), "float64": (np.uint64, 0x7FF86D61726B6564)}
"""The bits of a value that is not there yet (include/grouped_lanes.cuh)."""

SEGMENT_COSTS = 2
"""As many elements as a segment counts when a stream is cut into shares (include/grouped_stream.cuh)."""

LEFT_ROOM = 1 << 13
"""Entries of the list of segments that a stream leaves (include/grouped_left.cuh)."""

_LONGEST = (1 << 17) - 1
"""A longer span is marked."""

_SHORT = 1 << 12
"""Segments of so many elements are spans however few there are."""

_SUMS_IN_BLOCK = 8
"""Sums of two through which the parts of a thread go in its block."""

_TILES_OF_SUM = 8
"""Tiles after which windows of values or products of float64 are emptied (include/grouped_columns.cuh)."""

_PARTS_OF_THREAD, _BESIDE = 4, 4
"""Parts of a value that one thread puts together, and values that a block has at least, for it reads those of
neighbours at a time."""

_NOWHERE = np.uint64(0)


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a sum is finished: its end, with `ddof` degrees of freedom less, and whether NaN elements are left out."""

    finish: Finishing
    ddof: int = 0
    omit_nan: bool = False


def grouped_serves(gpu: Gpu, dtype: DType, kind: SumKind, layout: Layout) -> bool:
    """Whether `GroupedValues` serves the values of a layout."""
    if dtype.name not in FLOATS or kind not in KINDS:
        return False
    if kind is SumKind.VALUES:
        return True
    if layout.count < 2 or not layout.total:
        return False
    if isinstance(layout, OffsetsLayout):
        return layout.longest <= _SHORT or layout.count >= 16 * gpu.multiprocessors
    return True


class GroupedValues:
    """The values of a layout of `array`, a CuPy array of float32 or float64 of one dimension: sums of `kind`, rounded;
    of products with `other`, an array like it. To be used while `gpu.active()`.

    `values` is a CuPy array of the dtype, the caller's if one is given. `marked`, a CuPy array of one uint32 which must
    be 0 before a start, is not 0 after it where values are marked; `giants` are so long that they always are. `kernel`
    names what the shape chose.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, kind: SumKind, rounding: Rounding,
        values: Any = None, shapes: GroupedShapes | None = None, *, other: Any = None,
    ) -> None:  # fmt: skip
        import cupy

        self._other: Any = _NOWHERE if other is None else other
        self._gpu, self._array, self._layout, self._dtype, self._kind = gpu, array, layout, dtype, kind
        self._rounding, self._shapes = rounding, shapes or SHAPES[dtype.name, kind]
        self.kernel = ""
        self.values = cupy.empty(layout.count, dtype=dtype.numpy) if values is None else values
        self.marked = cupy.zeros(1, dtype=np.uint32)
        self._left: Any = None  # which launches leave as they find it
        # Spans that are longer are left to many blocks: one would take longer than all others together.
        self._longest = min(_LONGEST, max(1 << 14, layout.total >> 12))
        self.giants: NDArray[np.int64] = np.zeros(0, np.int64)
        if isinstance(layout, OffsetsLayout):
            self.giants = np.flatnonzero(np.diff(layout.host) > self._longest).astype(np.int64)

    def start(self) -> None:
        """Put the launches on the GPU's stream."""
        layout = self._layout
        if not layout.count:
            return
        if isinstance(layout, RowsLayout):
            self._start_rows(layout)
        elif isinstance(layout, ColumnsLayout):
            self._start_columns(layout)
        elif not self._start_stream(layout, self._mean_of_others(layout)):
            self._start_spans(layout, self._mean_of_others(layout))

    def _mean_of_others(self, layout: OffsetsLayout) -> float:
        """Elements of a segment on average, giants left out."""
        return (layout.total - self._of_giants(layout)) / max(1, layout.count - self.giants.size)

    def _of_giants(self, layout: OffsetsLayout) -> int:
        return int(np.diff(layout.host)[self.giants].sum())

    # Rows

    def _start_rows(self, layout: RowsLayout) -> None:
        if layout.count * layout.length != layout.total:
            self._start_spans(layout, layout.length)
        elif self._start_pairs(layout) or self._start_held(layout):
            return
        elif (parts := self._parts(layout)) > 1:
            self._start_parts(layout, parts)
        else:
            self._start_spans(layout, layout.length)

    def _aligned(self, layout: RowsLayout) -> bool:
        """Whether all rows begin and end at multiples of 16 bytes."""
        even = layout.count * layout.length == layout.total
        return even and not self._offset() and layout.length * self._dtype.itemsize % VECTOR_BYTES == 0

    def _offset(self) -> int:
        """Bytes from a multiple of 16 to the array, or to the other one."""
        own = int(self._array.data.ptr) % VECTOR_BYTES
        return own or (int(self._other.data.ptr) % VECTOR_BYTES if self._kind is SumKind.PRODUCTS else 0)

    def _start_pairs(self, layout: RowsLayout) -> bool:
        """Start a launch for rows of two elements where that serves."""
        flight, per_read = self._shapes.pairs, lanes_of(self._dtype) // 2
        half_distances = self._rounding.finish is Finishing.DEVIATION and not self._rounding.ddof
        serves = half_distances or self._kind is SumKind.VALUES
        if layout.length != 2 or not flight or not serves or self._offset() or int(self.values.data.ptr) % 8:
            return False
        self.kernel = "rows_pairs"
        count = layout.count // per_read * per_read
        if count:
            grid = -(-count // (per_read * 256 * flight))
            self._run(
                pairs_kernel(self._dtype, self._kind, flight),
                grid,
                256,
                (self._array, np.uint64(count), *self._results()),
            )
        if layout.count % per_read:
            self._run_spans(self._array[2 * count :], RowsLayout(1, 2, 2), 2, self.values[count:])
        return True

    def _start_held(self, layout: RowsLayout) -> bool:
        """Start a launch for rows that lanes hold in registers, if one serves."""
        reads = layout.length // lanes_of(self._dtype)
        shape = next((shape for shape in self._shapes.rows if shape.most >= reads), None)
        if shape is None or not self._aligned(layout):
            return False
        self.kernel = "rows_held"
        grid = -(-layout.count // (shape.threads // shape.lanes * shape.rows))
        sizes = (np.uint64(layout.count), np.uint32(layout.length))
        self._run(rows_kernel(self._dtype, shape), grid, shape.threads, (self._array, *sizes, *self._results()))
        return True

    def _parts(self, layout: RowsLayout) -> int:
        """Into how many parts a row is cut: some for each warp, where there are few rows, and none is very long."""
        shape = self._shapes.parts
        wanted = -(-shape.enough * self._gpu.multiprocessors // layout.count)
        return max(-(-layout.length // shape.most), min(wanted, layout.length // shape.least))

    def _start_parts(self, layout: RowsLayout, parts: int) -> None:
        lanes, shape, vectors = lanes_of(self._dtype), self._shapes.parts, self._aligned(layout)
        part = -(-layout.length // (parts * lanes)) * lanes
        parts = -(-layout.length // part)
        tile = lanes * shape.flight
        bits = (-(-part // (32 * tile)) * (tile + 1)).bit_length()
        size = layout.count * parts
        stored = self._between(size)
        self.kernel = "rows_in_parts"
        name = parts_kernel(self._dtype, self._kind, shape, vectors=vectors)
        self._run(
            name, -(-size * 32 // shape.threads), shape.threads,
            (self._array, self._other, np.uint64(layout.count), np.uint64(layout.length), np.uint64(part),
             np.uint32(parts), np.uint32(bits), np.uint64(size), *stored),
        )  # fmt: skip
        self._close(stored, size, layout.count, layout.length, bits, (32 * parts).bit_length())

    def _between(self, size: int) -> tuple[Any, Any]:
        """Memory for so many parts (`PlacesOfParts` of include/grouped_columns.cuh)."""
        import cupy

        sums = part_sums(self._dtype, self._kind)
        return cupy.empty(size * 2 * sums, dtype=np.float64), cupy.empty(size * 3, dtype=np.uint32)

    def _close(  # noqa: PLR0917
        self, stored: tuple[Any, Any], size: int, width: int, height: int, bits: int, windows: int, flushes: int = 1
    ) -> None:
        """Put the parts of `width` values together: fewer than 2**`windows` windows had fewer than 2**`bits` terms,
        of which a thread had `flushes`."""
        each, block = size // width, self._shapes.closing
        beside = min(width, block, max(_BESIDE, block * _PARTS_OF_THREAD // each))
        sums = (-(-each // (block // beside)) + 2 * _SUMS_IN_BLOCK + flushes).bit_length()
        self._run(
            close_kernel(self._dtype, self._kind, block), -(-width // beside), block,
            (*stored, np.uint64(size), np.uint64(width), np.uint64(height), np.uint32(beside), np.uint32(bits),
             np.uint32(windows), np.uint32(sums), *self._results()),
            block * part_bytes(self._dtype, self._kind),
        )  # fmt: skip

    # Spans, which are rows or segments

    def _start_spans(self, layout: RowsLayout | OffsetsLayout, mean: float) -> None:
        self.kernel = "rows_spans" if isinstance(layout, RowsLayout) else "segments_spans"
        self._run_spans(self._array, layout, mean, self.values)

    def _run_spans(self, array: Any, layout: RowsLayout | OffsetsLayout, mean: float, values: Any) -> None:
        shapes, count = self._shapes, layout.count
        shape, length = shapes.spans(mean), 0
        if isinstance(layout, RowsLayout):
            length = layout.length
            if self._aligned(layout):
                held = next((row for most, row in shapes.aligned if length <= most * lanes_of(self._dtype)), None)
                shape = held or (shapes.many if count >= 128 * self._gpu.multiprocessors else shapes.few)
        first = _NOWHERE if isinstance(layout, RowsLayout) else layout.offsets
        longest = _LONGEST if isinstance(layout, RowsLayout) else self._longest
        sizes = (np.uint64(count), np.uint64(layout.total), np.uint64(length), np.uint64(longest))
        self._run(
            spans_kernel(self._dtype, self._kind, shape), -(-count // shape.per_block), shape.threads,
            (array, self._other, first, *sizes, *self._results(values)),
        )  # fmt: skip

    def _start_stream(self, layout: OffsetsLayout, mean: float) -> bool:
        """Start launches for segments as one stream where that serves. It leaves giants as they are."""
        shape = self._shapes.stream(mean)
        if shape is None or self._offset():
            return False
        import cupy

        self.kernel = "segments_streamed"
        if self._left is None:
            self._left = cupy.zeros(2 + LEFT_ROOM, dtype=np.uint64)
        count, total, warps = layout.count, layout.total, shape.threads // 32
        at_once = self._gpu.multiprocessors * shape.blocks * shape.waves * warps
        share = max(shape.least, -(-(total - self._of_giants(layout) + SEGMENT_COSTS * count) // at_once))
        grid = -(-((total + SEGMENT_COSTS * count) // share + 1) // warps)
        segments = (self._array, layout.offsets, np.uint64(count), np.uint64(total), np.uint64(self._longest))
        mean_of_each = self._rounding.finish is Finishing.MEAN
        self._run(
            stream_kernel(self._dtype, shape, mean=mean_of_each), grid, shape.threads,
            (*segments, np.uint64(share), *self._results(), self._left), shape.shared(self._dtype),
        )  # fmt: skip
        self._run(
            later_kernel(self._dtype, shape), self._gpu.multiprocessors * 8, shape.threads,
            (*segments, *self._results(), self._left),
        )  # fmt: skip
        return True

    # Columns

    def _start_columns(self, layout: ColumnsLayout) -> None:
        if self._start_short_columns(layout):
            return
        shape, kind = self._shapes.columns, self._kind
        launch = ColumnsLaunch.of(self._offset(), self._dtype, layout, shape)
        whole, shares = launch.whole(layout.width), launch.once < launch.period
        stored = (_NOWHERE, _NOWHERE) if whole else self._between(launch.size)
        tiles, flushes = -(-launch.periods // shape.flight), 1
        if kind in {SumKind.VALUES, SumKind.PRODUCTS} and self._dtype.itemsize == 8:
            flushes = -(-tiles // _TILES_OF_SUM)
            tiles = min(tiles, _TILES_OF_SUM)
        bits = (tiles * (shape.flight + 1)).bit_length()
        windows = (flushes * launch.parts * launch.period * launch.slots // layout.width).bit_length()
        self.kernel = "columns" if whole else "columns_in_parts"
        name = columns_kernel(self._dtype, kind, shape, vectors=launch.slots > 1)
        self._run(
            name, launch.tiles * launch.parts, shape.threads,
            (self._array, self._other, np.uint64(layout.total), np.uint32(layout.width), np.uint64(launch.period),
             np.uint32(launch.tiles), np.uint64(launch.periods), np.uint32(launch.once), np.uint64(layout.height),
             np.uint32(bits), np.uint32(windows), np.uint32((_SUMS_IN_BLOCK + flushes).bit_length()),
             np.uint64(launch.size),
             *stored, *self._results()),
            shape.threads * part_bytes(self._dtype, kind) if shares else 0,
        )  # fmt: skip
        if not whole:
            self._close(stored, launch.size, layout.width, layout.height, bits, windows, flushes)

    def _start_short_columns(self, layout: ColumnsLayout) -> bool:
        """Start a launch for columns of few rows, if it serves."""
        threads, height, kind = self._shapes.short_columns, layout.height, self._kind
        flight = next((flight for flight in SHORT_COLUMNS if height <= flight), 0)
        if (kind is not SumKind.VALUES or self._dtype.itemsize == 4) and height <= MOST_TRIED:
            flight = flight or SHORT_COLUMNS[-1]
        if not threads or not flight:
            return False
        self.kernel = "columns_held"
        lanes = lanes_of(self._dtype)
        vectors = layout.width % lanes == 0 and not self._offset() and int(self.values.data.ptr) % VECTOR_BYTES == 0
        reads = layout.width // lanes if vectors else layout.width
        name = short_columns_kernel(self._dtype, kind, flight, threads, vectors=vectors)
        sizes = (np.uint64(reads), np.uint32(height))
        self._run(name, -(-reads // threads), threads, (self._array, *sizes, *self._results()))
        return True

    def _results(self, values: Any = None) -> tuple[Any, ...]:
        """The arguments of `Results` in include/grouped_value.cuh."""
        end = self._rounding
        flags = (np.uint64(end.finish), np.uint64(end.ddof), np.uint32(end.omit_nan))
        return (self.values if values is None else values, self.marked, *flags)

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self._gpu.kernel(unit_of(name), name)(grid, block, args, shared)
