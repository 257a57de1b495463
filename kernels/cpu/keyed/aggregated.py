"""Columns by group whose states are those of `kernels.aggregates`."""

from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Folded, Ids, Mergeable, State
from warpfold.kernels.aggregates.integer_sum import IntegerSum
from warpfold.kernels.cpu.keyed.sums import Numbers
from warpfold.kernels.cpu.states import ManySums, states_by_parts
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.grouping import Index
from warpfold.kernels.ops import Terms


class AggregatedKeys:
    """All groups of a column by an aggregate. Group 0 is for the elements that are left out."""

    def __init__(self, aggregate: Mergeable) -> None:
        self._folded = Folded(aggregate, 1)

    def add(self, start: int, array: NDArray[Any], ids: Numbers, groups: int) -> None:
        """Take in the elements of `array`, shape (n,), whose first is that of row `start`."""
        self._folded.update((array,), Ids(ids, start), groups + 1)

    def merge(self, other: "AggregatedKeys", ids: Numbers, groups: int) -> None:
        """Take in all that `other` took in, whose group g is ids[g] here."""
        self._folded.merge(other._folded.rows(0, ids.size), ids, groups + 1)

    def rows(self, groups: int) -> State:
        """The state of groups 1 … `groups`."""
        return self._folded.rows(1, groups + 1)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has, of an aggregate that counts them."""
        (counts,) = self.rows(groups)
        return counts


class KeyedIntegerSums(AggregatedKeys):
    """Sums of the elements of a column of integers or truth values, of their magnitudes or their squares."""

    def __init__(self, dtype: DType, terms: Terms, *, magnitudes: bool) -> None:
        self._sum = IntegerSum((dtype,), terms, magnitudes=magnitudes)
        super().__init__(self._sum)

    def counts(self, groups: int) -> Index:
        """How many elements each of groups 1 … `groups` has."""
        return self._sum.counts(self.rows(groups))

    def sums(self, some: slice) -> ManySums:
        """The sums of the groups at some neighbouring places; group 1 is at place 0."""
        return self._sum.sums(self._folded.rows(some.start + 1, some.stop + 1))

    def states(self, groups: int) -> StateColumn:
        """The exact states of groups 1 … `groups`."""
        return states_by_parts(self.sums, self.counts(groups))
