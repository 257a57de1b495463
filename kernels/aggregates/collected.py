"""Elements that are kept until all have come: what ops need whose value follows from the order of the elements; and how
many different elements each group has, and the most frequent one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, One, State, by_rows
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op
from warpfold.kernels.parts.grouping import Index

_FEW = 1 << 16
"""Keys of fewer elements are made by NumPy, which needs no compiler."""

_CHECKED_BYTES = 1 << 26
"""The memory is looked at each time so many bytes more are kept."""

_NO_MARKS = readable(np.zeros(0, np.uint8), np.dtype(np.uint8))


@dataclass(frozen=True, slots=True)
class _KeptKeys:
    """Keys, and the group of each or, with `lengths`, of each run of so many."""

    keys: NDArray[Any]
    groups: NDArray[Any]
    lengths: Index | None = None

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.groups.nbytes

    def count(self, sizes: Index) -> None:
        """Add to the sizes of the groups."""
        from warpfold.kernels.aggregates import loops  # it imports Numba

        if self.lengths is None:
            loops.marks_of_ids(_NO_MARKS, self.groups, sizes)
        else:
            np.add.at(sizes, self.groups, self.lengths)

    def bring(self, places: Index, whole: NDArray[Any]) -> None:
        """Write the keys to the places of their groups, which are those behind them then."""
        from warpfold.kernels.aggregates import loops  # it imports Numba

        keys = readable(self.keys, self.keys.dtype)
        if self.lengths is None:
            loops.bring_together(keys, self.groups, places, whole)
        else:
            loops.bring_runs(keys, self.groups, self.lengths, places, whole)


class Collected:
    """All elements as keys. Their state is the keys of all groups, one group after another, and how many each group
    has. Groups come as they are met, and one object serves one thread."""

    def __init__(self, keys: Keys, groups: int = 0) -> None:
        self._keys = keys
        self._groups = groups
        self._parts: list[_KeptKeys] = []
        self._whole: State | None = None
        self._unchecked = 0

    def update(self, arrays: Arrays, layout: Layout, groups: int = 0) -> None:
        """Take in elements of at most `groups` groups. Raises OutOfMemory, as all that follows."""
        if isinstance(layout, One):
            few = arrays[0].size <= _FEW
            keys = (self._keys.of if few else self._keys.compiled)(arrays[0])
            self._keep(_KeptKeys(keys, np.zeros(1, np.int64), np.array([keys.size])), groups)
        elif isinstance(layout, Ids):
            self._keep(_KeptKeys(self._keys.compiled(arrays[0]), layout.numbers), groups)
        else:
            rows, (flat,) = by_rows(arrays, layout)
            keys = self._keys.compiled(flat[rows.bounds[0] : rows.bounds[-1]])
            self._keep(_KeptKeys(keys, rows.outputs, np.diff(rows.bounds)), groups)

    def merge(self, other: State, ids: NDArray[Any] | slice = slice(None), groups: int = 0) -> None:
        """Take in another state, whose group i is group ids[i] of `groups` here."""
        keys, sizes = other
        mine = np.arange(max(groups, self._groups, sizes.size))[ids][: sizes.size]
        self._keep(_KeptKeys(keys, mine, sizes), groups)

    def rows(self, first: int, stop: int) -> State:
        """The state of the groups first … stop − 1."""
        self._hold(stop)
        keys, sizes = self._whole = self._whole or self._arranged()
        before, behind = int(sizes[:first].sum()), int(sizes[stop:].sum())
        return keys[before : keys.size - behind], sizes[first:stop]

    def _hold(self, groups: int) -> None:
        if groups > self._groups:
            self._groups = groups
            self._scatter()

    def _scatter(self) -> None:
        """Have the arranged keys as a part, to which others may come."""
        if self._whole is not None:
            keys, sizes = self._whole
            self._parts.append(_KeptKeys(keys, np.arange(sizes.size), sizes))
            self._whole = None

    def _keep(self, part: _KeptKeys, groups: int) -> None:
        self._groups = max(self._groups, groups, 1)
        self._scatter()
        self._parts.append(part)
        self._unchecked += part.nbytes
        if self._unchecked > _CHECKED_BYTES:
            self._unchecked = 0
            require(sum(each.keys.nbytes for each in self._parts), "an op that keeps all elements")  # to arrange them

    def _arranged(self) -> State:
        parts, self._parts, sizes = self._parts, [], np.zeros(self._groups, np.int64)
        for part in parts:
            part.count(sizes)
        if self._groups == 1:
            return np.concatenate([np.empty(0, self._keys.word), *(part.keys for part in parts)]), sizes
        places, whole = np.cumsum(sizes) - sizes, np.empty(sizes.sum(), self._keys.word)
        while parts:  # the memory of each is given back
            parts.pop().bring(places, whole)
        return whole, sizes


class Distinct:
    """All elements of each group, until they are put in order. −0 and 0 are one, and so are all NaNs, which are left
    out with `omit`."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._omit = omit and dtype.is_float
        self._keys = Keys(op, dtype, omit=True)

    def begun(self, groups: int = 0) -> Collected:
        """A state under way."""
        return Collected(self._keys, groups)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """How many different elements each group has. The keys of the state are brought in another order."""
        keys, sizes = state
        if sizes.size == 1:
            keys.sort()
            ends = keys[keys != self._keys.none] if self._omit else keys
            return np.array([ends.size and 1 + np.count_nonzero(ends[1:] != ends[:-1])], np.int64)
        from warpfold.kernels.aggregates import loops  # it imports Numba

        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        distinct = np.zeros(sizes.size, np.int64)
        loops.count_distinct(keys, bounds, self._keys.none, self._omit, distinct)
        return distinct


class MostFrequent:
    """All elements of each group, until they are put in order. −0 and 0 are one. A NaN makes the value NaN; with `omit`
    NaNs are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._dtype, self._omit = dtype, omit
        self._keys = Keys(op, dtype, omit=True)

    def begun(self, groups: int = 0) -> Collected:
        """A state under way."""
        return Collected(self._keys, groups)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """The most frequent element of each group. The keys of the state are brought in another order."""
        from warpfold.kernels.aggregates import loops  # it imports Numba

        keys, sizes = state
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        modes = np.zeros(sizes.size, self._keys.word)
        loops.most_frequent(keys, bounds, self._keys.none, self._dtype.is_float, self._omit, modes)
        elements = self._keys.elements(modes)
        if not self._dtype.is_float:
            return elements
        with np.errstate(invalid="ignore"):
            return elements.astype(np.float64)
