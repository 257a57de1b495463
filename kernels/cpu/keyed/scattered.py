"""Rows in the order of ranges of their keys: threads bring the rows into that order part by part, and then take one
range after another."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.keyed.ranges import KeyRanges
from warpfold.kernels.cpu.pieces import Piece, Pieces
from warpfold.kernels.machine.extras import required
from warpfold.kernels.parts.keyed import Cells, KeyedRows, WholeColumns
from warpfold.kernels.source import part_of


@dataclass(frozen=True, slots=True)
class BatchOfRows(Pieces[KeyedRows]):
    """Rows start … stop − 1 of whole columns, as a stream takes them."""

    whole: WholeColumns
    start: int
    stop: int

    @property
    def likely(self) -> int:
        return self.stop - self.start

    def begin(self) -> Iterator[Piece[KeyedRows]]:
        columns = (part_of(column, self.start, self.stop) for column in self.whole.columns)
        part = WholeColumns(part_of(self.whole.key, self.start, self.stop), tuple(columns), self.start)
        for each in part.parts():
            yield Piece(each.start, each.stop, each.read)


@dataclass(frozen=True, slots=True)
class _Part:
    """Neighbouring rows in the order of their ranges: the keys and the elements of each column, shape (rows,). Range r
    is rows ends[r] … ends[r + 1] − 1."""

    ends: NDArray[np.int64]
    arrays: tuple[NDArray[Any], ...]


class ScatteredRows:
    """Rows that a thread has brought in the order of ranges, part by part."""

    def __init__(self, ranges: KeyRanges) -> None:
        from warpfold.kernels.cpu.keyed import range_loops

        self._loops = range_loops
        self._ranges = ranges
        self._parts: list[_Part] = []

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return self._ranges.count

    def add(self, start: int, rows: KeyedRows) -> None:
        """Take in rows from number `start` on."""
        keys = rows.keys[0].to_numpy(zero_copy_only=False)
        numbers, counts = np.empty(keys.size, np.uint8), np.zeros(self.ranges, np.int64)
        keys.flags.writeable = False  # so that Numba compiles one version
        ranges = self._ranges
        self._loops.number_ranges(keys, ranges.least, ranges.shift, ranges.cells, numbers, counts)
        ends = np.concatenate([[0], np.cumsum(counts)])
        arrays = []
        for array in (keys, *(cells.elements for cells in rows.columns)):
            out = np.empty_like(array)
            bits = np.dtype(f"uint{8 * array.itemsize}")
            self._loops.scatter(readable(array, bits), numbers, ends, out.view(bits))
            arrays.append(out)
        self._parts.append(_Part(ends, tuple(arrays)))

    def merge(self, other: "ScatteredRows") -> None:
        """Take in all rows that `other` took in."""
        self._parts += other._parts

    def rows(self, number: int) -> KeyedRows:
        """The rows of a range."""
        slices = [[array[part.ends[number] : part.ends[number + 1]] for array in part.arrays] for part in self._parts]
        keys, *columns = (np.concatenate(arrays) for arrays in zip(*slices, strict=True))
        return KeyedRows(0, (required("pyarrow", "tables").array(keys),), tuple(map(Cells, columns)))


@dataclass(frozen=True, slots=True)
class RangesInTurn(Pieces[tuple[int, KeyedRows]]):
    """The ranges of some scattered rows as a stream takes them. Their places are those of rows, as if the rows were
    spread evenly."""

    scattered: ScatteredRows
    likely: int

    @property
    def reads(self) -> bool:
        return False

    def begin(self) -> Iterator[Piece[tuple[int, KeyedRows]]]:
        count = self.scattered.ranges
        for number in range(count):
            start, stop = (self.likely * each // count for each in (number, number + 1))
            yield Piece(start, stop, partial(self._read, number))

    def _read(self, number: int) -> tuple[int, KeyedRows]:
        return number, self.scattered.rows(number)
