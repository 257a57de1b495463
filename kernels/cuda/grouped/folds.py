"""Reductions of many values on a GPU that select, test or count elements, or add integers or products of two arrays of
integers: the words of each value.

The kernels are those of `../sources/grouped_folds.cu`. A value of many elements, or of few columns, is folded in parts,
which further launches merge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, Other, RowsLayout
from warpfold.kernels.dtypes import DTYPES, DType, Kind

SOURCE = Path(__file__).parent.parent / "sources" / "grouped_folds.cu"

COUNT_NAN, DOT = "CountNan", "Dot"
"""The reduction that counts NaNs, which others leave out, and the one of two arrays."""

_ACCUMULATOR_BYTES = 32
"""More than any accumulator takes."""


@dataclass(frozen=True, slots=True)
class FoldShape:
    """Blocks of `threads` threads. Values of up to `short` elements on average have `lanes` lanes each, others a warp.
    Values are cut into parts while there are fewer than `enough` warps, and a part has at least `part` elements; a
    segment of more than `longest` has launches of its own. A launch merges up to `merged` parts a warp."""

    threads: int = 256
    lanes: int = 4
    short: int = 48
    enough: int = 1 << 13
    part: int = 1 << 12
    longest: int = 1 << 17
    merged: int = 1 << 10


SHAPE = FoldShape()


def kept_words(reduction: str, dtype: DType, other: DType | None = None) -> int:
    """Words of 64 bits that a reduction leaves of a value (include/integers.cuh)."""
    if other is not None:
        return 3 if max(dtype.itemsize, other.itemsize) == 8 else 2
    if reduction not in ("Sum", "Norm1", "SumSquares"):
        return 1
    if dtype.itemsize <= 2:
        return 2 if reduction == "SumSquares" else 1
    return 3 if reduction == "SumSquares" and dtype.itemsize == 8 else 2


def reductions_of(dtype: DType) -> tuple[str, ...]:
    """The reductions to many values that there are of a dtype."""
    if dtype.kind is Kind.BOOL:
        return ("ArgMin", "ArgMax", "CountNonzero")
    selecting = ("Min", "Max", "NormInf", "ArgMin", "ArgMax", "CountNonzero")
    if dtype.is_float:
        return (*selecting, COUNT_NAN)
    return (*selecting, "Sum", "Norm1", "SumSquares")


@dataclass(frozen=True, slots=True)
class _Names:
    """The kernels of one reduction of one dtype, or of two, as C++ name expressions."""

    reduction: str
    dtype: DType
    shape: FoldShape
    other: DType | None = None

    @property
    def _type(self) -> str:
        dtypes = (self.dtype,) if self.other is None else (self.dtype, self.other)
        return f"{self.reduction}<{', '.join(map(element, dtypes))}>"

    @property
    def kept(self) -> int:
        return kept_words(self.reduction, self.dtype, self.other)

    def spans(self, lanes: int) -> str:
        return f"fold_spans<{self._type}, {lanes}, {self.kept}, {self.shape.threads}>"

    def columns(self) -> str:
        return f"fold_columns<{self._type}, {self.kept}, {self.shape.threads}>"

    def merge(self) -> str:
        return f"merge_parts<{self._type}, {self.kept}, {self.shape.threads}>"

    def all(self) -> tuple[str, ...]:
        return (self.spans(self.shape.lanes), self.spans(32), self.columns(), self.merge())


def fold_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    for dtype in DTYPES.values():
        names = [_Names(reduction, dtype, SHAPE) for reduction in reductions_of(dtype)]
        yield Unit(SOURCE, tuple(name for row in names for name in row.all()))
        if not dtype.is_float:  # of two arrays each dtype with itself and with int64
            others = dict.fromkeys((dtype, DTYPES["int64"]))
            pairs = [_Names(DOT, dtype, SHAPE, other) for other in others]
            yield Unit(SOURCE, tuple(name for row in pairs for name in row.all()))


@dataclass(frozen=True, slots=True)
class _Arrays:
    """What is reduced: one array, or two, of which `other` is 0 otherwise."""

    array: Any
    other: Any

    def between(self, begin: int, end: int) -> "_Arrays":
        """Some neighbouring elements."""
        other = self.other if isinstance(self.other, np.uint64) else self.other[begin:end]
        return _Arrays(self.array[begin:end], other)


class GroupedFolds:
    """The words that `reduction`, a template of include/reductions.cuh or COUNT_NAN, leaves of the values of a layout
    of `array`, a CuPy array of `dtype` of one dimension; DOT is of products with the elements of `other`. With
    `omit_nan` elements that are NaN are left out. To be used while `gpu.active()`. `kernel` names what the shape
    chose."""

    def __init__(
        self,
        gpu: Gpu,
        array: Any,
        layout: Layout,
        dtype: DType,
        reduction: str,
        *,
        omit_nan: bool = False,
        shape: FoldShape = SHAPE,
        other: Other | None = None,
    ) -> None:
        import cupy

        self._gpu, self._layout, self._shape = gpu, layout, shape
        self._arrays = _Arrays(array, np.uint64(0) if other is None else other.array)
        self._names = _Names(reduction, dtype, shape, None if other is None else other.dtype)
        self._omit_nan = np.uint32(omit_nan)
        self._values = layout.count
        self._words = cupy.empty(self._values * self._names.kept, dtype=np.uint64)
        self.kernel = ""

    def words(self) -> NDArray[np.uint64]:
        """The words of all values, shape (values, words); waits for the work."""
        words: NDArray[np.uint64] = self._words.get().reshape(self._values, self._names.kept)
        return words

    def start(self) -> None:
        """Put the launches on the GPU's stream."""
        layout = self._layout
        if not self._values:
            return
        if isinstance(layout, RowsLayout):
            self._start_rows(self._arrays, layout, self._words)
        elif isinstance(layout, ColumnsLayout):
            self._start_columns(layout)
        else:
            self._start_offsets(layout)

    def _start_rows(self, arrays: "_Arrays", layout: RowsLayout, words: Any) -> None:
        import cupy

        shape, even = self._shape, layout.total == layout.count * layout.length
        wanted = min(-(-shape.enough // layout.count), layout.length // shape.part) if even else 1
        part = -(-layout.length // max(1, wanted))
        parts = -(-layout.length // part)
        stored = cupy.empty(layout.count * parts * _ACCUMULATOR_BYTES, dtype=np.uint8) if parts > 1 else None
        self.kernel = "rows" if parts == 1 else "rows_in_parts"
        sizes = (layout.count * parts, layout.total, layout.length, part, part, parts)
        self._spans(arrays, None, layout.length, sizes, words, stored)
        if stored is not None:
            self._merge(stored, layout.count, (parts, 1), parts, words)

    def _start_offsets(self, layout: OffsetsLayout) -> None:
        lengths = np.diff(layout.host)
        giants = np.flatnonzero(lengths > self._shape.longest)
        mean = (int(lengths.sum()) - int(lengths[giants].sum())) / max(1, lengths.size - giants.size)
        sizes = (lengths.size, layout.total, 0, 0, self._shape.longest, 1)
        self._spans(self._arrays, layout.offsets, mean, sizes, self._words, None)
        kept = self._names.kept
        for number in giants.tolist():
            begin, end = int(layout.host[number]), int(layout.host[number + 1])
            words = self._words[number * kept : (number + 1) * kept]
            self._start_rows(self._arrays.between(begin, end), RowsLayout(1, end - begin, end - begin), words)
        self.kernel = "segments"

    def _spans(  # noqa: PLR0917
        self, arrays: "_Arrays", offsets: Any, mean: float, sizes: tuple[int, int, int, int, int, int], words: Any,
        stored: Any,
    ) -> None:  # fmt: skip
        count, total, length, part, longest, parts = sizes
        lanes = self._shape.lanes if mean <= self._shape.short else 32
        name, threads = self._names.spans(lanes), self._shape.threads
        none = np.uint64(0)
        self._run(
            name, -(-count * lanes // threads),
            (arrays.array, arrays.other, none if offsets is None else offsets, np.uint64(count), np.uint64(total),
             np.uint64(length), np.uint64(part), np.uint64(longest), np.uint32(parts), self._omit_nan, words,
             none if stored is None else stored),
        )  # fmt: skip

    def _start_columns(self, layout: ColumnsLayout) -> None:
        import cupy

        shape, width, height = self._shape, layout.width, layout.height
        bands = max(1, shape.threads // width) if width < shape.threads else 1
        tiles = 1 if width < shape.threads else -(-width // shape.threads)
        stripes = max(1, min(-(-shape.enough // (tiles * shape.threads // 32)), height // (64 * bands)))
        rows = -(-height // stripes)
        stripes = -(-height // rows)
        parts = stripes * bands
        stored = cupy.empty(parts * width * _ACCUMULATOR_BYTES, dtype=np.uint8) if parts > 1 else None
        none = np.uint64(0)
        self.kernel = "columns" if parts == 1 else "columns_in_parts"
        self._run(
            self._names.columns(), tiles * stripes,
            (self._arrays.array, self._arrays.other, np.uint32(width), np.uint64(height), np.uint64(rows),
             self._omit_nan, self._words, none if stored is None else stored),
        )  # fmt: skip
        if stored is not None:
            self._merge(stored, width, (1, width), parts, self._words)

    def _merge(self, stored: Any, values: int, lies: tuple[int, int], parts: int, words: Any) -> None:
        import cupy

        apart, step = lies
        while True:
            groups = -(-parts // self._shape.merged)
            more = cupy.empty(values * groups * _ACCUMULATOR_BYTES, dtype=np.uint8) if groups > 1 else None
            self._run(
                self._names.merge(), -(-values * groups * 32 // self._shape.threads),
                (stored, np.uint64(values), np.uint64(apart), np.uint64(step), np.uint64(parts), np.uint32(groups),
                 words, np.uint64(0) if more is None else more),
            )  # fmt: skip
            if more is None:
                return
            stored, parts, apart, step = more, groups, groups, 1

    def _run(self, name: str, grid: int, args: tuple[Any, ...]) -> None:
        # Every kernel is compiled when it is first used.
        self._gpu.kernel(Unit(SOURCE, (name,)), name)(grid, self._shape.threads, args)
