"""The first elements of many values on a GPU, in their order or by their places. The GPU finds which they are, and the
host puts these few in order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import UNKNOWN, State
from warpfold.kernels.aggregates.picked import Picked
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.picks.kernels import COUNT_PICKS, WRITE_PICKS, RowsLaunch, kernel, launches
from warpfold.kernels.cuda.ranks.rows import THREADS, ValueRows, keys_of_rows
from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Extreme, Op
from warpfold.kernels.parts.grouping import Index

_DESCENDING, _ZEROS, _BY_PLACE = 1, 2, 4
"""As in include/picks.cuh."""


class PicksOnGpu:
    """The elements of each row that `op` keeps: the state that `aggregate` has. `nans` says how many elements of each
    row are NaN, and with `omit_nan` these are left out. With `first` the only row is a part of a value, from the
    element of this index on. An op of places has the one element alone that its value is, unless there are other parts.
    To be used while `gpu.active()`."""

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, rows: ValueRows, dtype: DType, op: Op, aggregate: Picked, nans: Index, *, omit_nan: bool,
        first: int | None,
    ) -> None:  # fmt: skip
        self._gpu, self._rows, self._dtype, self._op, self._aggregate = gpu, rows, dtype, op, aggregate
        self._nans, self._omit_nan = nans, omit_nan
        self._entered: Index = rows.lengths - nans if omit_nan else rows.lengths
        self._alone, self._first = op.extreme is None and first is None, first or 0
        self._picked: tuple[NDArray[Any], Index, Index] | None = None

    def start(self) -> None:
        """Have the elements found; waits for the work."""
        op, kept = self._op, self._op.kept
        taken: Index = np.minimum(self._entered, kept)
        if op.extreme is not None:
            self._picked = (*self._pick(np.zeros_like(taken), taken, kept), taken)
            return
        skipped = np.zeros_like(taken)
        if self._alone:
            taken, skipped, kept = (self._entered > op.rank).astype(np.int64), skipped + op.rank, 1
        if (op.parameters.n or 0) < 0:
            skipped = self._entered - skipped - taken
        picked = self._pick if self._omit_nan and self._nans.any() else self._at
        self._picked = (*picked(np.maximum(skipped, 0), taken, kept), taken)

    def state(self) -> State:
        """The pairs that the aggregate keeps of each row. Of a single one all columns have it."""
        assert self._picked is not None, "start comes first"
        elements, places, taken = self._picked
        made = self._aggregate.of_elements(elements.view(self._dtype.numpy), places + self._first, taken)
        if not self._alone:
            return made
        return tuple(np.broadcast_to(each, (each.shape[0], self._op.kept)) for each in made)

    def _at(self, skipped: Index, taken: Index, kept: int) -> tuple[NDArray[Any], Index]:
        """The `taken` elements of each row behind those that are `skipped`, and their places."""
        import cupy

        places = skipped[:, None] + np.arange(kept)
        places = np.where(np.arange(kept) < taken[:, None], places, 0)
        where = np.minimum(self._rows.starts[:, None] + places, max(0, self._rows.array.size - 1))
        if not self._rows.array.size:
            return np.zeros(where.shape, carrier(self._dtype)), places
        return self._rows.array[cupy.asarray(where.reshape(-1))].get().reshape(where.shape), places

    def _pick(self, skipped: Index, taken: Index, kept: int) -> tuple[NDArray[Any], Index]:
        """The elements of each row that come first, and their places, side by side; equal ones are in the order of
        their places. Behind them come arbitrary ones."""
        import cupy

        word = np.dtype(f"uint{8 * self._dtype.itemsize}")
        how, shift, bounds = self._bounds(taken, word)
        bounds, to_skip, to_take = (cupy.asarray(each) for each in (bounds, skipped, taken))
        elements, places = cupy.zeros(taken.size * kept, word), cupy.full(taken.size * kept, UNKNOWN, np.int64)
        for launch in launches(self._rows):
            order = (bounds[launch.value :], launch.step, np.uint32(how), np.int32(shift))
            counts = cupy.zeros(2 * launch.rows, np.uint32)
            grid = -(-launch.rows * 32 // THREADS)
            arguments = (launch.array, *launch.bounds, *order, counts)
            kernel(self._gpu, COUNT_PICKS, self._dtype)(grid, THREADS, arguments)
            slots = _slots(launch, counts.reshape(-1, 2).astype(np.int64), to_skip, to_take, kept)
            written = (*arguments, slots, elements, places)
            kernel(self._gpu, WRITE_PICKS, self._dtype)(grid, THREADS, written)
        shape = (taken.size, kept)
        return elements.get().view(carrier(self._dtype)).reshape(shape), places.get().reshape(shape)

    def _bounds(self, taken: Index, word: "np.dtype[Any]") -> tuple[int, int, NDArray[Any]]:
        """How elements are told from each other, as `Order` of include/picks.cuh has it, and the key of the last
        element of each row that is taken."""
        op, floats, lengths, nans = self._op, self._dtype.is_float, self._rows.lengths, self._nans
        if op.extreme is None:
            return _BY_PLACE, 0, np.zeros(taken.size, word)
        descending = op.extreme is Extreme.MOST
        # Sorting keys put NaN last.
        ranks = lengths - nans - taken + (0 if self._omit_nan else nans) if descending else taken - 1
        if not self._omit_nan:
            ranks = np.where(taken <= nans, lengths - 1, ranks if descending else ranks - nans)
        distinct, which = np.maximum(ranks[:1], 0), np.zeros(ranks.size, np.int64)
        if (ranks != ranks[:1]).any():
            distinct, which = np.unique(np.maximum(ranks, 0), return_inverse=True)
            which = which.reshape(-1).astype(np.int64)
        keys = keys_of_rows(self._gpu, self._rows, self._dtype, distinct[:, None], which).get()[:, 0]
        if floats and op.places:
            zero = word.type(1 << (8 * word.itemsize - 1))
            keys = np.where(keys == zero - word.type(1), zero, keys)
        shift = 0 if not floats or self._omit_nan != descending else -1 if descending else 1
        keys = (~keys if descending else keys) + word.type(shift % (1 << (8 * word.itemsize)))
        return _DESCENDING * descending | _ZEROS * op.places, shift, keys


def _slots(launch: RowsLaunch, counts: Any, skipped: Any, taken: Any, kept: int) -> Any:
    """`PickSlots` of include/picks.cuh of each row of a launch, of whose elements `counts` are on the sides 0 and 1."""
    import cupy

    before, equal = counts[:, 0], counts[:, 1]
    rows = cupy.arange(launch.rows, dtype=np.int64)
    if launch.step:
        base, first = rows * kept, rows * 0
        least, most = base + before, base + taken
        return cupy.stack([base, least - skipped, least, most, first], axis=1)
    base, value = rows * 0 + launch.value * kept, launch.value
    least, most = base + before.sum(), base + taken[value]
    earlier = cupy.cumsum(equal) - equal - skipped[value]
    return cupy.stack([base + cupy.cumsum(before) - before, least + earlier, least, most, rows * launch.part], axis=1)
