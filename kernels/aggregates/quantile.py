"""The quantiles of each group: elements that have a rank in their order, or values between two of them."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import State
from warpfold.kernels.aggregates.collected import Collected
from warpfold.kernels.aggregates.interpolated import interpolated
from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.dtypes import DType
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import Op, Result
from warpfold.kernels.ops.quantiles import between
from warpfold.kernels.parts.grouping import Index

_LARGE = 1 << 15
"""Groups of more keys are parted by NumPy, whose own loops are vectors."""

_SHARED = 1 << 20
"""So many keys and more are shared among threads."""


class Ranks:
    """The ranks in which the elements of groups are looked for: those below and above each quantile, which depend on
    how many elements a group has. Groups of equally many share them."""

    def __init__(self, op: Op, counts: Index) -> None:
        chosen = op.parameters
        self.which: Index = np.zeros(counts.size, np.int64)
        distinct = np.maximum(counts[:1], 1)
        if (counts != counts[:1]).any():
            distinct, which = np.unique(np.maximum(counts, 1), return_inverse=True)
            self.which = which.reshape(-1).astype(np.int64)
        self.quantiles = len(chosen.each_q)
        places = [[between(str(chosen.method), q, count) for q in chosen.each_q] for count in distinct.tolist()]
        self.weights = [each.weight for of_count in places for each in of_count]
        ends = [(each.low, each.high) for of_count in places for each in of_count]
        lows, highs = np.array(ends, np.int64).reshape(distinct.size, self.quantiles, 2).transpose(2, 0, 1)
        if op.neighbour is not None:
            lows = highs if op.neighbour.upper else lows
            lows = distinct[:, None] - 1 - lows if op.neighbour.descending else lows
        wanted = lows if op.result is Result.ELEMENT else np.concatenate([lows, highs], axis=1)
        self.sorted = np.sort(wanted, axis=1)
        self._places = np.argsort(np.argsort(wanted, axis=1, kind="stable"), axis=1)

    @property
    def of_weights(self) -> Index:
        """The number of the weight of each value."""
        return (self.which[:, None] * self.quantiles + np.arange(self.quantiles)).reshape(-1)

    def side(self, number: int, placed: NDArray[Any]) -> NDArray[Any]:
        """Of the keys `placed` in the sorted ranks of each group, that below each quantile (0), or above it (1)."""
        places = self._places[self.which, number * self.quantiles : (number + 1) * self.quantiles]
        return np.take_along_axis(placed, places, axis=1).reshape(-1)


class Quantile:
    """All elements of each group, in no order until the quantiles are asked for. NaNs have the largest key, so that
    they stand behind the elements that count where NaNs are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        self._op, self._dtype = op, dtype
        self._omit = omit
        self._keys = Keys(op, dtype, omit=True)

    def begun(self, groups: int = 0) -> Collected:
        """A state under way."""
        return Collected(self._keys, groups)

    def finish(self, state: State, counts: Index) -> NDArray[Any]:
        """The values of all groups, of several quantiles side by side; `Aggregate.finish` says the rest. The keys of
        the state are brought in another order."""
        keys, sizes = state
        nans, ranks = self._with_nan(keys, sizes), Ranks(self._op, counts)
        return self.values(_in_ranks(keys, sizes, ranks), ranks, nans)

    def keys_of(self, elements: NDArray[Any]) -> NDArray[Any]:
        """The keys of elements, in the same shape."""
        return self._keys.of(elements.reshape(-1)).reshape(elements.shape)

    def values(self, placed: NDArray[Any], ranks: Ranks, nans: NDArray[np.bool_] | None) -> NDArray[Any]:
        """The values of groups, of which `placed` has the keys in the sorted ranks, and `nans` are NaN."""
        low = self._keys.elements(ranks.side(0, placed))
        if self._op.result is Result.ELEMENT:
            with np.errstate(invalid="ignore"):
                values = low.astype(np.float64) if self._dtype.is_float else low
        else:
            high = self._keys.elements(ranks.side(1, placed))
            values = interpolated(low, high, ranks.weights, ranks.of_weights, self._dtype)
        if nans is not None:
            values[np.repeat(nans, ranks.quantiles)] = np.nan
        return values

    def _with_nan(self, keys: NDArray[Any], sizes: Index) -> NDArray[np.bool_] | None:
        """The groups that have a NaN, where it makes the value NaN."""
        if self._omit or not self._dtype.is_float:
            return None
        at = np.flatnonzero(keys == self._keys.none)
        if not at.size:
            return None
        nans = np.zeros(sizes.size, np.bool_)
        nans[np.searchsorted(np.cumsum(sizes), at, "right")] = True
        return nans


def _in_ranks(keys: NDArray[Any], sizes: Index, ranks: Ranks) -> NDArray[Any]:
    """The keys in the sorted ranks of each group; arbitrary ones of a group that has none."""
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    placed = np.zeros((sizes.size, ranks.sorted.shape[1]), keys.dtype)
    most = _LARGE if sizes.size > 1 else 0
    for group in np.flatnonzero(sizes > most).tolist():
        part, wanted = keys[bounds[group] : bounds[group + 1]], ranks.sorted[ranks.which[group]]
        part.partition(np.unique(wanted))
        placed[group] = part[wanted]
    if not most:
        return placed
    from warpfold.kernels.aggregates import loops  # it imports Numba

    def place(cut: tuple[int, int]) -> None:
        loops.place_ranks(keys, bounds, ranks.sorted, ranks.which, *cut, most, placed)

    threads = usable_cores() if keys.size >= _SHARED else 1
    cuts = np.searchsorted(bounds, np.linspace(0, keys.size, threads + 1)).tolist()
    cuts[0], cuts[-1] = 0, sizes.size
    if threads == 1:
        place((0, sizes.size))
    else:
        with ThreadPoolExecutor(threads, "ranks") as pool:
            list(pool.map(place, pairwise(cuts)))
    return placed
