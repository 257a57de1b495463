"""How the kernels of `../sources/keyed.cu` are launched: plain values, kept apart from what they tune."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch_shape import WARP
from warpfold.kernels.cuda.grouped.shapes import FLOATS, GroupedShapes
from warpfold.kernels.cuda.grouped.shapes import SHAPES as GROUPED
from warpfold.kernels.dtypes import DTYPES, DType


def _of_sorted_keys() -> Mapping[str, GroupedShapes]:
    return {name: GROUPED[name, SumKind.VALUES] for name in FLOATS}


SOURCE = Path(__file__).parent.parent / "sources" / "keyed.cu"

TOP_BITS, APART = 42, 40
"""An element is below 2**TOP_BITS units of the highest level; the levels of floats are APART places apart
(include/keyed_levels.cuh)."""

MOST_SPAN = (1 << 21) - (1 << 15)
"""Elements of a block: their sum is below 2**63 units."""

MOST_LEVELS = 3
MOST_LISTED = 1 << 16
SAMPLES = 1 << 16
PLACE_BINS = 272
"""The counts of a sample (include/keyed_sample.cuh)."""

LEAST_PLACE, MOST_PLACE = -1074 + MOST_LEVELS * APART, 960
"""Where the unit of the highest level may lie, so that all anchors are normal float64 numbers."""


PLANES_APART = 50
LEAST_PLACE_OF_STREAM, MOST_PLACE_OF_STREAM = -1000, 850
"""The same for the planes of a stream (include/keyed_stream.cuh)."""


@dataclass(frozen=True, slots=True)
class FewShape:
    """Blocks of `threads` threads with `reads` times four rows in flight, of which `blocks` find room on a
    multiprocessor."""

    reads: int
    threads: int
    blocks: int


@dataclass(frozen=True, slots=True)
class PartShape:
    """Blocks of `threads` threads with `rows` rows each, of which `blocks` find room on a multiprocessor."""

    rows: int
    threads: int
    blocks: int

    @property
    def tile(self) -> int:
        """Rows of a block."""
        return self.rows * self.threads

    def shared(self, itemsize: int) -> int:
        """Bytes of shared memory of a block that puts elements of so many bytes into buckets."""
        return self.tile * (4 + itemsize) + 3 * 4 * MOST_BUCKETS


@dataclass(frozen=True, slots=True)
class SortedShape:
    """Blocks of `threads` threads with `reads` times four rows each; `blocks` of them find room on a multiprocessor."""

    reads: int
    threads: int
    blocks: int

    @property
    def tile(self) -> int:
        """Rows of a block."""
        return 4 * self.reads * self.threads

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.threads // WARP

    @property
    def heads(self) -> int:
        """Bytes of shared memory for the heads of a tile (`HeadsOfTile` in include/keyed_tile.cuh)."""
        small = 4 * (self.warps + self.tile // 32 + 2) + 2 * self.tile
        return 8 + -(-small // 8) * 8


@dataclass(frozen=True, slots=True)
class KeyStreamShape(SortedShape):
    """How differences of prefix sums are groups."""

    def shared(self, key: int, planes: int) -> int:
        """Bytes of shared memory of a block, for keys of so many bytes (`StreamTile` in include/keyed_stream.cuh)."""
        return self.heads + key * self.tile + 8 * planes * (self.tile + self.threads + self.warps + 1)


@dataclass(frozen=True, slots=True)
class SerialShape(SortedShape):
    """How threads add up rows one after another (include/keyed_stream_serial.cuh)."""

    def shared(self, key: int) -> int:
        """Bytes of shared memory of a block, for keys of so many bytes (`SerialTile`, and the groups of a tile)."""
        return self.heads + 8 * (self.warps + 1) + (key + 4) * self.tile


MOST_BUCKETS = 256
"""Buckets of one pass (include/keyed_partition.cuh)."""

COARSE_BITS = 7
MOST_FINE = 1 << 15
"""Buckets of both passes: the first makes groups of 2**COARSE_BITS of them."""

START_THREADS = 1024
LISTED_THREADS = 64
MOST_READ_AGAIN = 1 << 14
"""Groups of a stream that may have elements which its units do not hold."""

WORDS = 78
"""Words of 64 bits that a total takes (include/exact_total.cuh)."""


@dataclass(frozen=True, slots=True)
class KeyedShapes:
    """All choices; where there are several, one for each number of levels. A bucket has 2**bucket_bits groups. Rows
    with elements or keys of 8 bytes are put into buckets by `wide_part`, and sorted keys of 4 bytes with one level are
    added up by `narrow_runs`. Keys that look sorted are added up as runs
    while a group has at least `shortest_runs` rows on average, and as a stream if it has fewer than
    `longest_streamed`; `sorted` says how rows are added up that were sorted."""

    few: tuple[FewShape, ...] = (FewShape(2, 1024, 1), FewShape(1, 1024, 1), FewShape(1, 768, 1))
    most_copies: int = 5
    narrow_runs: FewShape = FewShape(2, 224, 4)
    runs: tuple[FewShape, ...] = (FewShape(2, 256, 2), FewShape(2, 256, 2), FewShape(2, 256, 2))
    shortest_runs: float = 1.5
    longest_streamed: int = 128
    stream: KeyStreamShape = KeyStreamShape(4, 256, 3)
    other_stream: KeyStreamShape = KeyStreamShape(2, 448, 2)
    wide_stream: KeyStreamShape = KeyStreamShape(2, 256, 3)
    serial: SerialShape | None = SerialShape(4, 512, 2)
    wide_serial: SerialShape | None = SerialShape(3, 512, 2)
    size_threads: int = 512
    size_blocks: int = 4
    part: PartShape = PartShape(12, 512, 2)
    wide_part: PartShape = PartShape(8, 512, 2)
    sums: tuple[PartShape, ...] = (PartShape(8, 1024, 1), PartShape(4, 1024, 1), PartShape(4, 768, 1))
    bucket_bits: tuple[int, ...] = (14, 13, 12)
    sorted: Mapping[str, GroupedShapes] = field(default_factory=_of_sorted_keys)

    def runs_of(self, key: DType, levels: int) -> FewShape:
        """How sorted keys are added up."""
        return self.narrow_runs if levels == 1 and key.itemsize == 4 else self.runs[levels - 1]

    def part_of(self, key: DType, dtype: DType) -> PartShape:
        """How rows of such keys and elements are put into buckets."""
        return self.wide_part if max(key.itemsize, dtype.itemsize) == 8 else self.part

    def serial_of(self, key: DType, dtype: DType, planes: int, *, mean: bool) -> SerialShape | None:
        """How sorted keys of many groups are added up by threads row after row; None where they are not."""
        if mean or planes != 1 or dtype.itemsize != 4:
            return None
        return self.serial if key.itemsize == 4 else self.wide_serial

    def stream_of(self, key: DType, planes: int, *, mean: bool) -> KeyStreamShape:
        """How sorted keys of many groups are added up."""
        if planes == 2:
            return self.wide_stream
        return self.stream if key.itemsize == 4 and not mean else self.other_stream


SHAPES = KeyedShapes()


VALUES = ("float32", "float64", "int32", "int64", "uint64")
"""The dtype that holds elements: int32 for narrow integers and truth values, int64 for uint32."""

SAMPLED_KEYS = ("int32", "uint32", "int64", "uint64")
"""The dtype that holds keys. All kernels but that of samples take differences of keys, which no sign changes."""


def held_key(dtype: DType) -> DType:
    """The dtype that holds keys of a dtype."""
    return dtype if dtype.name in SAMPLED_KEYS else DTYPES["int32"]


def held_value(dtype: DType) -> DType:
    """The dtype that holds elements of a dtype."""
    if dtype.name in VALUES:
        return dtype
    return DTYPES["int64" if dtype.name == "uint32" else "int32"]


def levels_of(dtype: DType) -> tuple[int, ...]:
    """The numbers of levels that sums of a dtype may have."""
    if dtype.is_float:
        return (2, 3) if dtype.itemsize == 8 else (1, 2, 3)
    return (2,) if dtype.itemsize == 8 else (1,)


def group_bytes(levels: int) -> int:
    """Bytes of shared memory that a group takes: two words a level, and a count."""
    return 4 * (2 * levels + 1)


def _width(dtype: DType) -> int:
    return 64 if dtype.itemsize == 8 else 32


def _key(dtype: DType) -> str:
    return f"int{_width(dtype)}"


def sample_kernel(key: DType, dtype: DType) -> str:
    """The kernel that looks at a sample of the rows, as a C++ name expression. Of integers it looks at the keys."""
    return f"sample<{key.name}, {dtype.name if dtype.is_float else 'int32'}>"


def few_kernel(key: DType, dtype: DType, levels: int, shape: FewShape) -> str:
    """The kernel of groups that find room in shared memory."""
    return f"few_groups<{_key(key)}, {dtype.name}, {levels}, {shape.reads}, {shape.threads}, {shape.blocks}>"


def runs_kernel(key: DType, dtype: DType, levels: int, shape: FewShape) -> str:
    """The kernel of sorted keys."""
    return f"run_sums<{_key(key)}, {dtype.name}, {levels}, {shape.reads}, {shape.threads}, {shape.blocks}>"


def stream_kernels(key: DType, dtype: DType, planes: int, shapes: KeyedShapes, *, mean: bool) -> tuple[str, ...]:
    """The kernels of sorted keys of many groups, in the order of their launches."""
    shape = shapes.stream_of(key, planes, mean=mean)
    serial = shapes.serial_of(key, dtype, planes, mean=mean)
    keys, of = f"uint{_width(key)}", f"{str(mean).lower()}"
    sums = f"stream_sums<{keys}, {dtype.name}, {planes}, {of}, {shape.reads}, {shape.threads}, {shape.blocks}>"
    if serial is not None:
        of_serial = f"{serial.reads}, {serial.threads}, {serial.blocks}"
        sums = f"serial_sums<{keys}, {dtype.name}, {of_serial}>"
    return (
        sums,
        f"stream_joins<{planes}>",
        f"stream_ends<{keys}, {dtype.name}, {planes}, {of}>",
        f"stream_again<{keys}, {dtype.name}, {of}>",
    )


def planes_of(dtype: DType) -> tuple[int, ...]:
    """The numbers of planes that a stream of a float dtype may have."""
    return (2,) if dtype.itemsize == 8 else (1, 2)


def sizes_kernel(key: DType, threads: int) -> str:
    """The kernel that counts the rows of buckets."""
    return f"bucket_sizes<{_key(key)}, {threads}>"


def starts_kernel() -> str:
    """The kernel that says where buckets begin."""
    return f"bucket_starts<{START_THREADS}>"


def part_kernel(key: DType, dtype: DType, shape: PartShape) -> str:
    """The kernel that puts rows into buckets, whatever the bits of their elements mean."""
    return f"into_buckets<{_key(key)}, uint{_width(dtype)}, {shape.rows}, {shape.threads}, {shape.blocks}>"


def sums_kernel(dtype: DType, levels: int, shape: PartShape) -> str:
    """The kernel that adds up buckets."""
    return f"bucket_sums<{dtype.name}, {levels}, {shape.rows}, {shape.threads}, {shape.blocks}>"


def values_kernel(dtype: DType, result: DType, levels: int) -> str:
    """The kernel that rounds."""
    return f"group_values<{dtype.name}, {result.name}, {levels}>"


def integers_kernel(dtype: DType, levels: int) -> str:
    """The kernel that puts the sums of integers together."""
    return f"group_integers<{dtype.name}, {levels}>"


def zeros_kernel(key: DType, dtype: DType) -> str:
    """The kernel that looks for elements other than −0."""
    return f"other_than_zero<{_key(key)}, {dtype.name}>"


def least_kernel(key: DType, dtype: DType) -> str:
    """The kernel that finds the least element of each group."""
    return f"least_orders<{_key(key)}, {dtype.name}, int{_width(dtype)}>"


def rows_kernel(key: DType, dtype: DType) -> str:
    """The kernel that finds the first row of each group with its least element."""
    return f"first_rows<{_key(key)}, {dtype.name}, int{_width(dtype)}>"


SQUARE_PARTS, WIDE_SQUARES = "square_parts", "wide_squares"
"""The kernels that make two float64 of the square of each, and one of that of each float32."""


def squares_unit() -> Unit:
    """The unit of these."""
    return Unit(SOURCE.parent / "keyed_squares.cu", (SQUARE_PARTS, WIDE_SQUARES))


def listed_kernels(dtype: DType, levels: int) -> tuple[str, str]:
    """The kernels that add listed elements to totals, and round these."""
    return f"listed_sums<{LISTED_THREADS}>", f"listed_values<{dtype.name}, {levels}>"


def families() -> Iterator[list[str]]:
    """The kernels that may be launched, those of one kind together; first those of float32 by int32."""
    keys = tuple(DTYPES[name] for name in ("int32", "int64"))
    for name in VALUES:
        dtype = DTYPES[name]
        kinds = levels_of(dtype)
        if name in ("float32", "float64", "int32"):
            yield [sample_kernel(DTYPES[key], dtype) for key in SAMPLED_KEYS]
        if name in ("float32", "float64"):
            yield [part_kernel(key, dtype, SHAPES.part_of(key, dtype)) for key in keys]
            yield [zeros_kernel(key, dtype) for key in keys]
            yield [listed_kernels(dtype, levels)[1] for levels in kinds]
            for mean in (False, True):
                streams = [
                    stream_kernels(key, dtype, planes, SHAPES, mean=mean) for planes in planes_of(dtype) for key in keys
                ]
                yield list(dict.fromkeys(name for names in streams for name in names if "joins" not in name))
        for key in keys:
            yield [few_kernel(key, dtype, levels, SHAPES.few[levels - 1]) for levels in kinds]
            yield [runs_kernel(key, dtype, levels, SHAPES.runs_of(key, levels)) for levels in kinds]
        yield [sums_kernel(dtype, levels, SHAPES.sums[levels - 1]) for levels in kinds]
        yield [kernel(key, dtype) for key in keys for kernel in (least_kernel, rows_kernel)]
        result = dtype if dtype.is_float else DTYPES["float64"]
        yield [values_kernel(dtype, result, levels) for levels in kinds]
        if not dtype.is_float:
            yield [integers_kernel(dtype, levels) for levels in kinds]
    listed = listed_kernels(DTYPES["float32"], 1)[0]
    joins = (f"stream_joins<{planes}>" for planes in (1, 2))
    yield [starts_kernel(), listed, *joins, *(sizes_kernel(key, SHAPES.size_threads) for key in keys)]


def unit_of(name: str) -> Unit:
    """The unit of one kernel: each is compiled when it is first used."""
    return Unit(SOURCE, (name,))


def keyed_units() -> tuple[Unit, ...]:
    """All units, for the compile matrix."""
    return (*(Unit(SOURCE, tuple(kind)) for kind in families()), squares_unit())
