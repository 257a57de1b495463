"""The smallest or largest element of each group, by value or by place, and the largest magnitude: minimum and maximum
of IEEE 754-2019, 9.6, where a NaN wins and −0 < +0. By place −0 equals +0, the lowest place of equals wins, and so does
the first NaN. And how far the largest element lies above the smallest one."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import UNKNOWN, Arrays, Ids, Layout, Mergeable, One, State, by_rows
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import widened
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.ops import INTEGER, Extreme, Op
from warpfold.kernels.parts.grouping import Columns, Index
from warpfold.kernels.parts.keyed import whole_numbers

_NO_PLACES = np.zeros(0, np.int64)
_WIDE = 32
"""Columns of narrower blocks are transposed: a loop along so few takes longer to begin than to end."""


class LeastKey(Mergeable):
    """The least key of each group and, for argmin and argmax, the place of the element that has it. With `omit`, NaNs
    are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._op = op
        self._dtype = dtype
        self._keys = Keys(op, dtype, omit=omit)

    def empty(self, groups: int) -> State:
        return self._state(np.full(groups, self._keys.none, self._keys.word), np.full(groups, UNKNOWN, np.int64))

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        (elements,) = arrays
        if isinstance(layout, One):
            if elements.size:
                self._take(state, *self._of_all(elements, layout))
            return
        from warpfold.kernels.aggregates import loops  # it imports Numba

        reached = (*state, _NO_PLACES)[:2]
        if isinstance(layout, Columns) and layout.width >= _WIDE:
            keys = self._keys.compiled(elements[layout.start : layout.start + layout.size])
            places = np.ascontiguousarray(layout.places)  # of one type, so that Numba compiles one version
            shape = layout.rows, layout.width, layout.outputs, places, layout.step
            loops.least_in_columns(keys, *shape, *reached)
            return
        if isinstance(layout, Ids):
            loops.least_of_ids(self._keys.compiled(elements), layout.numbers, layout.start, *reached)
            return
        rows, (flat,) = by_rows(arrays, layout)
        keys = self._keys.compiled(flat)
        loops.least_in_rows(keys, rows.bounds, rows.outputs, rows.places, rows.step, *reached)

    def _take(self, state: State, key: int, place: int) -> None:
        """Take in an element of group 0."""
        best = int(state[0][0])
        if self._op.places and (key < best or (key == best and place < state[1][0])):
            state[1][0] = place
        state[0][0] = min(best, key)

    def _state(self, keys: NDArray[Any], places: NDArray[Any]) -> State:
        return (keys, places) if self._op.places else (keys,)

    def _of_all(self, elements: NDArray[Any], layout: One) -> tuple[int, int]:
        """The key and the place of one group, by NumPy, whose own loops are as fast as any."""
        values, keys = widened(elements, self._dtype), self._keys
        if self._op.places:
            at = int(values.argmin() if self._op.extreme is Extreme.LEAST else values.argmax())
            place = layout.start + at if layout.places is None else int(layout.places[at])
            return keys.of_one(elements[at]), place
        extremes = []
        if self._op.magnitudes or self._op.extreme is Extreme.LEAST:
            extremes.append(values.min())
        if self._op.magnitudes or self._op.extreme is Extreme.MOST:
            extremes.append(values.max())
        if self._dtype.is_float and extremes[0] == 0 and not self._op.magnitudes:  # NumPy gives a zero of either sign
            signs = np.signbit(values[values == 0])
            extremes = [-0.0 if (signs.any() if self._op.extreme is Extreme.LEAST else signs.all()) else 0.0]
        return min(keys.of_one(each) for each in extremes), UNKNOWN

    def of_values(self, values: NDArray[Any], counts: Index, places: Index | None = None) -> State:
        """The state of groups of `counts` elements: `values` are the elements that were found, or their magnitudes, and
        `places` their places. Where there are no elements both are arbitrary."""
        with np.errstate(invalid="ignore", over="ignore"):
            keys = self._keys.of(values.astype(self._dtype.numpy))  # a magnitude that wraps is that of what it becomes
        present = counts > 0
        where = np.where(present, UNKNOWN if places is None else places, UNKNOWN)
        return self._state(np.where(present, keys, self._keys.word.type(self._keys.none)), where)

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        best, keys = state[0], other[0]
        if self._op.places:
            where, places = state[1], other[1]
            known = where[ids]
            nearer = (keys < best[ids]) | ((keys == best[ids]) & (places < known))
            where[ids] = np.where(nearer, places, known)
        best[ids] = np.minimum(best[ids], keys)

    def elements(self, keys: NDArray[Any]) -> NDArray[Any]:
        """The elements that were found, or their magnitudes."""
        return self._keys.elements(keys)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        if self._op.places:
            return state[1]
        elements = self._keys.elements(state[0])
        if self._dtype.is_float:
            with np.errstate(invalid="ignore"):
                return elements.astype(np.float64)
        return whole_numbers(elements.tolist()) if self._op.result_dtype(self._dtype) == INTEGER else elements


class Span(Mergeable):
    """How far the largest element of each group lies above the smallest one, rounded once. The state is those of both,
    side by side."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._dtype = dtype
        self._ends = [LeastKey(replace(op, extreme=end), dtype, omit=omit) for end in (Extreme.LEAST, Extreme.MOST)]

    def empty(self, groups: int) -> State:
        return tuple(column for end in self._ends for column in end.empty(groups))

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        for at, end in enumerate(self._ends):
            end.update(state[at : at + 1], arrays, layout)

    def of_values(self, least: NDArray[Any], most: NDArray[Any], counts: Index) -> State:
        """The state of groups of `counts` elements, of which these are the smallest and the largest ones; arbitrary
        where there are none."""
        both = zip(self._ends, (least, most), strict=True)
        return tuple(column for end, values in both for column in end.of_values(values, counts))

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        for at, end in enumerate(self._ends):
            end.merge(state[at : at + 1], other[at : at + 1], ids)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        least, most = (end.elements(state[at]) for at, end in enumerate(self._ends))
        if not self._dtype.is_float:
            return whole_numbers([high - low for low, high in zip(map(int, least), map(int, most), strict=True)])
        with np.errstate(all="ignore"):
            distances = np.asarray(most.astype(np.float64) - least.astype(np.float64))
            if self._dtype.name in ("float32", "float64"):  # two roundings are one: float64 has twice the bits and two
                return distances.astype(self._dtype.numpy).astype(np.float64)
        rounded = [_rounded(each, self._dtype) for each in distances.tolist()]
        return np.array(rounded, np.float64)


def _rounded(distance: float, dtype: DType) -> float:
    """The distance as a number of a narrow dtype."""
    if not np.isfinite(distance):
        return distance
    return round_ratio(*distance.as_integer_ratio(), 0, dtype)
