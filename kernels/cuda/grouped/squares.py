"""Exact sums of squares, norms, variances and deviations of many values on a GPU: of rows, of columns and of segments.

Each value is rounded once by what adds it up (`../sources/grouped_squares.cu`). The few whose rounding is not sure are
marked, as those of `sums.py` are, and added up as whole arrays are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
"""A longer row is left to many blocks."""

_THREADS = 128


@dataclass(frozen=True, slots=True)
class SquareSpans:
    """Spans of `lanes` lanes, `spans` of them one after another, by `flight` reads of 16 bytes or as many elements."""

    lanes: int
    spans: int
    vectors: bool
    flight: int = 4


_VECTORS = (
    (4, SquareSpans(1, 1, vectors=True)),
    (16, SquareSpans(4, 4, vectors=True)),
    (64, SquareSpans(8, 8, vectors=True)),
)
"""Up to so many reads of 16 bytes a row."""

_MANY, _FEW = SquareSpans(32, 4, vectors=True), SquareSpans(32, 1, vectors=True)
"""Longer rows, where there are enough for all warps, and where there are not."""

_ELEMENTS = (
    (12, SquareSpans(1, 1, vectors=False)),
    (96, SquareSpans(4, 4, vectors=False)),
    (1 << 62, SquareSpans(32, 1, vectors=False)),
)
"""Up to so many elements a span on average, at any address."""

COLUMNS = ColumnsShape(4, 128, blocks=1056)
_LANES_OF_COLUMNS = (1, 32)
_WIDE = 8192
"""The parts of a column are put together by a warp, or by a thread where there are so many columns."""


def spans_kernel(dtype: DType, kind: SumKind, shape: SquareSpans) -> str:
    """The kernel of spans, as a C++ name expression."""
    flags = f"{shape.lanes}, {shape.spans}, {str(shape.vectors).lower()}, {shape.flight}, {_THREADS}"
    return f"square_spans<{element(dtype)}, {_valued(kind)}, {flags}>"


def columns_kernel(dtype: DType, kind: SumKind, shape: ColumnsShape, *, vectors: bool) -> str:
    """The kernel that leaves parts of columns."""
    flags = f"{str(vectors).lower()}, {shape.flight}, {shape.threads}"
    return f"square_columns<{element(dtype)}, {_valued(kind)}, {flags}>"


def close_kernel(dtype: DType, kind: SumKind, lanes: int) -> str:
    """The kernel that puts the parts of a column together by so many lanes."""
    return f"close_columns<{element(dtype)}, {_valued(kind)}, {lanes}, {_THREADS}>"


def _valued(kind: SumKind) -> str:
    return str(kind is SumKind.MOMENTS).lower()


def squares_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    shapes = [shape for _, shape in (*_VECTORS, *_ELEMENTS)] + [_MANY, _FEW]
    for dtype in (DTYPES[name] for name in FLOATS):
        for kind in KINDS:
            yield Unit(SOURCE, tuple(spans_kernel(dtype, kind, shape) for shape in shapes))
            columns = [columns_kernel(dtype, kind, COLUMNS, vectors=vectors) for vectors in (False, True)]
            yield Unit(SOURCE, (*columns, *(close_kernel(dtype, kind, lanes) for lanes in _LANES_OF_COLUMNS)))


@dataclass(frozen=True, slots=True)
class Spread:
    """What becomes of the sums of `kind`."""

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
    if layout.longest <= _SHORT:
        return True
    enough = layout.count >= 16 * gpu.multiprocessors
    return enough and (layout.longest <= _LONG or isinstance(layout, OffsetsLayout))


class GroupedSquares:
    """The values of a layout of `array`, a CuPy array of float32 or float64 of one dimension. To be used while
    `gpu.active()`.

    `values` is a CuPy array of the dtype, the caller's if one is given. `marked`, a CuPy array of one uint32 which must
    be 0 before a start, is not 0 after it where values are marked. `kernel` names what the shape chose.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, spread: Spread, values: Any = None,
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
        if isinstance(self._layout, ColumnsLayout):
            self._start_columns(self._layout)
        else:
            self._start_spans(self._layout)

    def _start_spans(self, layout: RowsLayout | OffsetsLayout) -> None:
        rows = isinstance(layout, RowsLayout)
        length = layout.length if isinstance(layout, RowsLayout) else 0
        count, total, address = layout.count, layout.total, int(self._array.data.ptr)
        aligned = rows and count * length == total
        aligned = aligned and address % VECTOR_BYTES == 0 and length * self._dtype.itemsize % VECTOR_BYTES == 0
        shape = self._spans(total / count, count, vectors=aligned)
        self.kernel = f"{'rows' if rows else 'segments'}_squares_{shape.lanes}_lanes"
        offsets = np.uint64(0) if isinstance(layout, RowsLayout) else layout.offsets
        longest = _LONG if rows else min(_LONG, max(1 << 14, total >> 12))  # longer ones would end after all others
        per_block = _THREADS // shape.lanes * shape.spans
        self._run(
            spans_kernel(self._dtype, self._spread.kind, shape), -(-count // per_block), _THREADS,
            (self._array, offsets, np.uint64(count), np.uint64(total), np.uint64(length), np.uint64(longest),
             *self._results()),
        )  # fmt: skip

    def _spans(self, mean: float, count: int, *, vectors: bool) -> SquareSpans:
        if not vectors:
            return next(shape for most, shape in _ELEMENTS if mean <= most)
        reads = mean / lanes_of(self._dtype)
        held = next((shape for most, shape in _VECTORS if reads <= most), None)
        return held or (_MANY if count >= 256 * self._gpu.multiprocessors else _FEW)

    def _start_columns(self, layout: ColumnsLayout) -> None:
        import cupy

        width, height, kind, shape = layout.width, layout.height, self._spread.kind, self._columns
        shapes = replace(SHAPES[self._dtype.name], columns=shape, narrow=shape)
        launch = ColumnsLaunch.of(self._array, self._dtype, width, height, shapes, first=True)
        size = launch.parts * launch.period * (lanes_of(self._dtype) if launch.vectors else 1)
        doubles = 2 + 2 * (kind is SumKind.MOMENTS) + 2 * (self._dtype.itemsize == 8)
        stored = cupy.empty(size * doubles, dtype=np.float64)
        words = cupy.empty(size * 3, dtype=np.uint32)
        tiles = -(-launch.periods // shape.flight)
        bits, threads = (tiles * (shape.flight + 1)).bit_length(), (size // width).bit_length()
        self._run(
            columns_kernel(self._dtype, kind, shape, vectors=launch.vectors), launch.tiles * launch.parts,
            shape.threads,
            (self._array, np.uint64(launch.reads), np.uint32(width), np.uint64(launch.period), np.uint32(launch.tiles),
             np.uint64(launch.periods), np.uint32(bits), np.uint64(size), stored, words),
        )  # fmt: skip
        lanes = 1 if width >= _WIDE else 32
        self.kernel = "columns_squares"
        self._run(
            close_kernel(self._dtype, kind, lanes), -(-width * lanes // _THREADS), _THREADS,
            (stored, words, np.uint64(size), np.uint64(width), np.uint64(height), np.uint32(bits), np.uint32(threads),
             *self._results()),
        )  # fmt: skip

    def _results(self) -> tuple[Any, ...]:
        """The arguments of `SpreadResults` in include/grouped_square_spans.cuh."""
        spread = self._spread
        flags = (np.uint64(spread.finish), np.uint64(spread.ddof), np.uint32(spread.omit_nan))
        return (self.values, self.marked, *flags)

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...]) -> None:
        self._gpu.kernel(Unit(SOURCE, (name,)), name)(grid, block, args, 0)
