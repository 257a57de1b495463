"""How many elements of each group lie in each bin. Elements are compared with the edges exactly, whatever their dtype:
an edge stands for the first key from it on."""

from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf, isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Arrays, Ids, Layout, Mergeable, One, State, by_rows
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.ops import Op, Parameters
from warpfold.kernels.parts.grouping import Index

_FEW = 1 << 16
"""So many elements of one group are sorted into bins by NumPy, which needs no compiler."""

_WORD = np.dtype(np.int64)


def edges_of(parameters: Parameters) -> NDArray[np.float64]:
    """The edges of the bins, as NumPy has them; without bins one that holds all numbers."""
    if parameters.bin_count is None:
        return np.array([-inf, inf])
    if isinstance(parameters.bins, tuple):
        return np.array(parameters.bins, np.float64)
    assert parameters.range is not None, "a number of bins has a range"
    return np.linspace(*parameters.range, parameters.bin_count + 1)


class Histogram(Mergeable):
    """The counts of all bins of each group. A NaN lies in none."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._op, self._dtype = op, dtype
        self._keys = Keys(op, dtype, omit=True)
        edges = edges_of(op.parameters).tolist()
        self.bins = len(edges) - 1
        self._ends = [_neighbours(edge, dtype) for edge in edges]
        lows = [self._key(*ends, dtype) for ends in self._ends]
        self._first: Index = np.array([key for key, _ in lows if key is not None], np.int64)
        self._last = lows[-1][1]

    def _key(self, above: Any, below: Any, dtype: DType) -> tuple[int | None, int | None]:
        """The keys of the least element from an edge on, and of the largest one up to it; None where there is none."""
        ends = [None if each is None else np.array([each]).astype(dtype.numpy) for each in (above, below)]
        low, high = (None if each is None else int(self._keys.of(each)[0]) for each in ends)
        return low, high

    def ends(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The least element of the dtype from each edge on, as far as there is one, and the largest one up to the last
        edge, shape (1,)."""
        word, last = self._dtype.numpy, self._ends[-1][1]
        firsts = [np.array([first]).astype(word) for first, _ in self._ends if first is not None]
        return np.concatenate([np.empty(0, word), *firsts]), None if last is None else np.array([last]).astype(word)

    def empty(self, groups: int) -> State:
        return (np.zeros((groups, self.bins), np.int64),)

    def update(self, state: State, arrays: Arrays, layout: Layout) -> None:
        (counts,), (elements,) = state, arrays
        if self._last is None or not self._first.size:
            return  # no element of the dtype lies among the edges
        if isinstance(layout, One) and elements.size <= _FEW:
            keys = self._keys.of(elements)
            bins = np.searchsorted(self._first, keys[keys <= self._last], "right") - 1
            bins = np.minimum(bins[bins >= 0], self.bins - 1)
            counts[0] += np.bincount(bins, minlength=self.bins)
            return
        from warpfold.kernels.aggregates import loops  # it imports Numba

        if isinstance(layout, One):
            groups = np.zeros(0, np.int64)
        elif isinstance(layout, Ids):
            groups = layout.numbers.astype(np.int64, copy=False)
        else:
            rows, (flat,) = by_rows(arrays, layout)
            groups = np.repeat(rows.outputs, np.diff(rows.bounds))
            elements = np.ascontiguousarray(flat[rows.bounds[0] : rows.bounds[-1]])
        keys = self._keys.compiled(elements).astype(np.int64)
        arguments = self._first, np.int64(self._last), *self._starts
        loops.count_bins(readable(keys, _WORD), readable(groups, _WORD), *arguments, counts)

    @cached_property
    def _starts(self) -> tuple[np.uint64, Index]:
        """How far the distance of a key from the first edge is shifted to make its digit, of at most 16 bits, and the
        bin in which the first key of each digit lies."""
        assert self._last is not None, "there is a last key"
        span = self._last - int(self._first[0])
        shift = np.uint64(max(0, span.bit_length() - 16))
        digits = max(0, span >> int(shift)) + 1
        offsets = self._first.view(np.uint64) - self._first.view(np.uint64)[0]
        starts = np.searchsorted(offsets, np.arange(digits + 1, dtype=np.uint64) << shift, "right") - 1
        starts[-1] = self._first.size - 1  # the key behind the last digit may be beyond 64 bits
        return shift, starts

    def merge(self, state: State, other: State, ids: NDArray[Any] | slice) -> None:
        state[0][ids] += other[0]

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """The counts of all groups, of several bins side by side."""
        return state[0].reshape(-1) if self._op.part is None else np.ascontiguousarray(state[0][:, self._op.part])


def _neighbours(edge: float, dtype: DType) -> tuple[Any, Any]:
    """The least element of `dtype` from the edge on, and the largest one up to it; None where there is none. −0 is less
    than 0 among keys, and equals it here."""
    if not dtype.is_float:
        width = 8 * dtype.itemsize
        least = -(1 << (width - 1)) if dtype.kind is Kind.INT else 0
        most = 1 if dtype.kind is Kind.BOOL else (1 << (width - (dtype.kind is Kind.INT))) - 1
        if isinf(edge):
            return (least, None) if edge < 0 else (None, most)
        low, high = max(ceil(edge), least), min(floor(edge), most)
        return low if low <= most else None, high if high >= least else None
    if edge == 0:
        return -0.0, 0.0
    if isinf(edge):
        return edge, edge
    above, below = _beside(edge, dtype), -_beside(-edge, dtype)
    return -0.0 if above == 0 else above, 0.0 if below == 0 else below


def _beside(edge: float, dtype: DType) -> float:
    """The least number of a float dtype from a finite number on."""
    top = max(int(np.frexp(edge)[1]) - dtype.precision, dtype.min_exponent)
    rounded = ceil(Fraction(edge) / Fraction(2) ** top)
    largest = Fraction((1 << dtype.precision) - 1) * Fraction(2) ** (dtype.max_exponent - dtype.precision)
    number = rounded * Fraction(2) ** top
    return inf if number > largest else float(max(number, -largest))
