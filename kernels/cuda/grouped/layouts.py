"""Which elements of an array on a GPU make which value: rows, columns, or segments by offsets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RowsLayout:
    """`count` values of `length` ≥ 1 neighbouring elements each; the last has those that are left of `total`."""

    count: int
    length: int
    total: int


@dataclass(frozen=True, slots=True)
class ColumnsLayout:
    """`width` values; value c has the elements c, c + width, … of `height` ≥ 1 rows."""

    width: int
    height: int


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
    def total(self) -> int:
        """Elements of all values."""
        return int(self.host[-1] - self.host[0])

    @property
    def longest(self) -> int:
        """Elements of the longest value."""
        return int(np.diff(self.host).max(initial=0))


Layout = RowsLayout | ColumnsLayout | OffsetsLayout
