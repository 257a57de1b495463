"""Exact sums of groups with NumPy alone, as `kernels.exact.portable` has them of one: what adds up before anything is
compiled.

Elements of a group and of four neighbouring exponents are added up in float64, which is exact below 2**53; these sums
are put together in Python's integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, Mergeable, State, by_rows
from warpfold.kernels.dtypes import DType, common_float
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.portable import DIGIT, SplitTerms, split_products, split_values
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Columns, Index, Rows

_PART = 1 << 20
"""Elements at a time: digits below 2**27, moved up by up to 3 places, sum to below 2**50."""

_TOGETHER = 2
"""Neighbouring exponents that are added up together, as a power of two."""


@dataclass(frozen=True, slots=True)
class PortableSums:
    """What `kernels.cpu.states.ManySums` is of compiled sums: `units` are Python's integers in units of
    2**ORIGIN[terms]."""

    terms: Terms
    units: NDArray[Any]
    flags: Index

    def state(self, at: int, count: int) -> ExactState:
        """The state of sum `at`, which has `count` terms."""
        return ExactState(self.terms, self.units[at], count, Flags(int(self.flags[at])))

    def at(self, some: slice) -> Self:
        """The sums at some neighbouring places."""
        return replace(self, units=self.units[some], flags=self.flags[some])

    def states(self, counts: Index) -> StateColumn:
        """The states of all sums, of so many terms each; of none that of nothing."""
        states = (
            self.state(at, count) if count else ExactState.empty(self.terms) for at, count in enumerate(counts.tolist())
        )
        return StateColumn.of_bytes([state.to_bytes() for state in states])


class PortableSum(Mergeable):
    """The sum of each group, of the values of elements, of their magnitudes, or of products: Python's integers, flags
    and counts, three arrays of shape (groups,)."""

    def __init__(self, dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool = False) -> None:
        self.terms = terms
        self._dtypes = tuple(dtypes)
        self._magnitudes = magnitudes

    def empty(self, groups: int) -> State:
        return np.zeros(groups, object), np.zeros(groups, np.int64), np.zeros(groups, np.int64)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        if isinstance(layout, Rows | Columns):
            rows, arrays = by_rows(arrays, layout)
            within = slice(int(rows.bounds[0]), int(rows.bounds[-1]))
            arrays, ids = tuple(array[within] for array in arrays), np.repeat(rows.outputs, np.diff(rows.bounds))
        else:
            ids = layout.numbers if isinstance(layout, Ids) else np.zeros(arrays[0].size, np.int64)
        add = self._add_floats if self._dtypes[0].is_float else self._add_integers
        for at in range(0, ids.size, _PART):
            part = slice(at, at + _PART)
            add(state, tuple(array[part] for array in arrays), ids[part].astype(np.int64, copy=False))
        state[-1][:] += np.bincount(ids, minlength=state[-1].size)

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        (units, flags, counts), (other_units, other_flags, other_counts) = state, other
        units[ids] += other_units
        flags[ids] |= other_flags
        counts[ids] += other_counts

    def counts(self, state: State) -> Index:
        """How many elements each group has."""
        return state[-1]

    def sums(self, state: State) -> PortableSums:
        """The sums of all groups; valid until more is added."""
        units, flags, _ = state
        return PortableSums(self.terms, units, flags)

    def _add_floats(self, state: State, arrays: Arrays, ids: Index) -> None:
        dtypes = self._dtypes
        if self.terms is Terms.VALUES:
            split, unit = split_values(arrays[0], dtypes[0], magnitudes=self._magnitudes), dtypes[0].min_exponent
        else:
            dtype = common_float(*dtypes) if len(dtypes) > 1 else dtypes[0]
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                x, *others = (array.astype(dtype.numpy) for array in arrays)
            [y] = others or [x]
            split, unit = split_products(x, y, dtype), 2 * dtype.min_exponent
        units, flags, _ = state
        _note(flags, split, ids)
        _gather(units, split, unit - ORIGIN[self.terms], ids)

    def _add_integers(self, state: State, arrays: Arrays, ids: Index) -> None:
        x, y = (array.astype(np.int64 if array.dtype == np.bool_ else array.dtype) for array in (arrays[0], arrays[-1]))
        terms: NDArray[Any] = x.astype(object)
        if self.terms is Terms.PRODUCTS:
            terms = terms * y.astype(object)
        elif self._magnitudes:
            terms = _each(abs, terms)
        units, flags, _ = state
        np.add.at(units, ids, terms << -ORIGIN[self.terms])
        flags[np.bincount(ids, minlength=flags.size) > 0] |= int(Flags.NOT_NEGATIVE_ZERO)


def _note(flags: Index, split: SplitTerms, ids: Index) -> None:
    nonzero = ~(split.zero & split.negative)
    marks = (
        (Flags.NAN, split.nan),
        (Flags.POS_INF, split.infinite & ~split.negative),
        (Flags.NEG_INF, split.infinite & split.negative),
        (Flags.NOT_NEGATIVE_ZERO, nonzero),
    )
    for flag, mask in marks:
        if mask.any():
            flags[np.bincount(ids[mask], minlength=flags.size) > 0] |= int(flag)


def _gather(units: NDArray[Any], split: SplitTerms, shift: int, ids: Index) -> None:
    coarse = split.exponent >> _TOGETHER
    least = int(coarse.min(initial=0))
    span = int(coarse.max(initial=0)) - least + 1
    places, inverse = np.unique(ids * span + (coarse - least), return_inverse=True)
    groups, exponents = np.divmod(places, span)
    moved = split.exponent & ((1 << _TOGETHER) - 1)
    signs = np.where(split.negative, -1.0, 1.0)
    for place, digit in enumerate(split.digits):
        sums = np.bincount(inverse.reshape(-1), weights=signs * (digit << moved)).astype(np.int64)
        where = np.flatnonzero(sums)
        up = ((exponents[where] + least) << _TOGETHER) + DIGIT * place + shift
        np.add.at(units, groups[where], sums[where].astype(object) << up.astype(object))


def _each(function: Callable[[Any], Any], array: NDArray[Any]) -> NDArray[Any]:
    return np.frompyfunc(function, 1, 1)(array)  # type: ignore[no-any-return]
