"""Exact sums of the integers or truth values of each group, of their magnitudes or squares, or of the products of
two arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, Mergeable, One, State, by_rows
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.exact import Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index


class IntegerSum(Mergeable):
    """The sum of each group in digits of 32 bits and its count: an array of shape (groups, digits + 1). Three digits
    hold the sum of 2**63 elements of 64 bits, and five that of their squares or products."""

    def __init__(self, dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool = False) -> None:
        from warpfold.kernels.aggregates import integer_loops  # it imports Numba

        self.terms = terms
        self._loops = integer_loops
        self._dtypes = tuple(dtypes)
        self._unsigned = tuple(dtype.name == "uint64" for dtype in dtypes)
        values = integer_loops.MAGNITUDES if magnitudes and dtypes[0].kind is Kind.INT else integer_loops.VALUES
        self._what = integer_loops.SQUARES if terms is Terms.PRODUCTS else values

    def empty(self, groups: int) -> State:
        return (np.zeros((groups, 6 if self.terms is Terms.PRODUCTS else 4), np.int64),)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        (sums,), loops = state, self._loops
        if isinstance(layout, Ids):
            loops.add_ids(self._words(arrays[0], 0), layout.numbers, self._what, self._unsigned[0], sums)
            return
        if isinstance(layout, One):
            edges = np.append(np.arange(0, arrays[0].size, loops.MAX_ELEMENTS), arrays[0].size)
            outputs = np.zeros(edges.size - 1, np.int64)
        else:
            rows, arrays = by_rows(arrays, layout)
            edges, outputs = rows.bounds, rows.outputs
        if len(arrays) == 1:
            loops.add_rows(self._words(arrays[0], 0), edges, outputs, self._what, self._unsigned[0], sums)
        else:
            x, y = (self._words(array, at).astype(np.int64, copy=False) for at, array in enumerate(arrays))
            words = readable(x, x.dtype), readable(y, y.dtype)
            loops.add_products_of_rows(*words, edges, outputs, *self._unsigned, sums)

    def _words(self, array: NDArray[Any], at: int) -> NDArray[Any]:
        """The elements as int32 or, of 64 bits or of uint32, as int64."""
        dtype = self._dtypes[at]
        if dtype.kind is Kind.BOOL:
            array = readable(array, np.dtype(np.uint8))
        wide = dtype.itemsize == 8 or dtype.name == "uint32"
        word: np.dtype[Any] = np.dtype(np.int64 if wide else np.int32)
        return readable(array if dtype.itemsize == 8 else array.astype(word, copy=False), word)

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        numbers = np.arange(len(state[0]))[ids] if isinstance(ids, slice) else ids.astype(np.int64, copy=False)
        self._loops.merge_sums(other[0], numbers, state[0])

    def counts(self, state: State) -> Index:
        """How many elements each group has."""
        return state[0][:, -1]

    def sums(self, state: State) -> ManySums:
        """The sums of all groups; valid until more is added."""
        (sums,) = state
        self._loops.carry_all(sums)
        flags = np.full(len(sums), int(Flags.NOT_NEGATIVE_ZERO))
        return ManySums(self.terms, 0, np.ascontiguousarray(sums[:, :-1]), flags)
