"""The interface of an aggregate, and the layouts in which elements come to their groups.

An aggregate says what the elements of groups come to. Its state is some arrays, a row a group: a whole array is one
group. Threads, partitions, other processes and other devices have such states, and `merge` puts any of them together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import grown
from warpfold.kernels.parts.grouping import Columns, Index, Rows

State = tuple[NDArray[Any], ...]
"""Arrays of shape (groups,) or (groups, n), which travel between processes as they are. Of an aggregate that keeps all
elements, the first has the elements, one group after another."""

UNKNOWN = np.iinfo(np.int64).max
"""The place of an element in a group that has none."""


@dataclass(frozen=True, slots=True)
class One:
    """All elements belong to group 0. Their places there are `places`, or start, start + 1, …"""

    start: int = 0
    places: Index | None = None


@dataclass(frozen=True, slots=True)
class Ids:
    """Element i belongs to group numbers[i], and has the place start + i there. The numbers are an array of int32 or
    int64, shape (elements,)."""

    numbers: NDArray[Any]
    start: int = 0


Layout = One | Rows | Columns | Ids


Arrays = tuple[NDArray[Any], ...]
"""The elements of one source, or of two side by side: arrays of shape (n,), contiguous, native byte order."""


class Mergeable(Protocol):
    """A state of elements, a row a group. An order of updates and merges never shows in it."""

    def begun(self, groups: int = 0) -> "Folded":
        """A state under way, of so many groups that have no elements."""
        return Folded(self, groups)

    def empty(self, groups: int) -> State:
        """The state of groups that have no elements."""
        ...

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        """Take in elements, or pairs of them, whose groups `layout` says."""
        ...

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        """Take in another state, whose group i is group ids[i] here. No two groups are the same one."""
        ...


class Aggregate(Protocol):
    """What the elements of a group come to, of an op that adds nothing up."""

    def begun(self, groups: int = 0) -> "UnderWay":
        """A state under way, of so many groups that have no elements."""
        ...

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """The values of all groups, where `counts` elements entered each, shape (groups,): floats as float64, and
        integers as any integer dtype or as Python's integers. A group without elements gets an arbitrary value. Raises
        InvalidInput where elements have no value."""
        ...


class UnderWay(Protocol):
    """A state to which elements come. Groups come as they are met, and one object serves one thread."""

    def update(self, arrays: Arrays, layout: Layout, groups: int = 0) -> None:
        """Take in elements of at most `groups` groups. Raises OutOfMemory, as all that follows."""
        ...

    def merge(self, other: State, ids: NDArray[Any] | slice = slice(None), groups: int = 0) -> None:
        """Take in another state, whose group i is group ids[i] of `groups` here."""
        ...

    def rows(self, first: int, stop: int) -> State:
        """The state of the groups first … stop − 1."""
        ...


class Folded:
    """A state under way that has a row a group. Groups come as they are met, and one object serves one thread."""

    def __init__(self, aggregate: Mergeable, groups: int = 0) -> None:
        self._aggregate = aggregate
        self.state = aggregate.empty(groups)

    def update(self, arrays: Arrays, layout: Layout, groups: int = 0) -> None:
        self._hold(groups)
        self._aggregate.update(self.state, arrays, layout)

    def merge(self, other: State, ids: NDArray[Any] | slice = slice(None), groups: int = 0) -> None:
        self._hold(groups)
        self._aggregate.merge(self.state, other, ids)

    def rows(self, first: int, stop: int) -> State:
        self._hold(stop)
        return tuple(column[first:stop] for column in self.state)

    def _hold(self, groups: int) -> None:
        known = len(self.state[0])
        if known < groups:
            larger = tuple(grown(column, groups) for column in self.state)
            for column, nothing in zip(larger, self._aggregate.empty(len(larger[0]) - known), strict=True):
                column[known:] = nothing
            self.state = larger


def by_rows(arrays: Arrays, layout: Rows | Columns) -> tuple[Rows, Arrays]:
    """The elements as rows: columns are transposed."""
    if isinstance(layout, Rows):
        return layout, arrays
    return layout.as_rows(), tuple(layout.turned(array) for array in arrays)


def runs(elements: NDArray[Any], layout: Layout) -> Iterator[tuple[int, NDArray[Any]]]:
    """Groups, and elements that belong to each."""
    if isinstance(layout, One):
        yield 0, elements
        return
    if isinstance(layout, Ids):
        order = np.argsort(layout.numbers, kind="stable")
        groups, starts = np.unique(layout.numbers[order], return_index=True)
        yield from zip(groups.tolist(), np.split(elements[order], starts[1:]), strict=True)
        return
    rows, (flat,) = by_rows((elements,), layout)
    for row, group in enumerate(rows.outputs.tolist()):
        yield group, flat[rows.bounds[row] : rows.bounds[row + 1]]
