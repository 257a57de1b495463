"""The shapes that a benchmark sweeps: matrices along an axis, arrays cut into segments, and tables grouped by a key.

`kernels.bench.data` makes their data. This module loads no NumPy: the parent of a slot reads points, and stays small.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

MAX_GROUPS = (1 << 31) - 1
"""Keys are int32."""


class By(StrEnum):
    """The grouping that makes the values of a shape."""

    AXIS = "axis"
    SEGMENTS = "segments"
    KEYS = "keys"


class KeyOrder(StrEnum):
    """How the keys of a table lie."""

    RANDOM = "random"
    SORTED = "sorted"


@dataclass(frozen=True, slots=True)
class CaseShape:
    """`n` elements that are reduced to many values.

    A matrix has `rows`, `columns` and the `axis` along which it is reduced; segments have their mean length; a table
    has `rows`, a number of `groups`, and the `key_order`. What a shape has not is None.
    """

    n: int
    rows: int | None = None
    columns: int | None = None
    axis: int | None = None
    segments: int | None = None
    groups: int | None = None
    key_order: str | None = None

    @classmethod
    def matrix(cls, rows: int, columns: int, axis: int) -> Self:
        """A matrix in C order; axis 1 gives a value for each row, axis 0 a value for each column."""
        return cls(rows * columns, rows=rows, columns=columns, axis=axis)

    @classmethod
    def cut(cls, n: int, mean: int) -> Self:
        """`n` elements in segments of random lengths, geometric with this mean."""
        return cls(n, segments=mean)

    @classmethod
    def table(cls, rows: int, groups: int, key_order: str) -> Self:
        """A table whose keys are drawn evenly from 0 … groups − 1."""
        return cls(rows, rows=rows, groups=groups, key_order=key_order)

    @classmethod
    def of(cls, n: int, columns: Mapping[str, Any]) -> Self | None:
        """The shape that is stored in the columns `SHAPE_FIELDS`; None of a whole array."""
        named = {name: columns[name] for name in SHAPE_FIELDS if columns[name] is not None}
        return cls(n, **named) if named else None

    @property
    def by(self) -> By:
        """What makes its values."""
        if self.columns is not None:
            return By.AXIS
        return By.SEGMENTS if self.segments is not None else By.KEYS

    def in_columns(self) -> Mapping[str, Any]:
        """The columns of a point that say the shape."""
        return {name: getattr(self, name) for name in SHAPE_FIELDS}

    def __str__(self) -> str:
        """The shape in words: "1,024 × 8, axis 1"."""
        match self.by:
            case By.AXIS:
                return f"{self.rows:,} × {self.columns:,}, axis {self.axis}"
            case By.SEGMENTS:
                return f"{self.n:,} in segments of {self.segments:,}"
            case By.KEYS:
                return f"{self.rows:,} rows in {self.groups:,} groups, {self.key_order} keys"


SHAPE_FIELDS = tuple(field.name for field in fields(CaseShape) if field.name != "n")
