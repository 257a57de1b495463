"""Columns of partial results: what the rows or elements of one partition, or of several, contribute to each of many
values. An op that adds has an exact state for each value, so that partitions in any order give the bits of the whole.
Ops that select or count elements never round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.cpu.keyed.merging import column_of_states
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.grouping import Index
from warpfold.kernels.keyed import Aggregation, GroupColumn, column_of, whole_numbers
from warpfold.kernels.operands import result_dtype
from warpfold.kernels.ops import Extreme, Op
from warpfold.kernels.state_tables import StatesOf, terms_of


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """The partial results of an op, a row for each value: how many elements entered (`counts`, shape (rows,)), and the
    exact states of an op that adds (a variance has two). For other ops `values` are the values of these elements,
    arbitrary where there are no elements: floats as float64, integers as any integer dtype or as Python's integers. For
    argmin and argmax `values` are places, and `elements` are the elements at these places.
    """

    counts: Index
    states: tuple[StateColumn, ...] = ()
    values: NDArray[Any] | None = None
    elements: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """About how many bytes the column takes in a message."""
        arrays = [array for array in (self.counts, self.values, self.elements) if array is not None]
        return sum(array.nbytes for array in arrays) + sum(column.nbytes for column in self.states)


class MergedColumn:
    """Partial columns of one op, merged row by row into a growing number of rows."""

    def __init__(self, op: Op) -> None:
        self._op = op
        self._sums = [MergedStates(terms) for terms in terms_of(op)] if op.adds else []
        self._counts: Index = np.zeros(0, np.int64)
        self._values: NDArray[Any] | None = None
        self._elements: NDArray[Any] | None = None

    def add(self, part: PartialColumn, ids: Index, rows: int) -> None:
        """Merge row i of `part` into row ids[i] of `rows`; no id occurs twice. Raises StateError and OutOfMemory."""
        for merged, states in zip(self._sums, part.states, strict=True):
            merged.add(states, ids, rows)
        if self._sums:
            return
        self._counts = grown(self._counts, rows)
        assert part.values is not None, "an op that adds nothing up has values"
        present = part.counts > 0
        ids, counts, values = ids[present], part.counts[present], part.values[present]
        elements = None if part.elements is None else part.elements[present]
        known = self._counts[ids] > 0
        self._counts[ids] += counts
        held, values = _alike(self._values, values, rows)
        if elements is not None:
            places, elements = _alike(self._elements, elements, rows)
            nearer = ~known | _nearer(self._op, elements, values, places[ids], held[ids])
            places[ids[nearer]] = elements[nearer]
            held[ids[nearer]] = values[nearer]
            self._elements = places
        else:
            held[ids] = np.where(known, _of_two(self._op, held[ids], values), values)
        self._values = held

    def partial(self, rows: int) -> PartialColumn:
        """The first `rows` rows, as the column of a single partition."""
        if self._sums:
            return PartialColumn(self._sums[0].counts(rows).copy(), tuple(sums.encoded(rows) for sums in self._sums))
        counts, values = grown(self._counts, rows)[:rows], _held(self._values, rows)
        elements = None if self._elements is None else _held(self._elements, rows)
        return PartialColumn(counts, values=values, elements=elements)

    def column(
        self, asked: Aggregation, dtypes: Sequence[DType], rows: int, min_count: int = 0, label: str | None = None,
        *, keep: bool = True,
    ) -> GroupColumn:  # fmt: skip
        """The values of the first `rows` rows, each rounded once, and with `keep` the states of an op that adds;
        `dtypes` are those of the elements, and `label` is the name of the column that they come from. Raises
        InvalidInput."""
        op = asked.op
        if self._sums:
            names, result = tuple(dtype.name for dtype in dtypes), result_dtype(op, *dtypes)
            of = StatesOf(asked.name, op.name, names, result, asked.ddof, column=label)
            return column_of_states(of, self._sums, rows, min_count, keep=keep)
        values = _held(self._values, rows)
        if values.dtype == object:
            values = whole_numbers(values.tolist())
        return column_of(asked, dtypes[0], values, grown(self._counts, rows)[:rows], min_count)


def values_array(values: Sequence[Any] | NDArray[Any], dtype: str) -> NDArray[Any]:
    """Values of a reduction as an array, which is arbitrary where a value is missing. `dtype` is the name of a
    dtype, or "integer"."""
    if isinstance(values, np.ndarray):
        return values
    if dtype in DTYPES and DTYPES[dtype].is_float:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    listed = [0 if value is None else value for value in values]
    return np.array(listed, np.bool_) if dtype == "bool" else whole_numbers(listed)


def _held(values: NDArray[Any] | None, rows: int) -> NDArray[Any]:
    return grown(np.zeros(0, np.int64) if values is None else values, rows)[:rows]


def _alike(held: NDArray[Any] | None, values: NDArray[Any], rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The old values, enlarged to this number of rows, and the new values, as arrays of one dtype. Integers of two
    dtypes that no dtype holds become Python's integers."""
    if held is None:
        held = np.zeros(0, values.dtype)
    if held.dtype != values.dtype and values.size:
        held, values = held.astype(object), values.astype(object)
    return grown(held, rows), values


def _of_two(op: Op, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """The merged values of two partitions, of an op that `kernels.partitions.combines`."""
    match op.name:
        case "count_nonzero":
            return np.asarray(left + right)
        case "any":
            return np.asarray(left | right)
        case "all":
            return np.asarray(left & right)
    assert op.extreme is not None, f"no rule by which two values of {op.name} make one"
    least = op.extreme is Extreme.LEAST and not op.magnitudes
    better = right < left if least else right > left
    if right.dtype.kind == "f":  # as minimum and maximum of IEEE 754-2019: NaN if one is NaN, and −0 < +0
        better |= np.isnan(right) | ((right == left) & (np.signbit(right) == least))
        better &= ~np.isnan(left)
    return np.where(better.astype(bool), right, left)


def _nearer(
    op: Op, elements: NDArray[Any], places: NDArray[Any], others: NDArray[Any], theirs: NDArray[Any]
) -> NDArray[np.bool_]:
    """Whether each element wins against the other element: a NaN wins first, then the value decides, then the place."""
    better = elements < others if op.extreme is Extreme.LEAST else elements > others
    equal = elements == others
    if elements.dtype.kind == "f":
        nan, other_nan = np.isnan(elements), np.isnan(others)
        better = (nan & ~other_nan) | (~other_nan & better)
        equal |= nan & other_nan
    return np.asarray(better | (equal & (places < theirs)), np.bool_)
