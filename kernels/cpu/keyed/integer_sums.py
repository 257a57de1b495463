"""Exact sums of a column of integers or truth values by group.

A group has digits of 32 bits in int64 and a count: three digits for 2**63 elements of 64 bits, and five for their
squares. The digits are carried every 2**28 elements, and before they are read; the last digit has the sign.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.keyed.sums import Numbers
from warpfold.kernels.cpu.states import ManySums, states_by_parts
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.exact import Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.grouping import Index
from warpfold.kernels.ops import Terms


class KeyedIntegerSums:
    """Sums of the elements of a column of integers or truth values, of their magnitudes or their squares."""

    def __init__(self, dtype: DType, terms: Terms, *, magnitudes: bool) -> None:
        from warpfold.kernels.cpu.keyed import loops

        self.terms = terms
        self._loops = loops
        self._unsigned = dtype.kind is not Kind.INT
        self._magnitudes = magnitudes and not self._unsigned
        self._words = np.dtype(f"int{8 * dtype.itemsize}")
        self._wide = self._unsigned and dtype.itemsize < 8  # a pattern of fewer bits would have a sign
        self._dtype = dtype
        self._sums = np.zeros((1 << 8, 6 if terms is Terms.PRODUCTS else 4), np.int64)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        self._sums = grown(self._sums, groups + 1)
        counts: Index = self._sums[1 : groups + 1, -1]
        return counts

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Add the elements of `array`, shape (n,), to the groups `ids`, of which there are `groups`."""
        self._sums = grown(self._sums, groups + 1)
        words = readable(array.astype(np.int64), np.dtype(np.int64)) if self._wide else readable(array, self._words)
        if self.terms is Terms.PRODUCTS:
            self._loops.add_integer_squares(words, ids, self._unsigned, self._sums)
        else:
            self._loops.add_integers(words, ids, self._unsigned or self._magnitudes, self._magnitudes, self._sums)

    def merge(self, other: "KeyedIntegerSums", ids: Numbers, groups: int) -> None:
        """Add the sums of `other`, whose group g is ids[g] here."""
        self._sums = grown(self._sums, groups + 1)
        count = min(ids.size, other._sums.shape[0])
        self._loops.merge_sums(other._sums, ids[:count], self._sums)

    def sums(self, some: slice) -> ManySums:
        """The sums of the groups at some neighbouring places; group 1 is at place 0."""
        start, stop = some.start + 1, some.stop + 1
        self._sums = grown(self._sums, stop)
        rows = self._sums[start:stop]
        self._loops.carry_all(rows)
        flags = np.full(stop - start, int(Flags.NOT_NEGATIVE_ZERO))
        return ManySums(self.terms, 0, np.ascontiguousarray(rows[:, :-1]), flags)

    def states(self, groups: int) -> StateColumn:
        """The exact states of groups 1 … `groups`."""
        return states_by_parts(self.sums, self.counts(groups))
