"""Exact sums and means of many values on a GPU, each rounded once: of rows, of columns and of segments.

The shape chooses the kernels (`shapes.py`). What a launch leaves of a value in parts is a few doubles whose exact sum
is the part's, and the next launch adds those up by the same kernels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.cuda.grouped.layouts import ColumnsLaunch, ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import (
    LEVELS,
    LEVELS_OF_PARTS,
    SHAPES,
    SPAN_BITS,
    WIDE_BLOCKS,
    WIDE_BYTES,
    WIDE_PART,
    WIDE_THREADS,
    WORDS,
    GroupedShapes,
    RowsShape,
    SpanShape,
    columns_kernel,
    lanes_of,
    later_kernel,
    pairs_kernel,
    round_kernel,
    rows_kernel,
    short_columns_kernel,
    spans_kernel,
    stream_kernel,
    unit_of,
    wide_kernel,
)
from warpfold.kernels.dtypes import DTYPES, DType

_FLOAT64 = DTYPES["float64"]
SEGMENT_COSTS = 2
"""As many elements as a segment counts when a stream is cut into shares (include/grouped_stream.cuh)."""

LEFT_ROOM = 1 << 13
"""Entries of the list of segments that a stream leaves (include/grouped_stream.cuh)."""

_AT_ONCE = 1 << 15
"""Totals of values that no window holds which are in memory at a time: 20 MB."""

MARKS = {"float32": (np.uint32, 0x7FC66D6B), "float64": (np.uint64, 0x7FF86D61726B6564)}
"""The bits of a value that is not there yet (include/grouped_window.cuh)."""


@dataclass(frozen=True, slots=True)
class WideSums:
    """Sums or means of values of a layout of `array` that no window holds or that are too long for a warp.

    Blocks add up each as a whole array, by `wide_sums` and `round_totals` of `../sources/grouped.cu`. The results go to
    `values`, and how many NaNs were left out of each to `omitted` unless that is None; both are CuPy arrays with a
    place for each value of the layout.
    """

    gpu: Gpu
    array: Any
    layout: Layout
    dtype: DType
    values: Any
    omitted: Any
    mean: bool

    def add(self, listed: Any) -> None:
        """Start the launches for the values that are `listed`, a CuPy array of at least one int64."""
        import cupy

        size, members = int(listed.size), self.layout.members
        totals = cupy.zeros(size * WORDS, dtype=np.uint64)
        room = self.gpu.multiprocessors * WIDE_BLOCKS[self.dtype.name]
        parts = max(1, min(-(-self.layout.longest // WIDE_PART), room // size))
        self._run(
            wide_kernel(self.dtype), size * parts, WIDE_THREADS,
            (self.array, *members, listed, np.uint32(parts), totals), WIDE_THREADS * WIDE_BYTES[self.dtype.name],
        )  # fmt: skip
        omitted = np.uint64(0) if self.omitted is None else self.omitted
        flags = (np.uint32(self.mean), np.uint32(self.omitted is not None))
        self._run(
            round_kernel(self.dtype), -(-size // 64), 64,
            (totals, np.uint64(size), *members, listed, self.values, omitted, *flags),
        )  # fmt: skip

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self.gpu.kernel(unit_of(name), name)(grid, block, args, shared)


class GroupedSums:
    """The sums, or with `mean` the means, of the values of a layout of `array`, a CuPy array of a float `dtype` of one
    dimension, as `result`. With `omit_nan` elements that are NaN are left out. To be used while `gpu.active()`.

    `values` is a CuPy array of the result's dtype, the caller's if one is given; `omitted` says how many elements were
    left out of each (uint32), or is None. The mean of no elements is 0 here. `kernel` names what the shape chose.
    `marked`, a CuPy array of one uint32, is not 0 where values are marked: `finish` adds those up. `cleared` is all
    memory that must be 0 before the launches.
    """

    def __init__(
        self,
        gpu: Gpu,
        array: Any,
        layout: Layout,
        dtype: DType,
        *,
        mean: bool = False,
        omit_nan: bool = False,
        shapes: GroupedShapes | None = None,
        values: Any = None,
    ) -> None:
        import cupy

        self._gpu, self._array, self._layout = gpu, array, layout
        self._dtype, self._result, self._mean, self._omit_nan = dtype, dtype, mean, omit_nan
        self._shapes = SHAPES[dtype.name] if shapes is None else shapes
        self.kernel = ""
        count = layout.count
        self.values = cupy.empty(count, dtype=dtype.numpy) if values is None else values
        self.omitted = cupy.zeros(count, dtype=np.uint32) if omit_nan else None
        self._wide = WideSums(gpu, array, layout, dtype, self.values, self.omitted, mean)
        self.cleared: list[Any] = []
        self.marked = self._zeros(1)
        self._left = cupy.zeros(2 + LEFT_ROOM, dtype=np.uint64)  # which launches leave as they find it

    def _zeros(self, size: int) -> Any:
        """Memory of uint32 that is 0 before the launches."""
        import cupy

        made = cupy.zeros(size, dtype=np.uint32)
        self.cleared.append(made)
        return made

    def start(self) -> None:
        """Put the launches that nearly all values need on the GPU's stream."""
        layout = self._layout
        if not self.values.size:
            return
        if isinstance(layout, RowsLayout):
            self._start_rows(layout)
        elif isinstance(layout, ColumnsLayout):
            self._start_columns(layout)
        else:
            self._start_offsets(layout)

    def _start_offsets(self, layout: OffsetsLayout) -> None:
        import cupy

        longest = self._longest(layout.total)
        giants = np.flatnonzero(np.diff(layout.host) > longest)
        if giants.size:  # blocks that wait for memory, beside a stream that waits for the instruction before
            listed = cupy.asarray(giants.astype(np.int64))
            with self._gpu.aside():
                self._wide.add(listed)
        # of all other elements
        mean = (layout.total - self._elements_of(layout, giants)) / max(1, self.values.size - giants.size)
        if not self._start_stream(
            layout.offsets, self.values.size, layout.total, 0, longest, mean, giants=self._elements_of(layout, giants)
        ):
            shape = self._shapes.spans(mean)
            self.kernel = f"segments_{_words(shape.lanes)}"
            self._spans(self._array, self._dtype, shape, layout.offsets, self.values.size, layout.total, 0, longest)
        if giants.size:
            self._gpu.join()

    @staticmethod
    def _elements_of(layout: OffsetsLayout, segments: Any) -> int:
        return int(np.diff(layout.host)[segments].sum())

    def finish(self) -> int:
        """Have the values that no window held added up, and say how many; waits for the work."""
        import cupy

        count = int(self.marked.get()[0])
        if count:
            bits, mark = MARKS[self._result.name]
            listed = cupy.flatnonzero(self.values.view(bits) == bits(mark)).astype(np.int64)
            for start in range(0, int(listed.size), _AT_ONCE):
                self._wide.add(listed[start : start + _AT_ONCE])
            self.marked.fill(0)
        return count

    # The shapes of rows

    def _start_rows(self, layout: RowsLayout) -> None:
        lanes, itemsize = lanes_of(self._dtype), self._dtype.itemsize
        even = layout.total == layout.count * layout.length
        aligned = int(self._array.data.ptr) % VECTOR_BYTES == 0 and layout.length * itemsize % VECTOR_BYTES == 0
        if even and self._pairs(layout):
            return
        if not (even and aligned):
            sizes = (layout.count, layout.total, layout.length, layout.length, layout.length)
            if self._start_stream(None, *sizes):
                return
            shape = self._shapes.spans(layout.length)
        else:
            reads = layout.length // lanes
            held = next((shape for shape in self._shapes.rows if shape.most >= reads), None)
            if held is not None:
                self.kernel = "rows_lane" if held.lanes == 1 else f"rows_{_words(held.lanes)}"
                self._rows(held, layout)
                return
            shape = self._shapes.long
        parts = self._parts(layout) if even else 1
        self.kernel = f"rows_{_words(shape.lanes)}" if parts == 1 else "rows_in_parts"
        self._cut(shape, layout, parts)

    def _parts(self, layout: RowsLayout) -> int:
        """Into how many parts a row is cut."""
        most = (1 << SPAN_BITS) - 1
        least = -(-layout.length // (most // 16 * 16))
        wanted = -(-layout.length // self._shapes.part)
        return max(least, wanted if layout.count < self._shapes.enough else 1)

    def _pairs(self, layout: RowsLayout) -> bool:
        """Start a launch for rows of two elements where that serves."""
        if layout.length != 2 or not self._shapes.pairs or int(self._array.data.ptr) % VECTOR_BYTES:
            return False
        self.kernel = "rows_pairs"
        rows = lanes_of(self._dtype) // 2  # of 16 bytes
        flight, count = self._shapes.pairs, layout.count // rows * rows
        if count:
            grid = -(-count // (rows * 256 * flight))
            self._run(pairs_kernel(self._dtype, flight), grid, 256, (self._array, np.uint64(count), *self._results(2)))
        if layout.count % rows:
            shape = self._shapes.spans(2)
            last = self._array[2 * count : 2 * layout.count]
            self._spans(last, self._dtype, shape, None, 1, 2, 2, 2, values=self.values[count:])
        return True

    def _rows(self, shape: RowsShape, layout: RowsLayout) -> None:
        grid = -(-layout.count // (shape.threads // shape.lanes * shape.rows))
        name = rows_kernel(self._dtype, self._result, shape)
        sizes = (np.uint64(layout.count), np.uint32(layout.length))
        self._run(name, grid, shape.threads, (self._array, *sizes, *self._results(layout.length)))

    def _cut(self, shape: SpanShape, layout: RowsLayout, parts: int) -> None:
        """Rows as spans, each in so many parts."""
        import cupy

        if parts == 1:
            longest = self._longest(layout.total)
            self._spans(
                self._array, self._dtype, shape, None, layout.count, layout.total, layout.length, longest,
            )  # fmt: skip
            return
        lanes = lanes_of(self._dtype)
        part = -(-layout.length // (parts * lanes)) * lanes
        parts = -(-layout.length // part)
        levels = LEVELS[self._dtype.name]
        stored = cupy.empty(layout.count * parts * levels, dtype=np.float64)
        lost = self._zeros(layout.count)
        self._spans(
            self._array, self._dtype, shape, None, layout.count * parts, layout.total, layout.length, part,
            part=part, parts=parts, stored=stored, lost=lost, store=True,
        )  # fmt: skip
        length = parts * levels
        while length > 2048:  # a warp takes microseconds for as many
            parts = -(-length // 512)
            more = cupy.empty(layout.count * parts * LEVELS_OF_PARTS, dtype=np.float64)
            self._spans(
                stored, _FLOAT64, SHAPES["float64"].long_spans, None, layout.count * parts, stored.size, length, 512,
                part=512, parts=parts, stored=more, lost=lost, store=True,
            )  # fmt: skip
            stored, length = more, parts * LEVELS_OF_PARTS
        self._spans(
            stored, _FLOAT64, SHAPES["float64"].spans(length), None, layout.count, stored.size, length, length,
            lost=lost, divisor=layout.length,
        )  # fmt: skip

    def _longest(self, total: int) -> int:
        """A span of so many elements is left to many blocks: it would take longer than the others together."""
        return min((1 << SPAN_BITS) - 1, max(1 << 14, total >> 12))

    def _spans(  # noqa: PLR0917
        self, array: Any, dtype: DType, shape: SpanShape, offsets: Any, count: int, total: int, length: int,
        longest: int, *, part: int | None = None, parts: int = 1, stored: Any = None, lost: Any = None,
        store: bool = False, divisor: int | None = None, values: Any = None,
    ) -> None:  # fmt: skip
        of_parts = lost is not None and not (store and parts > 1 and array is self._array)
        name = spans_kernel(dtype, self._result, shape, parts=store, of_parts=of_parts)
        none = np.uint64(0)
        sizes = (np.uint64(count), np.uint64(total), np.uint64(length), np.uint64(length if part is None else part))
        grid = -(-count * shape.lanes // shape.threads)
        divided_by = 1 if divisor is None else divisor
        self._run(
            name, grid, shape.threads,
            (array, none if offsets is None else offsets, *sizes, np.uint64(longest), np.uint32(parts),
             *self._results(divided_by, values), none if stored is None else stored, none if lost is None else lost),
        )  # fmt: skip

    def _start_stream(  # noqa: PLR0917
        self, offsets: Any, count: int, total: int, length: int, longest: int, mean: float, *, giants: int = 0
    ) -> bool:
        """Start a launch for segments as one stream where that serves; `giants` elements belong to segments of more
        than `longest`, which other launches add up."""
        shape = self._shapes.stream(mean)
        if shape is None or int(self._array.data.ptr) % VECTOR_BYTES:
            return False
        self.kernel = "rows_streamed" if offsets is None else "segments_streamed"
        warps = shape.threads // 32
        at_once = self._gpu.multiprocessors * shape.blocks * shape.waves * warps
        share = max(shape.least, -(-(total - giants + SEGMENT_COSTS * count) // at_once))
        grid = -(-((total + SEGMENT_COSTS * count) // share + 1) // warps)
        sizes = (np.uint64(count), np.uint64(total), np.uint64(length), np.uint64(longest))
        first = np.uint64(0) if offsets is None else offsets
        self._run(
            stream_kernel(self._dtype, shape, mean=self._mean), grid, shape.threads,
            (self._array, first, *sizes, np.uint64(share), *self._results(1), self._left), shape.shared(self._dtype),
        )  # fmt: skip
        self._run(
            later_kernel(self._dtype, shape), self._gpu.multiprocessors * 8, shape.threads,
            (self._array, first, *sizes, *self._results(1), self._left),
        )  # fmt: skip
        return True

    # The shapes of columns

    def _start_columns(self, layout: ColumnsLayout) -> None:
        import cupy

        array, dtype, height = self._array, self._dtype, layout.height
        if self._start_short_columns(layout):
            return
        lost: Any = None
        for stage in range(8):
            launch = ColumnsLaunch.of(array, dtype, layout.width, height, self._shapes, first=stage == 0)
            if stage == 0:
                together = "_together" if launch.together else ""
                self.kernel = f"columns{together}" if launch.parts == 1 else f"columns{together}_in_parts"
            last = launch.parts == 1
            levels = LEVELS[dtype.name] if stage == 0 else LEVELS_OF_PARTS
            if not last and lost is None:
                lost = self._zeros(layout.width)
            stored = None if last else cupy.empty(launch.parts * levels * layout.width, dtype=np.float64)
            name = columns_kernel(
                dtype,
                self._result,
                launch.shape,
                vectors=launch.vectors,
                together=launch.together,
                parts=not last,
                of_parts=stage > 0,
            )
            none = np.uint64(0)
            self._run(
                name, launch.tiles * launch.parts, launch.shape.threads,
                (array, np.uint64(launch.reads), np.uint32(layout.width), np.uint64(launch.period),
                 np.uint32(launch.tiles), np.uint64(launch.periods), np.uint64(layout.height),
                 *self._results(layout.height), none if stored is None else stored, none if lost is None else lost),
                launch.shared,
            )  # fmt: skip
            if last:
                return
            array, dtype, height = stored, _FLOAT64, launch.parts * levels
        raise AssertionError("parts of columns get fewer at each stage")

    def _start_short_columns(self, layout: ColumnsLayout) -> bool:
        """Start a launch for columns of few rows, if it serves."""
        lanes, threads = lanes_of(self._dtype), self._shapes.short_columns
        name = short_columns_kernel(self._dtype, layout.height, threads)
        if name is None or not threads or layout.width % lanes or int(self._array.data.ptr) % VECTOR_BYTES:
            return False
        self.kernel = "columns_thread"
        vectors = layout.width // lanes
        sizes = (np.uint64(vectors), np.uint32(layout.height))
        self._run(name, -(-vectors // threads), threads, (self._array, *sizes, *self._results(layout.height)))
        return True

    def _results(self, divisor: int, values: Any = None) -> tuple[Any, ...]:
        """The arguments of `Results` in include/grouped_window.cuh."""
        divided = np.uint64(divisor if self._mean else 0)
        return (self.values if values is None else values, self.marked, divided, np.uint32(self._omit_nan))

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self._gpu.kernel(unit_of(name), name)(grid, block, args, shared)


def _words(lanes: int) -> str:
    return "warp" if lanes == 32 else "thread" if lanes == 1 else f"{lanes}_lanes"
