"""Exact sums of squares, norms, variances and deviations of many values on a GPU: of rows, of columns and of segments.

Each value is rounded once by what adds it up (`../sources/grouped_squares.cu`). The few whose rounding is not sure are
marked, as those of `sums.py` are, and added up as whole arrays are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.cuda.grouped.layouts import ColumnsLaunch, ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import FLOATS, SHAPES, ColumnsShape, lanes_of
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "grouped_squares.cu"

KINDS = (SumKind.SQUARES, SumKind.MOMENTS)

MOST_ELEMENTS = 1 << 26
"""Elements that a value has fewer than: n² is then a double."""

_SHORT = 1 << 12
"""Rows of so many elements are spans however few there are."""

_LONG = 1 << 17
"""A longer row or segment is left to many blocks."""

_THREADS = 128


@dataclass(frozen=True, slots=True)
class SquareSpans:
    """Spans of `lanes` lanes, `spans` of them one after another and that `rounds` times, by `flight` reads of 16 bytes
    or as many elements."""

    lanes: int
    spans: int
    vectors: bool
    flight: int = 4
    rounds: int = 1


_VECTORS = {
    "float32": (
        (1, SquareSpans(1, 1, vectors=True, flight=1, rounds=2)),
        (2, SquareSpans(1, 1, vectors=True, flight=2, rounds=2)),
        (4, SquareSpans(1, 1, vectors=True)),
        (8, SquareSpans(2, 2, vectors=True)),
        (16, SquareSpans(4, 4, vectors=True)),
        (32, SquareSpans(8, 4, vectors=True)),
        (160, SquareSpans(4, 4, vectors=True)),
    ),
    "float64": (
        (1, SquareSpans(1, 1, vectors=True, flight=1, rounds=2)),
        (2, SquareSpans(1, 1, vectors=True, flight=2, rounds=2)),
        (4, SquareSpans(1, 1, vectors=True)),
        (8, SquareSpans(2, 2, vectors=True)),
        (16, SquareSpans(2, 2, vectors=True, flight=8)),
        (80, SquareSpans(4, 4, vectors=True)),
        (160, SquareSpans(8, 4, vectors=True, flight=8)),
    ),
}
"""Up to so many reads of 16 bytes a row."""

_MANY, _FEW = SquareSpans(16, 2, vectors=True, flight=8), SquareSpans(32, 1, vectors=True)
"""Longer rows, where there are enough for all warps, and where there are not."""

_ELEMENTS = {
    "float32": (
        (8, SquareSpans(1, 1, vectors=False, flight=1, rounds=2)),
        (48, SquareSpans(4, 4, vectors=False, flight=1)),
        (200, SquareSpans(8, 8, vectors=False, flight=2)),
        (1000, SquareSpans(32, 1, vectors=False, flight=2)),
        (1 << 62, SquareSpans(32, 1, vectors=False)),
    ),
    "float64": (
        (8, SquareSpans(1, 1, vectors=False, flight=2)),
        (48, SquareSpans(4, 4, vectors=False, flight=2)),
        (200, SquareSpans(8, 8, vectors=False, flight=2)),
        (1000, SquareSpans(32, 1, vectors=False, flight=2)),
        (1 << 62, SquareSpans(32, 1, vectors=False)),
    ),
}
"""Up to so many elements a span on average, at any address."""

COLUMNS = ColumnsShape(8, 256, blocks=264)
_LANES_OF_COLUMNS = (1, 32)
_BYTES_OF_PARTS = 64
"""Shared memory of a thread, for what it has of a column (`SquareParts` of include/grouped_squares.cuh)."""

_SUMS_IN_BLOCK = 8
"""Sums of two through which the parts of a thread go in its block."""

_PARTS_FLIGHT, _LEAST, _ENOUGH = 4, 1 << 12, 32
"""Reads in flight of a warp that has a part of a row, how many elements a part has at least, and how many parts of all
rows a multiprocessor gets where rows are long enough."""

_WIDE = 8192
"""The parts of a column are put together by a warp, or by a thread where there are so many columns."""


def spans_kernel(dtype: DType, kind: SumKind, shape: SquareSpans) -> str:
    """The kernel of spans, as a C++ name expression."""
    flags = f"{shape.lanes}, {shape.spans}, {str(shape.vectors).lower()}, {shape.flight}, {shape.rounds}, {_THREADS}"
    return f"square_spans<{element(dtype)}, {_valued(kind)}, {flags}>"


def columns_kernel(dtype: DType, kind: SumKind, shape: ColumnsShape, *, vectors: bool) -> str:
    """The kernel that leaves parts of columns."""
    flags = f"{str(vectors).lower()}, {shape.flight}, {shape.threads}"
    return f"square_columns<{element(dtype)}, {_valued(kind)}, {flags}>"


def parts_kernel(dtype: DType, kind: SumKind) -> str:
    """The kernel that leaves parts of rows."""
    return f"square_parts<{element(dtype)}, {_valued(kind)}, {_PARTS_FLIGHT}, {_THREADS}>"


def pairs_kernel(dtype: DType) -> str:
    """The kernel of deviations of columns of two rows."""
    return f"square_pairs<{element(dtype)}, {_THREADS}>"


def close_kernel(dtype: DType, kind: SumKind, lanes: int) -> str:
    """The kernel that puts the parts of a column together by so many lanes."""
    return f"close_columns<{element(dtype)}, {_valued(kind)}, {lanes}, {_THREADS}>"


def _valued(kind: SumKind) -> str:
    return str(kind is SumKind.MOMENTS).lower()


def squares_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    for dtype in (DTYPES[name] for name in FLOATS):
        shapes = [shape for _, shape in (*_VECTORS[dtype.name], *_ELEMENTS[dtype.name])] + [_MANY, _FEW]
        for kind in KINDS:
            yield Unit(SOURCE, tuple(dict.fromkeys(spans_kernel(dtype, kind, shape) for shape in shapes)))
            columns = [columns_kernel(dtype, kind, COLUMNS, vectors=vectors) for vectors in (False, True)]
            columns.append(parts_kernel(dtype, kind))
            columns += [pairs_kernel(dtype)] if kind is SumKind.MOMENTS else []
            yield Unit(SOURCE, (*columns, *(close_kernel(dtype, kind, lanes) for lanes in _LANES_OF_COLUMNS)))


@dataclass(frozen=True, slots=True)
class SquaresEnd:
    """What becomes of the sums of `kind`: their end, with `ddof` degrees of freedom less, and whether NaN elements are
    left out."""

    kind: SumKind
    finish: Finishing
    ddof: int = 0
    omit_nan: bool = False


def squares_serve(gpu: Gpu, dtype: DType, kind: SumKind, layout: Layout) -> bool:
    """Whether `GroupedSquares` serves the values of a layout."""
    if dtype.name not in FLOATS or kind not in KINDS or layout.count < 2 or not layout.total:
        return False
    if isinstance(layout, ColumnsLayout):
        return layout.height < MOST_ELEMENTS
    if isinstance(layout, RowsLayout):
        return layout.length < MOST_ELEMENTS
    return layout.longest <= _SHORT or layout.count >= 16 * gpu.multiprocessors


class GroupedSquares:
    """The values of a layout of `array`, a CuPy array of float32 or float64 of one dimension. To be used while
    `gpu.active()`.

    `values` is a CuPy array of the dtype, the caller's if one is given. `marked`, a CuPy array of one uint32 which must
    be 0 before a start, is not 0 after it where values are marked. `kernel` names what the shape chose.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, spread: SquaresEnd, values: Any = None,
        columns: ColumnsShape = COLUMNS,
    ) -> None:  # fmt: skip
        import cupy

        self._gpu, self._array, self._layout, self._dtype, self._spread = gpu, array, layout, dtype, spread
        self.values = cupy.empty(layout.count, dtype=dtype.numpy) if values is None else values
        self.kernel, self._columns = "", columns
        self.marked = cupy.zeros(1, dtype=np.uint32)
        self.cleared = [self.marked]

    def start(self) -> None:
        """Put the launches on the GPU's stream."""
        layout = self._layout
        if isinstance(layout, ColumnsLayout):
            self._start_columns(layout)
        elif isinstance(layout, RowsLayout) and self._aligned(layout) and self._parts(layout) > 1:
            self._start_parts(layout, self._parts(layout))
        else:
            self._start_spans(layout)

    def _aligned(self, layout: RowsLayout) -> bool:
        """Whether all rows begin and end at multiples of 16 bytes."""
        aligned = int(self._array.data.ptr) % VECTOR_BYTES == layout.length * self._dtype.itemsize % VECTOR_BYTES == 0
        return aligned and layout.count * layout.length == layout.total

    def _parts(self, layout: RowsLayout) -> int:
        """Into how many parts a row is cut: some for each warp, where there are few rows, and none is very long."""
        wanted = -(-_ENOUGH * self._gpu.multiprocessors // layout.count)
        return max(-(-layout.length // _LONG), min(wanted, layout.length // _LEAST))

    def _start_parts(self, layout: RowsLayout, parts: int) -> None:
        lanes = lanes_of(self._dtype)
        part = -(-layout.length // (parts * lanes)) * lanes
        parts = -(-layout.length // part)
        bits = (-(-part // (32 * lanes * _PARTS_FLIGHT)) * (lanes * _PARTS_FLIGHT + 1)).bit_length()
        size = layout.count * parts
        stored = self._between(size)
        self.kernel = "rows_squares_in_parts"
        self._run(
            parts_kernel(self._dtype, self._spread.kind), -(-size * 32 // _THREADS), _THREADS,
            (self._array, np.uint64(layout.count), np.uint64(layout.length), np.uint64(part), np.uint32(parts),
             np.uint32(bits), np.uint64(size), *stored),
        )  # fmt: skip
        self._close(stored, size, layout.count, layout.length, bits, (32 * parts).bit_length())

    def _between(self, size: int) -> tuple[Any, Any]:
        """Memory for so many parts (`PartsInMemory` of include/grouped_square_columns.cuh)."""
        import cupy

        doubles = 2 + 2 * (self._spread.kind is SumKind.MOMENTS) + 2 * (self._dtype.itemsize == 8)
        return cupy.empty(size * doubles, dtype=np.float64), cupy.empty(size * 3, dtype=np.uint32)

    def _close(  # noqa: PLR0917
        self, stored: tuple[Any, Any], size: int, width: int, height: int, bits: int, threads: int
    ) -> None:
        """Put the parts of `width` values together: up to 2**`threads` threads had fewer than 2**`bits` terms each."""
        lanes = 1 if width >= _WIDE else 32
        sums = (-(-size // (width * lanes)) + _SUMS_IN_BLOCK + 5).bit_length()
        self._run(
            close_kernel(self._dtype, self._spread.kind, lanes), -(-width * lanes // _THREADS), _THREADS,
            (*stored, np.uint64(size), np.uint64(width), np.uint64(height), np.uint32(bits), np.uint32(threads),
             np.uint32(sums), *self._results()),
        )  # fmt: skip

    def _start_spans(self, layout: RowsLayout | OffsetsLayout) -> None:
        rows = isinstance(layout, RowsLayout)
        length = layout.length if isinstance(layout, RowsLayout) else 0
        count, total = layout.count, layout.total
        vectors = isinstance(layout, RowsLayout) and self._aligned(layout)
        shape = self._spans(total / count, count, vectors=vectors)
        self.kernel = f"{'rows' if rows else 'segments'}_squares_{shape.lanes}_lanes"
        offsets = np.uint64(0) if isinstance(layout, RowsLayout) else layout.offsets
        per_block = _THREADS // shape.lanes * shape.spans * shape.rounds
        self._run(
            spans_kernel(self._dtype, self._spread.kind, shape), -(-count // per_block), _THREADS,
            (self._array, offsets, np.uint64(count), np.uint64(total), np.uint64(length), np.uint64(_LONG),
             *self._results()),
        )  # fmt: skip

    def _spans(self, mean: float, count: int, *, vectors: bool) -> SquareSpans:
        if not vectors:
            return next(shape for most, shape in _ELEMENTS[self._dtype.name] if mean <= most)
        reads = mean / lanes_of(self._dtype)
        held = next((shape for most, shape in _VECTORS[self._dtype.name] if reads <= most), None)
        return held or (_MANY if count >= 128 * self._gpu.multiprocessors else _FEW)

    def _start_columns(self, layout: ColumnsLayout) -> None:
        width, height, kind, shape = layout.width, layout.height, self._spread.kind, self._columns
        if height == 2 and self._spread.finish is Finishing.DEVIATION and not self._spread.ddof:
            self.kernel = "columns_squares_of_pairs"
            sizes = (self._array, np.uint64(width))
            self._run(pairs_kernel(self._dtype), -(-width // _THREADS), _THREADS, (*sizes, *self._results()))
            return
        shapes = replace(SHAPES[self._dtype.name], columns=shape, narrow=shape)
        launch = ColumnsLaunch.of(self._array, self._dtype, width, height, shapes, first=True)
        slots = lanes_of(self._dtype) if launch.vectors else 1
        once = width // gcd(width, slots) if launch.tiles == 1 else launch.period
        size = launch.parts * once * slots
        stored = self._between(size)
        bits = (-(-launch.periods // shape.flight) * (shape.flight + 1)).bit_length()
        self.kernel = "columns_squares"
        self._run(
            columns_kernel(self._dtype, kind, shape, vectors=launch.vectors), launch.tiles * launch.parts,
            shape.threads,
            (self._array, np.uint64(launch.reads), np.uint32(width), np.uint64(launch.period), np.uint32(launch.tiles),
             np.uint64(launch.periods), np.uint32(once), np.uint32(bits), np.uint64(size), *stored),
            shape.threads * _BYTES_OF_PARTS if once < launch.period else 0,
        )  # fmt: skip
        threads = (launch.parts * launch.period * slots // width).bit_length()
        self._close(stored, size, width, height, bits, threads)

    def _results(self) -> tuple[Any, ...]:
        """The arguments of `SpreadResults` in include/grouped_square_spans.cuh."""
        spread = self._spread
        flags = (np.uint64(spread.finish), np.uint64(spread.ddof), np.uint32(spread.omit_nan))
        return (self.values, self.marked, *flags)

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self._gpu.kernel(Unit(SOURCE, (name,)), name)(grid, block, args, shared)
