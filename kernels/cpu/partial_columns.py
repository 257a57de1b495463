"""Columns of partial results: what the rows or elements of one partition, or of several, contribute to each of many
values. An op that adds has an exact state for each value, so that partitions in any order give the bits of the whole.
Ops that select or count elements never round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Folded, State
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.cpu.keyed.merging import column_of_states
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Op
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import Aggregation, GroupColumn, column_of, whole_numbers
from warpfold.kernels.parts.state_tables import StatesOf, terms_of


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """The partial results of an op, a row for each value: how many elements entered (`counts`, shape (rows,)), and the
    exact states of an op that adds (a variance has two), or the state of its aggregate. `dtypes` are those of the
    elements, of an op of two arrays of both."""

    dtypes: tuple[str, ...]
    counts: Index
    states: tuple[StateColumn, ...] = ()
    state: State = ()

    @property
    def nbytes(self) -> int:
        """About how many bytes the column takes in a message."""
        parts: tuple[StateColumn | NDArray[Any], ...] = (self.counts, *self.states, *self.state)
        return sum(part.nbytes for part in parts)

    def check_like(self, other: "PartialColumn") -> None:
        """Raise InvalidInput where two partitions have other dtypes."""
        if self.dtypes != other.dtypes:
            listed = [" and ".join(each) for each in (self.dtypes, other.dtypes)]
            raise InvalidInput(f"a partition has {listed[0]}, and another {listed[1]}: all partitions need one dtype")


@dataclass(frozen=True, slots=True)
class PartialValues:
    """The shares of parts of an array in the values `ids`. An array that is reduced to one value has value 0."""

    ids: Index
    column: PartialColumn

    @property
    def nbytes(self) -> int:
        """About what it takes on its way."""
        return self.ids.nbytes + self.column.nbytes

    @staticmethod
    def merged(parts: "Sequence[PartialValues]", op: Op) -> "PartialValues":
        """All of `parts` together. Raises InvalidInput, StateError and OutOfMemory."""
        ids, places = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
        merging, start = MergedColumn(op), 0
        for part in parts:
            merging.add(part.column, places[start : start + part.ids.size].astype(np.int64), ids.size)
            start += part.ids.size
        return PartialValues(ids, merging.partial(ids.size))


class MergedColumn:
    """Partial columns of one op, merged row by row into a growing number of rows."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self._first: PartialColumn | None = None
        self._sums = [MergedStates(terms) for terms in terms_of(op)] if op.adds else []
        self._selected: Folded | None = None
        self._counts: Index = np.zeros(0, np.int64)

    def add(self, part: PartialColumn, ids: Index, rows: int) -> None:
        """Merge row i of `part` into row ids[i] of `rows`; no id occurs twice. Raises InvalidInput where `part` has
        another dtype, StateError and OutOfMemory."""
        self._first = self._first or part
        part.check_like(self._first)
        for merged, states in zip(self._sums, part.states, strict=True):
            merged.add(states, ids, rows)
        if not self._sums:
            self._selected = self._selected or Folded(aggregate_of(self._op, DTYPES[part.dtypes[0]]))
            self._selected.merge(part.state, ids, rows)
            self._counts = grown(self._counts, rows)
            self._counts[ids] += part.counts

    def partial(self, rows: int) -> PartialColumn:
        """The first `rows` rows, as the column of a single partition."""
        assert self._first is not None, "a part came before"
        if self._selected is None:
            states = tuple(sums.encoded(rows) for sums in self._sums)
            return replace(self._first, counts=self._sums[0].counts(rows).copy(), states=states)
        counts = grown(self._counts, rows)[:rows]
        return replace(self._first, counts=counts, state=self._selected.rows(0, rows))

    def column(
        self, asked: Aggregation, rows: int, min_count: int = 0, label: str | None = None, *, keep: bool = True
    ) -> GroupColumn:
        """The values of the first `rows` rows, each rounded once, and with `keep` the states of an op that adds;
        `label` is the name of the column that the elements come from. Raises InvalidInput."""
        assert self._first is not None, "a part came before"
        op, dtypes = asked.op, [DTYPES[name] for name in self._first.dtypes]
        if self._selected is None:
            result = result_dtype(op, *dtypes)
            of = StatesOf(asked.name, op.name, self._first.dtypes, result, asked.ddof, column=label)
            return column_of_states(of, self._sums, rows, min_count, keep=keep)
        counts = grown(self._counts, rows)[:rows]
        values = aggregate_of(op, dtypes[0]).finish(self._selected.rows(0, rows), counts)
        return column_of(asked, dtypes[0], values, counts, min_count)


_PLACE_BITS = 46
"""A partition's number stands above the bits of a place in it: the place among all elements is known once all
partitions are."""


def first_place(number: int) -> np.int64:
    """The place of the first element of partition `number`."""
    return np.int64(number << _PLACE_BITS)


def among_all(places: Index, before: Sequence[int]) -> Index:
    """The places among all elements, of which `before` says how many lie before each partition."""
    return np.asarray(np.asarray(before)[places >> _PLACE_BITS] + (places & ((1 << _PLACE_BITS) - 1)))


def values_array(values: Sequence[Any] | NDArray[Any], dtype: str) -> NDArray[Any]:
    """Values of a reduction as an array, which is arbitrary where a value is missing. `dtype` is the name of a
    dtype, or "integer"."""
    if isinstance(values, np.ndarray):
        return values
    if dtype in DTYPES and DTYPES[dtype].is_float:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    listed = [0 if value is None else value for value in values]
    return np.array(listed, np.bool_) if dtype == "bool" else whole_numbers(listed)
