"""How the kernels of `../sources/grouped.cu` are launched: plain values, kept apart from what they tune."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.dtypes import DTYPES, DType

_SOURCES = Path(__file__).parent.parent / "sources"
SOURCE, STREAM_SOURCE = _SOURCES / "grouped.cu", _SOURCES / "grouped_stream.cu"

FLOATS = ("float32", "float64")

LEVELS = {"float32": 2, "float64": 3}
LEVELS_OF_PARTS = 5
"""The doubles that a part of a value, or of several such parts, leaves (include/grouped_window.cuh)."""

WORDS = 78
"""Words of 64 bits that a total takes (include/exact_total.cuh)."""

SPAN_BITS = 17
COLUMN_BITS = 17
"""Fewer than 2 to the power of these many elements of a value are added up in one window."""


@dataclass(frozen=True, slots=True)
class RowsShape:
    """Rows that `lanes` lanes hold in registers, by `flight` reads of 16 bytes; a lane has parts of `rows` rows."""

    lanes: int
    rows: int
    flight: int
    threads: int = 256

    @property
    def most(self) -> int:
        """Reads of 16 bytes that a row may have."""
        return self.lanes * self.flight


@dataclass(frozen=True, slots=True)
class SpanShape:
    """Spans of `lanes` lanes each, which have `flight` times 16 bytes in flight, read as `vectors` or by elements."""

    lanes: int
    flight: int
    vectors: bool
    threads: int = 256


@dataclass(frozen=True, slots=True)
class StreamShape:
    """Warps that take segments as one stream, by `reads` reads of 16 bytes a lane; a lane reads `ends` edges of
    segments ahead. `lanes` and `flight` are those of a SpanShape, for data of too many exponents. `blocks` find room on
    a multiprocessor, and there are about `waves` times as many as find room on the GPU. A warp has at least `least`
    elements and segments: it looks for its first segment by some reads one after another."""

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
        planes = LEVELS[dtype.name] - 1
        return self.threads // 32 * -(-(2 * self.reads * 512 + planes * (33 * (each + 1) + 1) * 8) // 128) * 128


@dataclass(frozen=True, slots=True)
class ColumnsShape:
    """Blocks of `threads` threads, each with `flight` reads in flight. There are at most about so many `blocks`, of
    which each has at least `least` reads of a thread, unless one row of threads alone takes more."""

    flight: int
    threads: int = 256
    blocks: int = 1056
    least: int = 64


@dataclass(frozen=True, slots=True)
class GroupedShapes:
    """All choices of one dtype. Rows longer than those of the last of `rows` are spans: whole rows by `long`, or parts
    of `part` elements while there are fewer than `enough` rows."""

    rows: tuple[RowsShape, ...]
    long: SpanShape
    part: int
    enough: int
    short_spans: tuple[tuple[float, SpanShape], ...]  # up to so many elements a span on average
    long_spans: SpanShape
    columns: ColumnsShape  # the columns of wide arrays
    narrow: ColumnsShape
    of_parts: ColumnsShape
    short_columns: int = 128  # threads
    pairs: int = 4
    streams: tuple[tuple[float, StreamShape], ...] = ()  # up to so many elements a segment on average

    def spans(self, mean: float) -> SpanShape:
        """The shape for spans of so many elements on average, at any address."""
        return next((shape for most, shape in self.short_spans if mean <= most), self.long_spans)

    def stream(self, mean: float) -> StreamShape | None:
        """The shape for segments of so many elements on average; None where they are spans."""
        return next((shape for most, shape in self.streams if mean <= most), None)


SHORT_COLUMNS = (4, 8, 16)
"""Rows that a thread holds in registers."""

_ROWS = tuple(
    RowsShape(lanes, rows, flight, 128)
    for lanes, rows, flight in (
        (1, 4, 1),
        (1, 2, 2),
        (2, 4, 2),
        (4, 4, 2),
        (4, 2, 4),
        (8, 2, 4),
        (16, 2, 4),
        (16, 1, 8),
        (32, 1, 8),
    )
)

SHAPES = {
    "float32": GroupedShapes(
        rows=_ROWS,
        long=SpanShape(32, 4, vectors=True, threads=128),
        part=1 << 13,
        enough=1 << 14,
        short_spans=(
            (3, SpanShape(1, 1, vectors=False)),
            (12, SpanShape(2, 1, vectors=False)),
            (48, SpanShape(4, 2, vectors=False)),
            (400, SpanShape(8, 4, vectors=False)),
        ),
        long_spans=SpanShape(32, 4, vectors=False),
        columns=ColumnsShape(12, blocks=528),
        narrow=ColumnsShape(12, 128),
        of_parts=ColumnsShape(8),
        streams=(
            (6, StreamShape(4, 5, 8, 2, blocks=5, waves=4)),
            (24, StreamShape(4, 2, 8, 2, blocks=5)),
            (600, StreamShape(4, 1, 32, 4, blocks=6, waves=8)),
        ),
    ),
    "float64": GroupedShapes(
        rows=_ROWS,
        long=SpanShape(32, 4, vectors=True, threads=128),
        part=1 << 12,
        enough=1 << 14,
        short_spans=(
            (3, SpanShape(1, 2, vectors=False)),
            (12, SpanShape(2, 2, vectors=False)),
            (48, SpanShape(4, 4, vectors=False)),
            (320, SpanShape(16, 4, vectors=False, threads=64)),
        ),
        long_spans=SpanShape(32, 8, vectors=False),
        columns=ColumnsShape(8),
        narrow=ColumnsShape(8),
        of_parts=ColumnsShape(8),
        streams=(
            (6, StreamShape(4, 3, 8, 2, blocks=5)),
            (20, StreamShape(4, 1, 8, 2, blocks=4)),
            (150, StreamShape(4, 1, 32, 4, blocks=5, waves=16)),
        ),
    ),
}

WIDE_THREADS = 128
WIDE_BYTES = {"float32": 128, "float64": 328}
"""Shared memory a thread."""

WIDE_PART = 1 << 12
"""Elements that a block has at least of a value that is added up as a whole array is."""

WIDE_BLOCKS = {"float32": 8, "float64": 5}
"""Blocks of them that find room on a multiprocessor."""


def _element(dtype: DType, *, of_parts: bool) -> str:
    return "term" if of_parts else element(dtype)


def lanes_of(dtype: DType) -> int:
    """Elements in 16 bytes."""
    return VECTOR_BYTES // dtype.itemsize


def rows_kernel(dtype: DType, result: DType, shape: RowsShape) -> str:
    """The kernel of rows, as a C++ name expression."""
    return f"rows<{element(dtype)}, {element(result)}, {shape.lanes}, {shape.rows}, {shape.flight}, {shape.threads}>"


def pairs_kernel(dtype: DType, flight: int) -> str:
    """The kernel of rows of two elements."""
    return f"{'pairs' if dtype.name == 'float32' else 'double_pairs'}<{flight}, 256>"


def stream_kernel(dtype: DType, shape: StreamShape, *, mean: bool) -> str:
    """The kernel of segments as one stream. Means take more registers, and so one block less finds room."""
    flags = f"{shape.ends}, {str(mean).lower()}"
    blocks = max(1, shape.blocks - mean)
    return f"streamed<{element(dtype)}, {shape.reads}, {flags}, {shape.threads}, {blocks}>"


def later_kernel(dtype: DType, shape: StreamShape) -> str:
    """The kernel of the segments that the stream leaves."""
    return f"streamed_later<{element(dtype)}, {shape.lanes}, {shape.flight}, {shape.threads}>"


def spans_kernel(dtype: DType, result: DType, shape: SpanShape, *, parts: bool, of_parts: bool = False) -> str:
    """The kernel of spans, or with `of_parts` of the doubles that their parts left."""
    flags = f"{str(shape.vectors).lower()}, {shape.flight}, {str(parts).lower()}"
    return f"spans<{_element(dtype, of_parts=of_parts)}, {element(result)}, {shape.lanes}, {flags}, {shape.threads}>"


def short_columns_kernel(dtype: DType, height: int, threads: int) -> str | None:
    """The kernel of columns of `height` rows; None where no kernel serves so many rows."""
    flight = next((flight for flight in SHORT_COLUMNS if height <= flight), None)
    return None if flight is None else f"short_columns<{element(dtype)}, {flight}, {threads}>"


def columns_kernel(
    dtype: DType,
    result: DType,
    shape: ColumnsShape,
    *,
    vectors: bool,
    together: bool,
    parts: bool,
    of_parts: bool = False,
) -> str:
    """The kernel of columns, or of what their parts left."""
    flags = ", ".join(
        (str(vectors).lower(), str(shape.flight), str(together).lower(), str(parts).lower(), str(shape.threads))
    )
    return f"columns<{_element(dtype, of_parts=of_parts)}, {element(result)}, {flags}>"


def wide_kernel(dtype: DType) -> str:
    """The kernel of values that no window holds."""
    return f"wide_sums<{element(dtype)}, {WIDE_THREADS}, {WIDE_BYTES[dtype.name]}>"


def round_kernel(result: DType) -> str:
    """The kernel that rounds totals."""
    return f"round_totals<{element(result)}>"


def families(dtype: DType, shapes: GroupedShapes) -> Iterator[list[str]]:
    """The kernels that these shapes may launch for a dtype, those of one kind together."""
    wide = SHAPES["float64"]
    yield [rows_kernel(dtype, dtype, shape) for shape in shapes.rows]
    spans = [(shape, False) for _, shape in shapes.short_spans]
    spans += [(shape, parts) for shape in (shapes.long, shapes.long_spans) for parts in (False, True)]
    yield [spans_kernel(dtype, dtype, shape, parts=parts) for shape, parts in spans]
    of_parts = [(shape, False) for _, shape in wide.short_spans]
    of_parts += [(wide.long_spans, parts) for parts in (False, True)]
    yield [spans_kernel(dtype, dtype, shape, parts=parts, of_parts=True) for shape, parts in of_parts]
    for stage in (False, True):
        yield [
            columns_kernel(
                dtype,
                dtype,
                shapes.of_parts if stage else shapes.narrow if together else shapes.columns,
                vectors=vectors,
                together=together,
                parts=parts,
                of_parts=stage,
            )
            for vectors, together, parts in product((False, True), repeat=3)
        ]
    few = [short_columns_kernel(dtype, height, shapes.short_columns) for height in SHORT_COLUMNS]
    yield [wide_kernel(dtype), round_kernel(dtype), *(name for name in few if name is not None)]
    yield [pairs_kernel(dtype, shapes.pairs)]
    yield [
        *(stream_kernel(dtype, shape, mean=mean) for _, shape in shapes.streams for mean in (False, True)),
        *(later_kernel(dtype, shape) for _, shape in shapes.streams),
    ]


def unit_of(name: str) -> Unit:
    """The unit of one kernel: each is compiled when it is first used."""
    return Unit(_source_of(name), (name,))


def _source_of(name: str) -> Path:
    return STREAM_SOURCE if name.startswith(("streamed", "double_pairs")) else SOURCE


def grouped_units() -> tuple[Unit, ...]:
    """All units, for the compile matrix."""
    kinds = (kind for name in FLOATS for kind in families(DTYPES[name], SHAPES[name]))
    return tuple(Unit(_source_of(kind[0]), tuple(dict.fromkeys(kind))) for kind in kinds)
