"""How many elements each group has, and how many of them are not zero."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, Mergeable, One, State, by_rows
from warpfold.kernels.aggregates.patterns import is_nan, readable
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import Index


class Counted(Mergeable):
    """The number of elements of each group."""

    def empty(self, groups: int) -> State:
        return (np.zeros(groups, np.int64),)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        (counts,), (elements,) = state, arrays
        if isinstance(layout, One):
            counts[0] += self._count(elements)
            return
        marks = self._marks(elements)
        from warpfold.kernels.aggregates import loops  # it imports Numba

        if isinstance(layout, Ids):
            flat = np.zeros(0, np.uint8) if marks is None else marks.view(np.uint8)
            loops.marks_of_ids(readable(flat, flat.dtype), layout.numbers, counts)
            return
        marks = np.ones(elements.size, np.bool_) if marks is None else marks
        rows, (flat,) = by_rows((marks,), layout)
        loops.marks_in_rows(readable(flat, np.dtype(np.uint8)), rows.bounds, rows.outputs, counts)

    def _count(self, elements: NDArray[Any]) -> int:
        return elements.size

    def _marks(self, elements: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Which elements count; None where all do."""
        return None

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        state[0][ids] += other[0]

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        return state[0]


class Nonzero(Counted):
    """The number of elements that are not zero, for count_nonzero, any, all and products of truth values, and beside
    those that count tells. With `omit`, NaNs are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._op = op
        self._dtype = dtype
        self._omit = omit and dtype.is_float

    def _count(self, elements: NDArray[Any]) -> int:
        return int(np.count_nonzero(self._marks(elements) if self._omit else self._sizes(elements)))

    def _marks(self, elements: NDArray[Any]) -> NDArray[np.bool_]:
        if self._dtype.kind is Kind.BOOL:
            return elements
        marks = np.asarray(self._sizes(elements) != 0)
        return marks & ~is_nan(elements, self._dtype) if self._omit else marks

    def _sizes(self, elements: NDArray[Any]) -> NDArray[Any]:
        """What is 0 where an element is: the bits of a float below its sign."""
        if not self._dtype.is_float:
            return elements
        bits = readable(elements, np.dtype(f"uint{8 * self._dtype.itemsize}"))
        return np.asarray(bits & (np.iinfo(bits.dtype).max >> 1))

    def of_values(self, values: NDArray[Any], counts: Index, places: Index | None = None) -> State:
        """The state of groups of `counts` elements, of which `values` are not zero. Where there are no elements these
        are arbitrary."""
        return (np.where(counts > 0, values, 0).astype(np.int64),)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        (nonzero,) = state
        every = nonzero == counts
        tests = {"any": nonzero > 0, "all": every, "prod": every.astype(np.int64), "count": counts}
        return np.asarray(tests.get(self._op.name, nonzero))
