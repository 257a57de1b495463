"""The first elements of each group: by their places, from the first or the last one on, or in their order, from the
least or the largest one on. A NaN comes before all others in any order, as for min and max. Of equal elements the one
with the lower place comes first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import UNKNOWN, Arrays, Ids, Layout, Mergeable, One, State, by_rows
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import is_nan, readable
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op, Result
from warpfold.kernels.parts.grouping import Index

_WORD = np.dtype(np.int64)


class Picked(Mergeable):
    """Pairs of numbers, the least first, as many in each group as the op keeps. An op of places has pairs of a place,
    whose bits are turned over where the last one comes first, and a pattern of bits; one of an order has pairs of a key
    and a place. With `omit`, NaNs are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._op, self._dtype = op, dtype
        self._omit = omit and dtype.is_float
        self._keys = Keys(op, dtype, omit=omit)
        self._ordered = op.extreme is not None
        self._backwards = (op.parameters.n or 0) < 0
        self._pattern = np.dtype(f"int{8 * dtype.itemsize}")

    def empty(self, groups: int) -> State:
        shape, none = (groups, self._op.kept), self._keys.none if self._ordered else UNKNOWN
        return np.full(shape, none, np.int64), np.full(shape, UNKNOWN, np.int64)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        (elements,) = arrays
        if isinstance(layout, One):
            self._take(state, *self._of_all(elements, state, layout))
            return
        groups, places, elements = _spread(elements, layout)
        if self._omit and not self._ordered and (nans := is_nan(elements, self._dtype)).any():
            groups, places, elements = groups[~nans], places[~nans], elements[~nans]
        from warpfold.kernels.aggregates import loops  # it imports Numba

        pairs = self._pairs(elements, places, compiled=True)
        loops.pick(*(readable(each, _WORD) for each in (*pairs, groups.astype(np.int64, copy=False))), *state)

    def _pairs(self, elements: NDArray[Any], places: Index, *, compiled: bool) -> tuple[Index, Index]:
        if self._ordered:
            keys = self._keys.compiled(elements) if compiled else self._keys.of(elements)
            return keys.astype(np.int64), places
        return ~places if self._backwards else places, readable(elements, self._pattern).astype(np.int64)

    def _of_all(self, elements: NDArray[Any], state: State, layout: One) -> tuple[Index, Index]:
        """The pairs of one group that may be among those to keep, by NumPy."""
        places = np.arange(layout.start, layout.start + elements.size) if layout.places is None else layout.places
        kept, worst = self._op.kept, int(state[0][0, -1])
        if not self._ordered:
            some = slice(-kept, None) if self._backwards else slice(kept)
            return self._pairs(np.ascontiguousarray(elements[some]), places[some], compiled=False)
        keys = self._keys.of(elements)
        at = np.flatnonzero(keys <= worst)
        if at.size > kept:
            bound = np.partition(keys[at], kept - 1)[kept - 1]
            less, equal = at[keys[at] < bound], at[keys[at] == bound]
            at = np.concatenate([less, equal[: kept - less.size]])
        return keys[at].astype(np.int64), places[at]

    def _take(self, state: State, first: Index, second: Index) -> None:
        """Take in pairs of group 0, in no order."""
        firsts, seconds = (np.concatenate(each) for each in ((state[0][0], first), (state[1][0], second)))
        order = np.lexsort((seconds, firsts))[: self._op.kept]
        state[0][0], state[1][0] = firsts[order], seconds[order]

    def of_elements(self, elements: NDArray[Any], places: Index, kept: Index) -> State:
        """The state of groups, each of which has the first `kept` of a row of elements, of which equal ones are in the
        order of their places: arrays of shape (groups, elements)."""
        pairs = self._pairs(np.ascontiguousarray(elements).reshape(-1), places.reshape(-1), compiled=False)
        taken, nothing = np.arange(elements.shape[1]) < kept[:, None], self.empty(1)
        firsts, seconds = (
            np.where(taken, each.reshape(elements.shape), none[0, 0]) for each, none in zip(pairs, nothing, strict=True)
        )
        order = np.argsort(firsts, axis=1, kind="stable")
        return np.take_along_axis(firsts, order, 1), np.take_along_axis(seconds, order, 1)

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        firsts, seconds = (np.concatenate([mine[ids], its], axis=1) for mine, its in zip(state, other, strict=True))
        order = np.lexsort((seconds, firsts), axis=-1)[:, : self._op.kept]
        state[0][ids] = np.take_along_axis(firsts, order, 1)
        state[1][ids] = np.take_along_axis(seconds, order, 1)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """The values of all groups, of several elements side by side; those beyond its elements are arbitrary."""
        column = slice(None) if self._op.listed is not None else slice(self._op.rank, self._op.rank + 1)
        firsts, seconds = (np.ascontiguousarray(each[:, column]).reshape(-1) for each in state)
        if self._op.result is Result.INDEX:
            return seconds
        if self._ordered:
            elements = self._keys.elements(firsts.astype(self._keys.word))
        else:
            elements = seconds.astype(self._pattern).view(self._dtype.numpy)
        if not self._dtype.is_float:
            return elements
        with np.errstate(invalid="ignore"):
            return elements.astype(np.float64)


def _spread(elements: NDArray[Any], layout: Layout) -> tuple[NDArray[Any], Index, NDArray[Any]]:
    """The group and the place of each element, and the elements in the same order."""
    if isinstance(layout, Ids):
        return layout.numbers, np.arange(layout.start, layout.start + elements.size), elements
    assert not isinstance(layout, One), "all elements of one group are taken by NumPy"
    rows, (flat,) = by_rows((elements,), layout)
    lengths = np.diff(rows.bounds)
    within = np.arange(rows.bounds[0], rows.bounds[-1]) - np.repeat(rows.bounds[:-1], lengths)
    places = np.repeat(rows.places, lengths) + within * rows.step
    return np.repeat(rows.outputs, lengths), places, np.ascontiguousarray(flat[rows.bounds[0] : rows.bounds[-1]])
