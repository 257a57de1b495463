"""Which elements of an array on a GPU make which value: rows, columns, or segments by offsets.

Each layout has `count` values of `total` elements together, of which the longest has `longest`.
"""

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.grouped.shapes import ColumnsShape, lanes_of
from warpfold.kernels.dtypes import DType

Members = tuple[Any, np.uint64, np.uint64, np.uint64, np.uint64]
"""Where the elements of each value lie, as the arguments of `Members` in include/exact_members.cuh."""


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """`count` values of `length` ≥ 1 neighbouring elements each; the last has those that are left of `total`."""

    count: int
    length: int
    total: int

    @property
    def longest(self) -> int:
        """Elements of the longest value."""
        return self.length

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Elements of each value."""
        lengths = np.full(self.count, self.length if self.total else 0, np.int64)
        if self.total:
            lengths[-1] = self.total - (self.count - 1) * self.length
        return lengths

    @property
    def members(self) -> Members:
        """Where the elements of each value lie."""
        length = np.uint64(self.length)
        return np.uint64(0), length, np.uint64(1), length, np.uint64(self.total)


@dataclass(frozen=True, slots=True)
class ColumnsLayout:
    """`width` values; value c has the elements c, c + width, … of `height` ≥ 1 rows."""

    width: int
    height: int

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.width

    @property
    def total(self) -> int:
        """Elements of all values."""
        return self.width * self.height

    @property
    def longest(self) -> int:
        """Elements of the longest value."""
        return self.height

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Elements of each value."""
        return np.full(self.width, self.height, np.int64)

    @property
    def members(self) -> Members:
        """Where the elements of each value lie."""
        width, height = np.uint64(self.width), np.uint64(self.height)
        return np.uint64(0), np.uint64(1), width, height, np.uint64(self.total)


@dataclass(frozen=True, slots=True)
class OffsetsLayout:
    """Value s has the elements offsets[s] … offsets[s + 1] − 1. `offsets` is a CuPy array of int64, and `host` the same
    on the host."""

    offsets: Any
    host: NDArray[np.int64]

    @classmethod
    def of(cls, host: NDArray[np.int64]) -> "OffsetsLayout":
        """The layout of offsets that are on the host."""
        import cupy

        return cls(cupy.asarray(host), host)

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.host.size) - 1

    @property
    def total(self) -> int:
        """Elements of all values."""
        return int(self.host[-1] - self.host[0])

    @property
    def longest(self) -> int:
        """Elements of the longest value."""
        return int(np.diff(self.host).max(initial=0))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Elements of each value."""
        return np.diff(self.host)

    @property
    def members(self) -> Members:
        """Where the elements of each value lie."""
        return self.offsets, np.uint64(0), np.uint64(1), np.uint64(0), np.uint64(self.total)


Layout = RowsLayout | ColumnsLayout | OffsetsLayout


@dataclass(frozen=True, slots=True)
class Other:
    """The second array of products, a CuPy array of `dtype` that lies as the first does."""

    array: Any
    dtype: DType


_ROWS_OF_PERIODS = 64
"""Periods of several rows that there are at least."""


@dataclass(frozen=True, slots=True)
class ColumnsLaunch:
    """How the columns of one array are taken: see include/grouped_columns.cuh. A thread has `slots` columns, and
    threads whose places are `once` apart have the same ones."""

    slots: int
    once: int
    period: int
    tiles: int
    periods: int
    parts: int

    @classmethod
    def of(cls, offset: int, dtype: DType, layout: ColumnsLayout, shape: ColumnsShape) -> "ColumnsLaunch":
        """The launch for the columns of an array of `dtype`, `offset` bytes behind a multiple of 16."""
        lanes, width = lanes_of(dtype), layout.width
        # A period of several rows leaves several parts of each column.
        even = width % lanes == 0 or layout.height >= _ROWS_OF_PERIODS * lanes
        slots = lanes if even and not offset else 1
        once = width // gcd(width, slots)
        period = once * max(1, shape.threads // once)
        tiles, in_all = -(-period // shape.threads), -(-layout.total // (slots * period))
        parts = max(1, min(shape.blocks // tiles, in_all // shape.least))
        periods = -(-in_all // (parts * shape.flight)) * shape.flight
        return cls(slots, once, period, tiles, periods, -(-in_all // periods))

    @property
    def size(self) -> int:
        """Parts of all columns that the launch leaves."""
        return self.parts * self.once * self.slots

    def whole(self, width: int) -> bool:
        """Whether a block has all of its columns, and no column has two parts."""
        return self.size == width
