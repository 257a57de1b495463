"""Elements of a part with the values that they belong to, how an aggregate folds them, and NaNs that are left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Aggregate, Arrays, by_rows
from warpfold.kernels.aggregates.patterns import is_nan
from warpfold.kernels.dtypes import DType
from warpfold.kernels.parts.grouping import Columns, Index, Rows


@dataclass(frozen=True, slots=True)
class GroupedPart:
    """Elements, and the values of the result that they belong to."""

    arrays: Arrays
    groups: Sequence[Rows | Columns]

    def rows(self) -> Iterator[tuple[Rows, Arrays]]:
        """The part with all elements as rows; columns are transposed."""
        return (by_rows(self.arrays, group) for group in self.groups)


class AggregatedGroups:
    """All values as the groups of an aggregate."""

    def __init__(self, aggregate: Aggregate, outputs: int) -> None:
        self._aggregate = aggregate
        self._folded, self._outputs = aggregate.begun(outputs), outputs

    def add(self, start: int, part: GroupedPart) -> None:
        for group in part.groups:
            self._folded.update(part.arrays, group)

    def merge(self, other: "AggregatedGroups") -> None:
        self._folded.merge(other._folded.rows(0, self._outputs))

    def values(self, counts: Index) -> NDArray[Any]:
        return self._aggregate.finish(self._folded.rows(0, self._outputs), counts)


class Omitted:
    """NaNs that are left out: their number for each value, and the number that replaces them."""

    def __init__(self, outputs: int, dtypes: Sequence[DType]) -> None:
        self.counts: Index = np.zeros(outputs, np.int64)
        self._dtypes = dtypes

    def replaced(self, part: GroupedPart, neutral: Sequence[float]) -> tuple[GroupedPart, bool]:
        """The part in which the number of `neutral` for its array replaces every element that is NaN, and both elements
        of a pair if one of them is NaN; and whether any element was replaced. Without such numbers NaNs are only
        counted."""
        missing = is_nan(part.arrays[0], self._dtypes[0])
        for array, dtype in zip(part.arrays[1:], self._dtypes[1:], strict=True):
            missing |= is_nan(array, dtype)
        if not missing.any():
            return part, False
        for group in part.groups:
            self._count(group, missing)
        if not neutral:
            return part, False
        arrays = []
        for array, number in zip(part.arrays, neutral, strict=True):
            kept = array.copy()
            kept[missing] = number
            arrays.append(kept)
        return GroupedPart(tuple(arrays), part.groups), True

    def _count(self, group: Rows | Columns, missing: NDArray[np.bool_]) -> None:
        if isinstance(group, Rows):
            at = np.flatnonzero(missing[group.bounds[0] : group.bounds[-1]]) + group.bounds[0]
            rows = np.searchsorted(group.bounds, at, "right") - 1
            np.add.at(self.counts, group.outputs[rows], 1)
            return
        at = np.flatnonzero(missing[group.start : group.start + group.size])
        block, place = np.divmod(at, group.rows * group.width)
        np.add.at(self.counts, group.outputs[block] + place % group.width, 1)
