"""How the kernels of `../sources/grouped.cu` and `grouped_stream.cu` are launched: plain values, kept apart from what
they tune."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.dtypes import DTYPES, DType

_SOURCES = Path(__file__).parent.parent / "sources"
SOURCE, STREAM_SOURCE = _SOURCES / "grouped.cu", _SOURCES / "grouped_stream.cu"

FLOATS = ("float32", "float64")
KINDS = (SumKind.VALUES, SumKind.SQUARES, SumKind.MOMENTS, SumKind.PRODUCTS)

SHORT_COLUMNS = (4, 8, 16)
"""Rows that a thread holds in registers."""

MOST_TRIED = 64
"""Rows that a thread adds up without windows (`MOST_TERMS` of include/grouped_short.cuh), but of values of float64."""


@dataclass(frozen=True, slots=True)
class RowsShape:
    """Rows that `lanes` lanes hold in registers, by `flight` reads of 16 bytes; a lane has parts of `rows` rows."""

    lanes: int
    rows: int
    flight: int
    threads: int = 128

    @property
    def most(self) -> int:
        """Reads of 16 bytes that a row may have."""
        return self.lanes * self.flight


@dataclass(frozen=True, slots=True)
class SpanShape:
    """Spans of `lanes` lanes, `spans` of them one after another and that `rounds` times, by `flight` reads of 16 bytes,
    or of as many elements where not all spans begin and end at multiples of 16 bytes (`vectors`)."""

    lanes: int
    spans: int
    vectors: bool
    flight: int = 4
    rounds: int = 1
    threads: int = 128

    @property
    def per_block(self) -> int:
        """Spans of a block."""
        return self.threads // self.lanes * self.spans * self.rounds


@dataclass(frozen=True, slots=True)
class StreamShape:
    """Warps that take segments as one stream, by `reads` reads of 16 bytes a lane; a lane reads `ends` edges of
    segments ahead. What the stream leaves is added up by `lanes` lanes with `flight` reads in flight. `blocks` find
    room on a multiprocessor, and there are about `waves` times as many as find room on the GPU. A warp has at least
    `least` elements and segments: it looks for its first segment by some reads one after another."""

    reads: int
    ends: int
    lanes: int
    flight: int
    threads: int = 128
    blocks: int = 6
    waves: int = 1
    least: int = 1 << 12

    def shared(self, dtype: DType) -> int:
        """Bytes of shared memory of a block (`Stream::BYTES` of include/grouped_stream.cuh for each warp)."""
        each = self.reads * lanes_of(dtype)
        planes = 2 if dtype.itemsize == 8 else 1
        return self.threads // 32 * -(-(2 * self.reads * 512 + planes * (33 * (each + 1) + 1) * 8) // 128) * 128


@dataclass(frozen=True, slots=True)
class ColumnsShape:
    """Blocks of `threads` threads, each with `flight` reads in flight. There are at most about so many `blocks`, of
    which each has at least `least` reads of a thread, unless one row of threads alone takes more."""

    flight: int
    threads: int = 256
    blocks: int = 264
    least: int = 64


@dataclass(frozen=True, slots=True)
class PartsShape:
    """Warps with `flight` reads in flight, each with a part of a long row: of at least `least` elements and at most
    `most`. There are about `enough` parts for each multiprocessor where rows are long enough."""

    flight: int = 4
    least: int = 1 << 12
    most: int = 1 << 17
    enough: int = 64
    threads: int = 128


@dataclass(frozen=True, slots=True)
class GroupedShapes:
    """All choices for one dtype and one kind of sums. Rows that begin and end at multiples of 16 bytes are
    `aligned`."""

    aligned: tuple[tuple[int, SpanShape], ...]  # up to so many reads of 16 bytes a row
    many: SpanShape  # longer ones, where there are enough for all warps
    few: SpanShape
    anywhere: tuple[tuple[float, SpanShape], ...]  # up to so many elements a span on average
    columns: ColumnsShape
    short_columns: int = 128  # threads; 0 where there are none
    parts: PartsShape = PartsShape()
    closing: int = 256  # threads of a block that puts the parts of some values together
    pairs: int = 4  # reads in flight of rows of two elements; 0 where spans serve them
    rows: tuple[RowsShape, ...] = ()
    streams: tuple[tuple[float, StreamShape], ...] = ()  # up to so many elements a segment on average

    def spans(self, mean: float) -> SpanShape:
        """The shape for spans of so many elements on average, at any address."""
        return next(shape for most, shape in self.anywhere if mean <= most)

    def stream(self, mean: float) -> StreamShape | None:
        """The shape for segments of so many elements on average; None where they are spans."""
        return next((shape for most, shape in self.streams if mean <= most), None)

    def all_spans(self) -> list[SpanShape]:
        """Every shape of spans."""
        return [shape for _, shape in (*self.aligned, *self.anywhere)] + [self.many, self.few]


def _vectors(*rows: tuple[int, int, int, int, int]) -> tuple[tuple[int, SpanShape], ...]:
    return tuple((most, SpanShape(lanes, spans, True, flight, rounds)) for most, lanes, spans, flight, rounds in rows)


def _elements(*rows: tuple[float, int, int, int, int]) -> tuple[tuple[float, SpanShape], ...]:
    return tuple((most, SpanShape(lanes, spans, False, flight, rounds)) for most, lanes, spans, flight, rounds in rows)


_ANY = float("inf")
_MANY, _FEW = SpanShape(16, 2, vectors=True, flight=8), SpanShape(32, 1, vectors=True)

# most reads of 16 bytes a row, lanes, spans, flight, rounds
_ALIGNED = {
    "float32": _vectors(
        (1, 1, 1, 1, 2), (2, 1, 1, 2, 2), (4, 1, 1, 4, 1), (8, 2, 2, 4, 1), (16, 4, 4, 4, 1), (32, 8, 4, 4, 1),
        (160, 4, 4, 4, 1),
    ),
    "float64": _vectors(
        (1, 1, 1, 1, 2), (2, 1, 1, 2, 2), (4, 1, 1, 4, 1), (8, 2, 2, 4, 1), (16, 2, 2, 8, 1), (80, 4, 4, 4, 1),
        (160, 8, 4, 8, 1),
    ),
}  # fmt: skip
_ROWS = tuple(  # lanes, rows, flight
    RowsShape(*row)
    for row in (
        *((1, 4, 1), (1, 2, 2), (2, 4, 2), (4, 4, 2), (4, 2, 4), (8, 2, 4), (16, 2, 4), (16, 1, 8), (32, 1, 8)),
    )
)

# most elements a span, lanes, spans, flight, rounds
_OF_VALUES = {
    "float32": _elements((8, 1, 1, 1, 1), (48, 4, 4, 2, 1), (200, 8, 4, 2, 1), (600, 32, 4, 2, 1), (_ANY, 32, 1, 4, 1)),
    "float64": _elements((8, 1, 1, 2, 1), (48, 2, 2, 4, 1), (200, 8, 4, 4, 1), (320, 16, 1, 4, 1), (_ANY, 32, 1, 8, 1)),
}
_OF_SQUARES = {
    "float32": _elements((8, 1, 1, 1, 1), (48, 4, 4, 2, 1), (200, 8, 4, 2, 1), (600, 32, 4, 2, 1), (_ANY, 32, 1, 4, 1)),
    "float64": _elements((8, 1, 1, 2, 2), (48, 2, 2, 4, 1), (200, 8, 4, 4, 1), (600, 32, 8, 2, 1), (_ANY, 32, 1, 4, 1)),
}
_OF_MOMENTS = {
    "float32": _elements(
        (8, 1, 1, 1, 2), (48, 4, 4, 2, 1), (200, 8, 4, 2, 1), (600, 32, 4, 2, 1), (2000, 32, 1, 2, 1),
        (_ANY, 32, 1, 4, 1),
    ),
    "float64": _OF_SQUARES["float64"],
}  # fmt: skip

# Of products a lane reads two arrays.
_ALIGNED_PRODUCTS = _vectors((2, 1, 1, 2, 1), (4, 1, 1, 4, 1), (8, 2, 2, 2, 1), (32, 8, 2, 2, 1))
_OF_PRODUCTS = {
    "float32": _elements((8, 1, 1, 1, 2), (48, 4, 4, 1, 1), (200, 8, 4, 1, 1), (600, 32, 4, 1, 1), (_ANY, 32, 1, 2, 1)),
    "float64": _elements((8, 1, 1, 1, 2), (48, 4, 4, 2, 1), (200, 8, 2, 4, 1), (600, 32, 4, 2, 1), (_ANY, 32, 1, 2, 1)),
}

_STREAMS = {
    "float32": (
        (6, StreamShape(4, 5, 8, 2, blocks=5, waves=4)),
        (24, StreamShape(4, 2, 8, 2, blocks=5)),
        (100, StreamShape(4, 1, 32, 4, blocks=6, waves=8)),
    ),
    "float64": (
        (6, StreamShape(4, 3, 8, 2, blocks=5)),
        (20, StreamShape(4, 1, 8, 2, blocks=4)),
        (150, StreamShape(4, 1, 32, 4, blocks=5, waves=16)),
    ),
}


def _shapes(dtype: str, kind: SumKind) -> GroupedShapes:
    if kind is SumKind.VALUES:
        return GroupedShapes((), _FEW, _FEW, _OF_VALUES[dtype], ColumnsShape(12), rows=_ROWS, streams=_STREAMS[dtype])
    if kind is SumKind.PRODUCTS:
        return GroupedShapes(
            _ALIGNED_PRODUCTS, SpanShape(16, 1, vectors=True), _FEW, _OF_PRODUCTS[dtype], ColumnsShape(4),
            short_columns=0, pairs=0,
        )  # fmt: skip
    anywhere, flight = (_OF_SQUARES, 12) if kind is SumKind.SQUARES else (_OF_MOMENTS, 8 if dtype == "float32" else 12)
    return GroupedShapes(_ALIGNED[dtype], _MANY, _FEW, anywhere[dtype], ColumnsShape(flight))


SHAPES: Mapping[tuple[str, SumKind], GroupedShapes] = MappingProxyType(
    {(dtype, kind): _shapes(dtype, kind) for dtype in FLOATS for kind in KINDS}
)


def lanes_of(dtype: DType) -> int:
    """Elements in 16 bytes."""
    return VECTOR_BYTES // dtype.itemsize


def part_bytes(dtype: DType, kind: SumKind) -> int:
    """Bytes of a part of a value: its sums, of two doubles each, and three words (`PlacesOfParts` of
    include/grouped_columns.cuh)."""
    return 16 * part_sums(dtype, kind) + 12


def part_sums(dtype: DType, kind: SumKind) -> int:
    """Sums of a part: of values or products, of squares, and of the errors of squares and products of float64."""
    squared = kind in {SumKind.SQUARES, SumKind.MOMENTS}
    return (kind is not SumKind.SQUARES) + squared + (kind is not SumKind.VALUES and dtype.itemsize == 8)


def rows_kernel(dtype: DType, shape: RowsShape) -> str:
    """The kernel of rows in registers, as a C++ name expression."""
    return f"rows<{element(dtype)}, {shape.lanes}, {shape.rows}, {shape.flight}, {shape.threads}>"


def pairs_kernel(dtype: DType, kind: SumKind, flight: int) -> str:
    """The kernel of rows of two elements: of sums and means, or of deviations."""
    return f"pairs<{element(dtype)}, {kind}, {flight}, 256>"


def stream_kernel(dtype: DType, shape: StreamShape, *, mean: bool) -> str:
    """The kernel of segments as one stream. Means take more registers, and so one block less finds room."""
    flags = f"{shape.ends}, {str(mean).lower()}"
    blocks = max(1, shape.blocks - mean)
    return f"streamed<{element(dtype)}, {shape.reads}, {flags}, {shape.threads}, {blocks}>"


def later_kernel(dtype: DType, shape: StreamShape) -> str:
    """The kernel of the segments that the stream leaves."""
    return f"streamed_later<{element(dtype)}, {shape.lanes}, {shape.flight}, {shape.threads}>"


def spans_kernel(dtype: DType, kind: SumKind, shape: SpanShape) -> str:
    """The kernel of spans."""
    flags = f"{shape.lanes}, {shape.spans}, {str(shape.vectors).lower()}, {shape.flight}, {shape.rounds}"
    return f"spans<{element(dtype)}, {kind}, {flags}, {shape.threads}>"


def columns_kernel(dtype: DType, kind: SumKind, shape: ColumnsShape, *, vectors: bool) -> str:
    """The kernel of columns."""
    return f"columns<{element(dtype)}, {kind}, {str(vectors).lower()}, {shape.flight}, {shape.threads}>"


def short_columns_kernel(dtype: DType, kind: SumKind, flight: int, threads: int, *, vectors: bool) -> str:
    """The kernel of columns of few rows."""
    return f"short_columns<{element(dtype)}, {kind}, {str(vectors).lower()}, {flight}, {threads}>"


def parts_kernel(dtype: DType, kind: SumKind, shape: PartsShape, *, vectors: bool) -> str:
    """The kernel of parts of rows."""
    return f"parts<{element(dtype)}, {kind}, {str(vectors).lower()}, {shape.flight}, {shape.threads}>"


def close_kernel(dtype: DType, kind: SumKind, threads: int) -> str:
    """The kernel that puts the parts of values together."""
    return f"close_parts<{element(dtype)}, {kind}, {threads}>"


def families(dtype: DType, kind: SumKind, shapes: GroupedShapes) -> Iterator[list[str]]:
    """The kernels that these shapes may launch, those that are compiled together in one list."""
    yield [spans_kernel(dtype, kind, shape) for shape in shapes.all_spans()]
    both = (False, True)
    yield [
        *(columns_kernel(dtype, kind, shapes.columns, vectors=vectors) for vectors in both),
        *(parts_kernel(dtype, kind, shapes.parts, vectors=vectors) for vectors in both),
        close_kernel(dtype, kind, shapes.closing),
        *(
            short_columns_kernel(dtype, kind, flight, shapes.short_columns, vectors=vectors)
            for flight, vectors in product(SHORT_COLUMNS if shapes.short_columns else (), both)
        ),
        *([pairs_kernel(dtype, kind, shapes.pairs)] if shapes.pairs and kind is not SumKind.SQUARES else []),
    ]
    if kind is SumKind.VALUES:
        yield [rows_kernel(dtype, shape) for shape in shapes.rows]
        streams = [shape for _, shape in shapes.streams]
        yield [
            *(stream_kernel(dtype, shape, mean=mean) for shape in streams for mean in both),
            *(later_kernel(dtype, shape) for shape in streams),
        ]


def unit_of(name: str) -> Unit:
    """The unit of one kernel: each is compiled when it is first used."""
    return Unit(_source_of(name), (name,))


def _source_of(name: str) -> Path:
    return STREAM_SOURCE if name.startswith("streamed") else SOURCE


def grouped_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    for (name, kind), shapes in SHAPES.items():
        for family in families(DTYPES[name], kind, shapes):
            if family:
                yield Unit(_source_of(family[0]), tuple(dict.fromkeys(family)))
