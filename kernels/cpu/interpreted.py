"""Exact sums before anything is compiled: NumPy and Python's integers, as `kernels.exact` has them.

They add 30 million elements a second, and a compiled function takes seconds until it is there: so a small source has
its answer at once on a new machine (`CpuBackend`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import by_rows
from warpfold.kernels.cpu.grouped.fold import GroupedPart
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState, Flags, deviation, value_of, variance
from warpfold.kernels.exact.by_group import GroupSums, Ids
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Finish, Op, Terms, Value
from warpfold.kernels.ops.operands import result_dtype

SMALL = 1 << 20
"""The most elements of a source that does not wait for a compiler."""

MANY = 1 << 14
"""The most values: each is rounded by Python, in some microseconds."""


class InterpretedSum:
    """An accumulator of values, magnitudes or squares (`kernels.cpu.accumulator`)."""

    def __init__(self, terms: Terms, *, magnitudes: bool) -> None:
        self._magnitudes, self._state = magnitudes, ExactState.empty(terms)

    def add(self, array: NDArray[Any]) -> Flags:
        added = ExactState.of(array, self._state.terms, magnitudes=self._magnitudes)
        self._state = self._state.merge(added)
        return added.flags

    def state(self) -> ExactState:
        return self._state


class InterpretedPairs:
    """An accumulator of products of two arrays (`kernels.cpu.pairs`)."""

    def __init__(self) -> None:
        self._state = ExactState.empty(Terms.PRODUCTS)

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> Flags:
        added = ExactState.of_products(x, y)
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

    def states(self, counts: NDArray[np.int64]) -> list[StateColumn]:
        """The states of all values, for each kind of terms."""
        return [
            StateColumn.of_bytes([state.to_bytes() for state in self._states(terms, counts)]) for terms in self._sums
        ]

    def values(self, counts: NDArray[np.int64]) -> list[Value | None]:
        """The values, where `counts` elements entered each; None where they are too few."""
        each = zip(*(self._states(terms, counts) for terms in self._sums), strict=True)
        return [self._value(states) for states in each]

    def _states(self, terms: Terms, counts: NDArray[np.int64]) -> list[ExactState]:
        sums = self._sums[terms]
        each = zip(sums.units.tolist(), counts.tolist(), sums.flags.tolist(), strict=True)
        return [
            ExactState(terms, units, count, Flags(flags)) if count else ExactState.empty(terms)
            for units, count, flags in each
        ]

    def _value(self, states: tuple[ExactState, ...]) -> Value | None:
        if states[0].count <= (self._ddof if self._op.ddof else 0):
            return None
        result = result_dtype(self._op, *self._dtypes)
        if self._op.terms is Terms.MOMENTS:
            finish = variance if self._op.finish is Finish.VARIANCE else deviation
            return finish(states[0], states[1], self._ddof, DTYPES[result])
        return value_of(self._op, states[0], result)
