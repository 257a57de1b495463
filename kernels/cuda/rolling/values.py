"""Values of windows of an array that lies on a GPU line after line: sums and means of one line in one pass, else as
differences of exact running sums, and the least keys of overlapping runs of blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.rolling.kernels import (
    COMMON_UNIT,
    ITEMS,
    MARKS,
    NONE,
    SCAN_THREADS,
    SCANNED,
    THREADS,
    WIDE,
    launch,
    of_dtype,
    rounded_to,
    scanned_windows,
    windows_unit,
)
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import INTEGER, Extreme, Finish, Op

NAN, POSITIVE, NEGATIVE, NOT_NEGATIVE_ZERO, NONZERO, INFINITE = range(6)
"""Marks of elements, as in include/windows.cuh."""

_BITS = 127
"""A sum and its sign have 128."""

_EXACT = 1 << 63

BLOCK = 32
"""Elements of a block of keys, as in include/window_extremes.cuh."""


@dataclass(frozen=True, slots=True)
class WindowPlaces:
    """Where windows lie: between CuPy arrays `begins` and `ends` or, of lines of `length` elements, the last `rows` of
    those up to `ahead` behind the element, all from the line's first one on where `rows` is 0. `longest` is how many
    elements a window may have."""

    begins: Any
    ends: Any
    length: int
    rows: int
    ahead: int
    longest: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As `Windows` of include/windows.cuh."""
        begins, ends = (NONE if each is None else each for each in (self.begins, self.ends))
        return begins, ends, np.uint64(self.length), np.uint64(self.rows), np.uint64(self.ahead)


