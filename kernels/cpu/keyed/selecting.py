"""Ops by group that add nothing up: they compare or test the elements of a column, or need a fold apart.
`grouped.selecting` says what a key of an element is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.folds.by_name import fold_for
from warpfold.kernels.cpu.folds.fold import Fold
from warpfold.kernels.cpu.grouped.selecting import Keys
from warpfold.kernels.cpu.keyed.sums import Numbers
from warpfold.kernels.dtypes import DType
from warpfold.kernels.grouping import Index
from warpfold.kernels.keyed import whole_numbers
from warpfold.kernels.ops import NanPolicy, Op, Value, empty_value


class KeyedExtremes:
    """The least key of each group, and for argmin and argmax its lowest row."""

    def __init__(self, op: Op, dtype: DType) -> None:
        from warpfold.kernels.cpu.keyed import loops

        self._op = op
        self._dtype = dtype
        self._loops = loops
        self._keys = Keys(op, dtype, omit=False)
        self._best = np.full(1, self._keys.none, self._keys.word)
        self._where: Index = np.full(1, -1, np.int64)

    def _hold(self, count: int) -> None:
        known = self._best.size
        if known < count:
            self._best = grown(self._best, count)
            self._best[known:] = self._keys.none
            if self._op.places:
                self._where = grown(self._where, count)
                self._where[known:] = -1

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Take in the elements of `array`, shape (n,), whose first is that of row `start`."""
        self._hold(groups + 1)
        keys = readable(self._keys.of(array), self._keys.word)
        if self._op.places:
            self._loops.least_places(keys, ids, start, self._best, self._where)
        else:
            self._loops.least_keys(keys, ids, self._best)

    def merge(self, other: "KeyedExtremes", ids: Numbers, groups: int) -> None:
        """Take in all that `other` took in, whose group g is ids[g] here."""
        self._hold(groups + 1)
        count = min(ids.size, other._best.size)
        ids = ids[:count]
        best, theirs = self._best[ids], other._best[:count]
        if self._op.places:
            where, rows = self._where[ids], other._where[:count]
            nearer = (rows >= 0) & ((where < 0) | (theirs < best) | ((theirs == best) & (rows < where)))
            self._where[ids] = np.where(nearer, rows, where)
        self._best[ids] = np.minimum(best, theirs)

    def values(self, groups: int) -> NDArray[Any]:
        """The selected elements, or their rows, of groups 1 … `groups`. A group without elements gets an arbitrary
        value."""
        self._hold(groups + 1)
        if self._op.places:
            return self._where[1 : groups + 1]
        with np.errstate(invalid="ignore"):
            elements = self._keys.elements(self._best[1 : groups + 1])
            if self._dtype.is_float:
                return elements.astype(np.float64)
        # The largest magnitude of truth values is an integer.
        return elements if self._op.result_dtype(self._dtype) == self._dtype.name else whole_numbers(elements.tolist())


class KeyedNonzeros:
    """How many elements of each group are not zero."""

    def __init__(self, dtype: DType) -> None:
        from warpfold.kernels.cpu.keyed import loops

        self._dtype = dtype
        self._loops = loops
        self._counts: Index = np.zeros(1, np.int64)

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Count the elements of `array`, shape (n,)."""
        self._counts = grown(self._counts, groups + 1)
        words = readable(array, np.dtype(f"int{8 * self._dtype.itemsize}"))
        if self._dtype.is_float:
            words = words & np.iinfo(words.dtype).max
        self._loops.count_marks(readable(words != 0, np.dtype(np.uint8)), ids, self._counts)

    def merge(self, other: "KeyedNonzeros", ids: Numbers, groups: int) -> None:
        """Add what `other` counted, whose group g is ids[g] here."""
        self._counts = grown(self._counts, groups + 1)
        count = min(ids.size, other._counts.size)
        self._counts[ids[:count]] += other._counts[:count]

    def values(self, groups: int) -> Index:
        """The counts of groups 1 … `groups`."""
        return grown(self._counts, groups + 1)[1 : groups + 1]


class Counts:
    """How many elements each group has."""

    def __init__(self) -> None:
        from warpfold.kernels.cpu.keyed import loops

        self._loops = loops
        self._counts: Index = np.zeros(1, np.int64)

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Count the elements of `array` by group, or the rows `ids` where `array` is empty."""
        self._counts = grown(self._counts, groups + 1)
        self._loops.count_rows(ids, self._counts)

    def merge(self, other: "Counts", ids: Numbers, groups: int) -> None:
        """Add what `other` counted, whose group g is ids[g] here."""
        self._counts = grown(self._counts, groups + 1)
        count = min(ids.size, other._counts.size)
        self._counts[ids[:count]] += other._counts[:count]

    def counts(self, groups: int) -> Index:
        """The counts of groups 1 … `groups`."""
        return grown(self._counts, groups + 1)[1 : groups + 1]


class KeyedFoldsApart:
    """A fold of the op for each group: slow where groups have few rows, and right for every op that has a fold."""

    def __init__(self, op: Op, dtype: DType) -> None:
        self._op, self._dtype = op, dtype
        self._folds: list[Fold[NDArray[Any]]] = []

    def _hold(self, groups: int) -> None:
        while len(self._folds) < groups:
            self._folds.append(fold_for(self._op, self._dtype, NanPolicy.PROPAGATE))

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Take in the elements of `array`, shape (n,), by the folds of their groups. Elements are sorted by group
        first."""
        self._hold(groups)
        order = np.argsort(ids, kind="stable")
        edges = np.searchsorted(ids[order], np.arange(1, groups + 2))
        elements = array[order]
        for group in np.flatnonzero(np.diff(edges)).tolist():
            self._folds[group].add(0, elements[edges[group] : edges[group + 1]])

    def merge(self, other: "KeyedFoldsApart", ids: Numbers, groups: int) -> None:
        """Take in the elements of `other`, whose group g is ids[g] here."""
        self._hold(groups)
        for group, fold in enumerate(other._folds, 1):
            self._folds[ids[group] - 1].merge(fold)

    def values(self, groups: int) -> list[Value | None]:
        """The values of groups 1 … `groups`; None where a group has no elements and the op no value of none."""
        self._hold(groups)
        empty = None if self._op.empty is None else empty_value(self._op, self._dtype)
        return [fold.value() if fold.count else empty for fold in self._folds]
