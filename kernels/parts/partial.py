"""Partial results: what a part of the elements adds to each group. A part is a thread's share, a partition, a block of
a table of states; it may be reduced on another machine.

Partial results of an op that adds are exact states, so that parts in any order give the bits of the whole, and a value
is rounded once. Ops that select or count elements never round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.by_name import op_of_values, selecting
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import SUMS_OF_MOMENTS, Op, Terms
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import whole_numbers


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """The partial results of an op, a row for each group. `states` has the columns of its states: an op that adds has
    exact states (a variance those of two sums), any other the arrays of its aggregate's state, and behind them how many
    elements entered. `dtypes` are those of the elements, of an op of two arrays of both; `label` is the name of the
    column that the elements come from."""

    dtypes: tuple[str, ...]
    states: tuple[StateColumn | NDArray[Any], ...]
    label: str | None = None

    @classmethod
    def selected(
        cls, op: Op, dtypes: tuple[str, ...], counts: Index, values: NDArray[Any], places: Index | None
    ) -> "PartialColumn":
        """The partial results of an op that adds nothing up: `values` are those of `op_of_values`, and `places` those
        of the elements that argmin or argmax gives."""
        return cls(dtypes, (*selecting(op, DTYPES[dtypes[0]]).of_values(values, counts, places), counts))

    def check_like(self, other: "PartialColumn") -> None:
        """Raise InvalidInput where two parts have other dtypes."""
        if self.dtypes != other.dtypes:
            listed = [" and ".join(each) for each in (self.dtypes, other.dtypes)]
            raise InvalidInput(f"a partition has {listed[0]}, and another {listed[1]}: all partitions need one dtype")


@dataclass(frozen=True, slots=True)
class KeyedGroups:
    """Groups that keys tell apart: the names of the keys and an array of pyarrow for each, the place of the first row
    of each group among all rows, and its number of rows. `dropped` says how many rows had a null key."""

    names: tuple[str, ...]
    arrays: tuple[Any, ...]
    firsts: Index
    sizes: Index
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class PartialTable:
    """The partial results of a part, a row for each group and a column for each op. `groups` are the keys of the groups
    or their numbers; a whole array is group 0."""

    groups: Index | KeyedGroups
    columns: tuple[PartialColumn, ...]

    @property
    def rows(self) -> int:
        """How many rows there were, of a part with keys."""
        assert isinstance(self.groups, KeyedGroups), "rows have keys"
        return int(self.groups.sizes.sum()) + self.groups.dropped

    @property
    def nbytes(self) -> int:
        """About how many bytes the table takes in a message."""
        keys = self.groups
        arrays: list[Any] = [keys.firsts, keys.sizes, *keys.arrays] if isinstance(keys, KeyedGroups) else [keys]
        return sum(int(array.nbytes) for array in (*arrays, *(state for each in self.columns for state in each.states)))


_ADDED: Mapping[Terms, tuple[str, ...]] = MappingProxyType(
    {Terms.VALUES: ("sum",), Terms.PRODUCTS: ("sum_squares",), Terms.MOMENTS: SUMS_OF_MOMENTS}
)


def ops_of_parts(op: Op) -> tuple[str, ...]:
    """The ops by whose states those of `op` are made or, of an op that adds nothing up, by whose values: the first then
    says which elements and how many, the last what they are."""
    if op.adds:
        return (op.name,) if op.magnitudes or op.sources > 1 else _ADDED[op.terms]
    return (op.name, op_of_values(op)) if op.places else (op_of_values(op),)


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