class WindowValues:
    """Values of `op` of a CuPy array of one dimension and of `dtype`; with `omit` NaNs are left out. To be used while
    `gpu.active()`."""

    def __init__(self, gpu: Gpu, array: Any, dtype: DType, places: WindowPlaces, op: Op, *, omit: bool) -> None:
        import cupy

        self._gpu, self._array, self._dtype, self._places, self._op = gpu, array, dtype, places, op
        self._omit, self._size = omit and dtype.is_float, int(array.size)
        self._unit = windows_unit(dtype)
        self._marks, self._lowest, self._above = 0, 0, 8 * dtype.itemsize
        if dtype.is_float:
            extents = cupy.asarray(np.array([1 << 20, -(1 << 20), 0], np.int32))
            blocks = min(-(-self._size // THREADS), 8 * gpu.multiprocessors)
            self._of_dtype("extents", blocks * THREADS, (array, np.uint64(self._size), extents))
            self._lowest, self._above, self._marks = extents.get().tolist()
            if self._lowest > self._above:  # nothing but zeros
                self._lowest = self._above = 0

    def holds(self) -> bool:
        """Whether 128 bits hold the sums of all windows."""
        return not self._op.adds or self._above - self._lowest + self._places.longest.bit_length() <= _BITS

    def counts(self) -> NDArray[np.int64]:
        """How many elements enter each window."""
        import cupy

        nans = self._running(NAN) if self._omit and self._has(NAN) else NONE
        counts = cupy.empty(self._size, np.int64)
        self._common(f"window_counts<{MARKS}>", (nans, *self._places.arguments, np.uint64(self._size), counts))
        made: NDArray[np.int64] = counts.get()
        return made

    def values(self, counts: NDArray[np.int64]) -> NDArray[Any]:
        """The values of windows that `counts` elements enter: floats as float64, integers as int64 or uint64, or as
        Python's where 64 bits do not hold them."""
        op = self._op
        if op.fold == "count":
            return counts
        if op.extreme is not None:
            return self._extremes()
        if not op.adds:
            nonzero = self._words(self._running(NONZERO), MARKS)[0].view(np.int64)
            return nonzero if op.name == "count_nonzero" else nonzero == counts if op.name == "all" else nonzero > 0
        if op.result_dtype(self._dtype) == INTEGER:
            return self._integers()
        made: NDArray[np.float64] = self.rounded().get()
        return made

    def _has(self, mark: int) -> bool:
        return bool(self._marks >> mark & 1)

    def _of_dtype(self, name: str, threads: int, args: tuple[Any, ...]) -> None:
        launch(self._gpu, self._unit, of_dtype(name, self._dtype), threads, args, THREADS)

    def _common(self, name: str, args: tuple[Any, ...]) -> None:
        launch(self._gpu, COMMON_UNIT, name, self._size, args, THREADS)

    def _totals(self, name: str, sums: str, term: tuple[Any, ...]) -> tuple[Any, int]:
        """The sums before each tile, and how many threads read all tiles."""
        import cupy

        tiles = -(-self._size // (THREADS * ITEMS))
        totals = cupy.empty(tiles * (2 if sums == WIDE else 1), np.uint64)
        self._of_dtype(name, tiles * THREADS, (self._array, np.uint64(self._size), *term, totals))
        scan = (totals, np.uint64(tiles))
        launch(self._gpu, COMMON_UNIT, f"sum_tiles_before<{sums}>", 1, scan, SCAN_THREADS)
        return totals, tiles * THREADS

    def _running(self, mark: int) -> Any:
        """The running sum of elements with a mark."""
        import cupy

        term = (np.uint32(mark), np.uint32(self._omit))
        totals, threads = self._totals("mark_tiles", MARKS, term)
        running = cupy.empty(self._size + 1, np.uint64)
        self._of_dtype("running_marks", threads, (self._array, np.uint64(self._size), *term, totals, running))
        return running

    def _fixed(self) -> tuple[Any, ...]:
        return np.int32(self._lowest), np.uint32(self._op.magnitudes)

    def _sums(self) -> Any:
        """The running sums of fixed point, two words each."""
        import cupy

        totals, threads = self._totals("sum_tiles", WIDE, self._fixed())
        running = cupy.empty(2 * (self._size + 1), np.uint64)
        self._of_dtype("running_sums", threads, (self._array, np.uint64(self._size), *self._fixed(), totals, running))
        return running

    def _words(self, running: Any, sums: str) -> list[NDArray[np.uint64]]:
        """The words of the differences of running sums, the lowest first."""
        import cupy

        words = [cupy.empty(self._size, np.uint64) for _ in range(2 if sums == WIDE else 1)]
        args = (running, *self._places.arguments, np.uint64(self._size), words[0], words[-1])
        self._common(f"window_words<{sums}>", args)
        return [each.get() for each in words]

    def _integers(self) -> NDArray[Any]:
        low, high = (word.view(np.int64) for word in self._words(self._sums(), WIDE))
        if (high == low >> 63).all():
            return low
        wide = (high.astype(object) << 64) + low.view(np.uint64).astype(object)
        return np.asarray(wide)

    def rounded(self) -> Any:
        """Sums or means as a CuPy array of float64, of an op that gives floats."""
        import cupy

        op, dtype, places = self._op, self._dtype, self._places
        divides, values = np.uint32(op.finish is Finish.MEAN), cupy.empty(self._size, np.float64)
        if places.begins is None and places.length == self._size and not self._marks:
            tiles = -(-(self._size + places.ahead) // (THREADS * SCANNED))
            announced, sums = cupy.zeros(1 + tiles, np.uint32), cupy.empty(4 * tiles, np.uint64)
            args = (
                self._array, np.uint64(self._size), *self._fixed(), np.uint64(places.rows), np.uint64(places.ahead),
                divides, announced, sums, values,
            )  # fmt: skip
            launch(self._gpu, self._unit, scanned_windows(dtype), tiles * THREADS, args, THREADS)
        else:
            args = (
                self._sums(), *self._specials(), np.uint32(self._omit), *places.arguments, np.uint64(self._size),
                np.int32(self._lowest), divides, values,
            )  # fmt: skip
            self._common(f"window_values<{rounded_to(dtype)}>", args)
        return values

    def _specials(self) -> list[Any]:
        """The running sums of marks that decide about a value, as `Specials` of include/windows.cuh."""
        infinite = self._has(POSITIVE) or self._has(NEGATIVE)
        wanted = {NAN: self._has(NAN), POSITIVE: self._has(POSITIVE), NEGATIVE: self._has(NEGATIVE)}
        wanted[NOT_NEGATIVE_ZERO] = self._has(NOT_NEGATIVE_ZERO)
        if self._op.magnitudes:
            wanted = {NAN: self._has(NAN), INFINITE: infinite, NEGATIVE: False, NOT_NEGATIVE_ZERO: False}
        return [self._running(mark) if occurs else NONE for mark, occurs in wanted.items()]

    def _extremes(self) -> NDArray[Any]:
        words: NDArray[np.uint64] = self.least_words().get()
        if self._dtype.is_float:
            return words.view(np.float64)
        if self._op.result_dtype(self._dtype) == INTEGER:  # magnitudes: those of the least integers are beyond int64
            return words.view(np.int64) if (words < _EXACT).all() else words.astype(object)
        return words.astype(self._dtype.numpy)

    def least_words(self) -> Any:
        """Extremes as a CuPy array of words: the bits of float64, or integers of 64 bits."""
        import cupy

        op, dtype, size = self._op, self._dtype, self._size
        descending = op.extreme is Extreme.MOST
        shift = 0 if not dtype.is_float or self._omit != descending else -1 if descending else 1
        order = (np.uint32(descending), np.uint32(op.magnitudes), np.int32(shift))
        word, blocks = np.dtype(f"uint{8 * dtype.itemsize}"), -(-size // BLOCK)
        levels = max(1, (self._places.longest // BLOCK).bit_length())
        up_to, behind, values = cupy.empty(size, word), cupy.empty(size, word), cupy.zeros(size, np.uint64)
        runs = cupy.empty(levels * blocks, word)
        elements = (self._array, np.uint64(size), *order, up_to, behind)
        self._of_dtype("extremes_of_blocks", size, (*elements, runs))
        for level in range(1, levels):
            halves, doubled = runs[(level - 1) * blocks :], runs[level * blocks :]
            args = (halves, np.uint64(blocks), np.uint64(1 << (level - 1)), doubled)
            launch(self._gpu, COMMON_UNIT, f"double_runs<{word.name}>", blocks, args, THREADS)
        self._of_dtype("extremes_of_windows", size, (*elements, runs, *self._places.arguments, values))
        return values
