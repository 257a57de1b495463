"""Exact sums before anything is compiled: NumPy and Python's integers, as `kernels.exact` has them.

They add 30 million elements a second, and a compiled function takes seconds until it is there: so a small source has
its answer at once on a new machine (`CpuBackend`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import by_rows
from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.exact.by_group import GroupSums, Ids
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Op, Terms, Value
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import Index

SMALL = 1 << 20
"""The most elements of a source that does not wait for a compiler."""

MANY = 1 << 14
"""The most values: each is rounded by Python, in some microseconds."""


class InterpretedSum:
    """An accumulator of values, magnitudes or squares, or of products of two arrays (`kernels.cpu.accumulator`)."""

    def __init__(self, terms: Terms, *, magnitudes: bool) -> None:
        self._magnitudes, self._state = magnitudes, ExactState.empty(terms)

    def add(self, *arrays: NDArray[Any]) -> Flags:
        if len(arrays) == 2:
            added = ExactState.of_products(*arrays)
        else:
            added = ExactState.of(arrays[0], self._state.terms, magnitudes=self._magnitudes)
        self._state = self._state.merge(added)
        return added.flags

    def state(self) -> ExactState:
        return self._state


class InterpretedGroups:
    """A fold of an op that adds, to many values (`kernels.cpu.grouped.fold`)."""

    def __init__(self, op: Op, dtypes: Sequence[DType], ddof: int, outputs: int) -> None:
        self._op, self._dtypes, self._ddof = op, tuple(dtypes), ddof
        kinds = (Terms.VALUES, Terms.PRODUCTS) if op.terms is Terms.MOMENTS else (op.terms,)
        self._sums = {terms: GroupSums(outputs, terms, magnitudes=op.magnitudes) for terms in kinds}

    def add(self, start: int, part: GroupedPart) -> None:
        for layout in part.groups:
            rows, arrays = by_rows(part.arrays, layout)
            lengths = np.diff(rows.bounds)
            within = slice(int(rows.bounds[0]), int(rows.bounds[-1]))
            ids: Ids = np.repeat(rows.outputs, lengths)
            for sums in self._sums.values():
                sums.add(tuple(array[within] for array in arrays), self._dtypes, ids)

    def merge(self, other: "InterpretedGroups") -> None:
        for terms, sums in self._sums.items():
            sums.merge(other._sums[terms])

    def states(self, counts: Index) -> list[StateColumn]:
        """The states of all values, for each kind of terms."""
        return [_column(sums.states(counts)) for sums in self._sums.values()]

    def values(self, counts: Index) -> list[Value | None]:
        """The values, where `counts` elements entered each; None where they are too few."""
        finish = ValueFinish(self._op, result_dtype(self._op, *self._dtypes), self._ddof)
        return values_of_states(finish, [sums.states(counts) for sums in self._sums.values()])


class InterpretedKeyedSums:
    """Sums by key of the elements of a column, of their magnitudes or their squares (`kernels.cpu.keyed.column`). Group
    0 is for the elements that are left out."""

    def __init__(self, dtype: DType, terms: Terms, *, magnitudes: bool) -> None:
        self._dtype = dtype
        self._sums = GroupSums(1, terms, magnitudes=magnitudes)
        self._counts: Index = np.zeros(1, np.int64)

    def add(self, start: int, array: NDArray[Any], ids: NDArray[np.int32], groups: int) -> None:
        """Take in the elements of `array`, shape (n,)."""
        self._hold(groups)
        self._sums.add((array,), (self._dtype,), ids.astype(np.int64))
        self._counts += np.bincount(ids, minlength=groups + 1)

    def merge(self, other: "InterpretedKeyedSums", ids: NDArray[np.int32], groups: int) -> None:
        """Take in all that `other` took in, whose group g is ids[g] here."""
        self._hold(groups)
        other._hold(ids.size - 1)
        self._sums.merge(other._sums, ids.astype(np.int64))
        self._counts[ids] += other._counts

    def _hold(self, groups: int) -> None:
        self._sums.hold(groups + 1)
        self._counts = grown(self._counts, groups + 1)[: groups + 1]

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        self._hold(groups)
        return self._counts[1:]

    def exact_states(self, counts: Index) -> list[ExactState]:
        """The states of groups 1, 2, … as those of so many terms; of none that of nothing."""
        self._hold(counts.size)
        return self._sums.states(np.concatenate([[0], counts]))[1:]

    def states(self, groups: int) -> StateColumn:
        """The exact states of groups 1 … `groups`."""
        return _column(self.exact_states(self.counts(groups)))


def values_of_states(finish: ValueFinish, states: Sequence[Sequence[ExactState]]) -> list[Value | None]:
    """The values of elements with these states, for each kind of terms; None where the elements are too few."""
    least = finish.op.least_count(finish.ddof)
    return [finish.value(each) if each[0].count >= max(least, 1) else None for each in zip(*states, strict=True)]


def _column(states: Sequence[ExactState]) -> StateColumn:
    return StateColumn.of_bytes([state.to_bytes() for state in states])
