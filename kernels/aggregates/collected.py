"""Elements that are kept until all have come: what ops need whose value follows from the order of the elements."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, One, State, by_rows
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.parts.grouping import Index

_FEW = 1 << 16
"""Keys of fewer elements are made by NumPy, which needs no compiler."""

_CHECKED_BYTES = 1 << 26
"""The memory is looked at each time so many bytes more are kept."""

_NO_MARKS = readable(np.zeros(0, np.uint8), np.dtype(np.uint8))


class Collected:
    """All elements as keys. Their state is the keys of all groups, one group after another, and how many each group
    has. Groups come as they are met, and one object serves one thread."""

    def __init__(self, keys: Keys, groups: int = 0) -> None:
        self._keys = keys
        self._groups = groups
        self._parts: list[tuple[NDArray[Any], NDArray[Any] | None]] = []  # keys, and their groups unless all are of 0
        self._whole: State | None = None
        self._unchecked = 0

    def update(self, arrays: Arrays, layout: Layout, groups: int = 0) -> None:
        """Take in elements of at most `groups` groups. Raises OutOfMemory, as all that follows."""
        if isinstance(layout, One):
            few = arrays[0].size <= _FEW
            self._keep((self._keys.of if few else self._keys.compiled)(arrays[0]), None, groups)
        elif isinstance(layout, Ids):
            self._keep(self._keys.compiled(arrays[0]), layout.numbers, groups)
        else:
            rows, (flat,) = by_rows(arrays, layout)
            ids = np.repeat(rows.outputs.astype(np.int32), np.diff(rows.bounds))
            self._keep(self._keys.compiled(flat[rows.bounds[0] : rows.bounds[-1]]), ids, groups)

    def merge(self, other: State, ids: NDArray[Any] | slice = slice(None), groups: int = 0) -> None:
        """Take in another state, whose group i is group ids[i] of `groups` here."""
        keys, sizes = other
        mine = np.arange(max(groups, self._groups, sizes.size), dtype=np.int32)[ids][: sizes.size]
        self._keep(keys, np.repeat(mine, sizes), groups)

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
            self._parts.append((keys, np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)))
            self._whole = None

    def _keep(self, keys: NDArray[Any], ids: NDArray[Any] | None, groups: int) -> None:
        self._groups = max(self._groups, groups, 1)
        self._scatter()
        self._parts.append((keys, ids))
        self._unchecked += keys.nbytes + (0 if ids is None else ids.nbytes)
        if self._unchecked > _CHECKED_BYTES:
            self._unchecked = 0
            require(sum(each.nbytes for each, _ in self._parts), "an op that keeps all elements")  # to arrange them

    def _arranged(self) -> State:
        parts, self._parts, sizes = self._parts, [], np.zeros(self._groups, np.int64)
        for keys, ids in parts:
            if ids is None:
                sizes[0] += keys.size
            else:
                from warpfold.kernels.aggregates import loops  # it imports Numba

                loops.marks_of_ids(_NO_MARKS, ids, sizes)
        if len(parts) == 1 and parts[0][1] is None:
            return parts[0][0].copy(), sizes
        places: Index = np.cumsum(sizes) - sizes
        whole = np.empty(sizes.sum(), self._keys.word)
        while parts:  # the memory of each is given back
            keys, ids = parts.pop()
            if ids is None:
                whole[places[0] : places[0] + keys.size] = keys
                places[0] += keys.size
            else:
                loops.bring_together(readable(keys, keys.dtype), ids, places, whole)
        return whole, sizes
