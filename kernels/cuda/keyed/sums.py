"""Exact sums and means of the rows of each key on a GPU, from a column of integer keys and a column of elements.

A sample of the rows decides which kernels run (`shapes.py`): how far the keys reach, and which levels the elements
need. What the sample did not show is noticed and costs another pass, never a bit of a result.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.exact.finishing import Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.cuda.grouped.layouts import OffsetsLayout
from warpfold.kernels.cuda.grouped.totals import FinishedValues, GroupedTotals
from warpfold.kernels.cuda.grouped.values import Rounding
from warpfold.kernels.cuda.keyed.adding import (
    CODE,
    LISTED,
    MISSED,
    NEGATIVE_ZEROS,
    NOTES,
    UNSORTED,
    KeyedAdder,
    KeyedState,
    add_listed,
    integers,
    pattern,
    rounded,
)
from warpfold.kernels.cuda.keyed.sample import KeyedSample, Reach
from warpfold.kernels.cuda.keyed.shapes import (
    MOST_LEVELS,
    MOST_LISTED,
    SHAPES,
    KeyedShapes,
    held_key,
    held_value,
    least_kernel,
    rows_kernel,
    unit_of,
    zeros_kernel,
)
from warpfold.kernels.cuda.keyed.states import (
    NOT_NEGATIVE_ZERO,
    GroupTotals,
    limbs_of_levels,
    totals_of_integers,
    totals_of_limbs,
)
from warpfold.kernels.cuda.keyed.stream import SortedStream, StreamedGroups
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.parts.grouping import Index

_SPARSE, _DENSE = 8, 1 << 22
"""Keys may reach over so many times the rows, or over so many numbers."""

MOST_ROWS = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Groups in the order of their keys: CuPy arrays of the keys (int64, or uint64 of such keys) and of how many
    elements each has (`counts`), and how many NaNs were left out of each, or None."""

    keys: Any
    counts: Any
    omitted: Any | None


class KeyedSums:
    """The sums of `values`, a CuPy array of `dtype`, by `keys`, one of the integers or bools `key` of the same length.
    With `omit_nan` elements that are NaN are left out. `reach` says how far the keys reach where that is known. With
    `keep` the sums are kept as integers, for `totals`. To be used while `gpu.active()`.

    `strategy` names what was chosen and `levels` how many levels elements took, once `add` has run.
    """

    def __init__(
        self,
        gpu: Gpu,
        keys: Any,
        key: DType,
        values: Any,
        dtype: DType,
        *,
        omit_nan: bool = False,
        shapes: KeyedShapes | None = None,
        reach: Reach | None = None,
        keep: bool = False,
    ) -> None:
        if keys.size > MOST_ROWS:
            raise OutOfMemory(f"a GPU groups at most {MOST_ROWS:,} rows at a time, and these are {keys.size:,}")
        self._gpu, self._reach, self._keep = gpu, reach, keep
        held, elements = held_key(key), held_value(dtype)
        self._rows = KeyedAdder(
            gpu,
            SHAPES if shapes is None else shapes,
            _held(keys, key, held),
            held,
            _held(values, dtype, elements),
            elements,
            omit_nan,
        )
        self._state: KeyedState | None = None
        self._notes: NDArray[np.uint32] = np.zeros(NOTES, np.uint32)
        self._known: Any = None
        self._runs: tuple[Any, Any, Any] | None = None
        self._stream: SortedStream | None = None
        self._streamed: dict[bool, StreamedGroups] = {}
        self._present: Any = None
        self._ahead: Any = None
        self.strategy = ""
        self.levels = 0

    @property
    def held(self) -> DType:
        """The dtype that holds elements."""
        return self._rows.dtype

    # How they are added up

    def add(self) -> None:
        """Add everything up; the sums stay on the GPU."""
        rows = self._rows
        if not rows.count:
            self.strategy = "none"
            return
        sample = KeyedSample.of(self._gpu, rows.keys, rows.key, rows.values, rows.dtype)
        rows.reach = sample.reach if self._reach is None else replace(self._reach, sorted=sample.reach.sorted)
        self._stream = None if self._keep else SortedStream.of(self._gpu, rows, sample)
        if self._stream is not None:
            streamed = self._stream.groups(mean=False)
            if isinstance(streamed, StreamedGroups):
                self._streamed[False] = streamed
                self.strategy, self.levels = "stream", self._stream.planes
                return
            self._stream, rows.reach = None, replace(rows.reach, sorted=streamed)
        levels = sample.levels(rows.dtype, rows.count)
        for _ in range(4 + MOST_LEVELS):
            if levels is None:
                self._sort()
                return
            rows.levels, rows.unit = levels
            if not self._dense():
                self._number()
            self._state = KeyedState.of(rows.levels, rows.reach.range)
            self.strategy = rows.add(self._state)
            ahead = self._rounded_ahead(self._state)
            notes = self._state.notes.get()
            if notes[MISSED]:
                least, most = int(rows.keys.min()), int(rows.keys.max())
                rows.reach = Reach(least, most - least + 1, rows.reach.sorted)
            if notes[UNSORTED]:
                rows.reach = replace(rows.reach, sorted=False)
            if notes[LISTED] > MOST_LISTED:
                levels = (rows.levels + 1, rows.unit) if rows.levels < MOST_LEVELS else None
            elif not notes[MISSED] and not notes[UNSORTED]:
                self._notes, self.levels = notes, rows.levels
                self._ahead = None if notes[NEGATIVE_ZEROS] or notes[LISTED] else ahead
                return
        raise AssertionError("keys reach no farther than the least and the most, and levels are few")

    def _number(self) -> None:
        """Have the keys replaced by their ranks, for they reach too far."""
        import cupy

        self._known, ranks = cupy.unique(self._rows.keys, return_inverse=True)
        self._rows.keys, self._rows.key = ranks.reshape(-1).astype(np.uint32), CODE
        self._rows.reach = Reach(0, int(self._known.size), self._rows.reach.sorted)

    def _sort(self) -> None:
        """Have the rows sorted, for the elements have too many exponents."""
        import cupy

        order = cupy.argsort(self._rows.keys)
        keys, values = self._rows.keys[order], self._rows.values[order]
        offsets = cupy.concatenate(
            [
                cupy.zeros(1, np.int64),
                cupy.flatnonzero(keys[1:] != keys[:-1]) + 1,
                cupy.full(1, self._rows.count, np.int64),
            ]
        )
        self._runs = keys[offsets[:-1]], values, offsets
        self._state = None
        self.strategy = "sorted"

    # What comes out

    def groups(self) -> GroupedRows:
        """The keys that there are, and their counts."""
        import cupy

        if self._streamed:
            streamed = self._streamed[False]
            omitted = cupy.zeros(streamed.counts.size, np.uint32) if self._rows.omit_nan else None
            if self._dense():
                self._present = self._wide(streamed.keys) - streamed.keys.dtype.type(self._rows.reach.least)
            return GroupedRows(self._wide(streamed.keys), streamed.counts, omitted)
        if self._runs is not None:
            keys, _, offsets = self._runs
            counts, omitted = cupy.diff(offsets), self._run_values(mean=False).omitted if self._rows.omit_nan else None
            return GroupedRows(self._named(keys), counts if omitted is None else counts - omitted, omitted)
        if self._state is None:
            return GroupedRows(cupy.zeros(0, np.int64), cupy.zeros(0, np.int64), None)
        state = self._state
        row_counts = state.counts if not self._rows.omit_nan else state.counts + state.absent
        present = cupy.flatnonzero(row_counts)
        self._present = None if int(present.size) == state.range else present
        keys = present.astype(np.uint64) + np.uint64(self._rows.reach.least % (1 << 64))
        keys = keys if self._rows.key.kind is Kind.UINT and self._rows.key.itemsize == 8 else keys.view(np.int64)
        omitted = self._compact(state.absent) if self._rows.omit_nan else None
        return GroupedRows(self._named(keys), self._compact(state.counts), omitted)

    def _named(self, keys: Any) -> Any:
        return self._wide(keys) if self._known is None else self._known[keys]

    @staticmethod
    def _wide(keys: Any) -> Any:
        return keys if keys.dtype == np.uint64 else keys.astype(np.int64)

    def _compact(self, array: Any) -> Any:
        return array if self._present is None else array[self._present]

    def dense(self, *, mean: bool = False) -> Any:
        """The values of all codes from the least key on, a CuPy array; 0 where there is no element. Of integers sums
        are two arrays, of uint64 and of int64, the lower and the upper words."""
        state = self._state
        assert state is not None, "sorted rows have no codes"
        if not self._rows.dtype.is_float and not mean:
            return integers(self._rows, state)
        if self._ahead is not None and not mean:
            return self._ahead
        values = rounded(self._rows, state, self._other_than_zero(), mean=mean)
        add_listed(self._rows, state, int(self._notes[LISTED]), values, mean=mean)
        return values

    def _rounded_ahead(self, state: KeyedState) -> Any:
        """The sums, before it is known whether all is added, so that the host waits once; None where that does not
        pay."""
        few = state.range <= _DENSE and not self._keep
        return rounded(self._rows, state, None, mean=False) if few and self._rows.dtype.is_float else None

    def totals(self, counts: Index) -> GroupTotals:
        """The sums of the groups of `groups`, which must have been called and has these counts, as integers; not of a
        stream."""
        assert self._stream is None, "a stream rounds its sums at once"
        rows = self._rows
        if not rows.dtype.is_float:
            return totals_of_integers(*(self._fetched(array) for array in self.values()))
        if self._runs is not None:
            _, values, offsets = self._runs
            layout = OffsetsLayout(offsets, offsets.get())
            totals = GroupedTotals(self._gpu, values, layout, rows.dtype, SumKind.VALUES)
            totals.start()
            return totals_of_limbs(totals.limbs(), omit_nan=rows.omit_nan)
        state = self._state
        if state is None:
            return totals_of_integers(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        words = state.sums
        halves = [self._fetched(self._compact(words[k * state.range : (k + 1) * state.range])) for k in
                  range(2 * (rows.levels + 1))]  # fmt: skip
        flags = self._fetched(self._compact(state.flags)).astype(np.int64)
        other = self._other_than_zero()
        not_zero = counts > 0 if other is None else (self._fetched(self._compact(other)) != 0) | (flags != 0)
        listed = int(self._notes[LISTED])
        groups = state.listed[:listed].get()
        places = groups if self._present is None else np.searchsorted(self._present.get(), groups)
        return GroupTotals(
            *limbs_of_levels(halves, rows.unit), flags | NOT_NEGATIVE_ZERO * (not_zero & (counts > 0)),
            places.astype(np.int64), state.elements[:listed].get(),
        )  # fmt: skip

    @staticmethod
    def _fetched(array: Any) -> NDArray[Any]:
        return np.asarray(array.get())

    def _other_than_zero(self) -> Any:
        """Whether each code has an element other than −0; None if no element is −0."""
        import cupy

        rows, state = self._rows, self._state
        if not self._notes[NEGATIVE_ZEROS] or state is None:
            return None
        other = cupy.zeros(state.range, dtype=np.uint8)
        self._run(
            zeros_kernel(rows.key, rows.dtype), 8 * self._gpu.multiprocessors, 256,
            (rows.keys, rows.values, np.uint64(rows.count), pattern(rows.reach.least), np.uint64(state.range), other),
        )  # fmt: skip
        return other

    def values(self, *, mean: bool = False) -> Any:
        """The values of the groups of `groups`, which must have been called: as `dense` has them."""
        if not self._rows.count:
            import cupy

            paired = not self._rows.dtype.is_float and not mean
            return (cupy.zeros(0, np.uint64), cupy.zeros(0, np.int64)) if paired else self._rows.values
        if self._stream is not None:
            if mean not in self._streamed:
                streamed = self._stream.groups(mean=mean)
                assert isinstance(streamed, StreamedGroups), "the keys are sorted, and the units hold the elements"
                self._streamed[mean] = streamed
            return self._streamed[mean].values
        if self._runs is not None:
            return self._run_values(mean=mean).values
        made = self.dense(mean=mean)
        return tuple(map(self._compact, made)) if isinstance(made, tuple) else self._compact(made)

    def least(
        self, flip: int, of_nan: int, none: int, *, equal_zeros: bool = False, first: bool = False
    ) -> tuple[Any, Any | None]:
        """The least order of the elements of each group of `groups`, which must have been called, and with `first` the
        first row that has it (uint64; 2**64 − 1 for a group without elements).

        An order is the pattern of an element, of a negative float with its lower bits turned over, ^ `flip`. The order
        of a NaN is `of_nan`, and that of no elements `none`. With `equal_zeros` −0 has the order of +0. Orders are
        int64, or int32 of elements of up to 32 bits."""
        import cupy

        rows = self._rows
        keys, key, reach = rows.keys, rows.key, rows.reach
        known = self._group_keys()
        if known is not None:
            keys, key = cupy.searchsorted(known, keys).astype(np.uint32), CODE
            reach = Reach(0, int(known.size))
        orders = cupy.full(reach.range, none, dtype=np.int64 if rows.dtype.itemsize == 8 else np.int32)
        of = (
            keys, rows.values, np.uint64(rows.count), pattern(reach.least), np.uint64(reach.range), np.int64(flip),
            np.int64(of_nan), np.uint32(equal_zeros), np.uint32(rows.omit_nan), orders,
        )  # fmt: skip
        blocks = 8 * self._gpu.multiprocessors
        self._run(least_kernel(key, rows.dtype), blocks, 256, of)
        firsts: Any = None
        if first:
            firsts = cupy.full(reach.range, (1 << 64) - 1, dtype=np.uint64)
            self._run(rows_kernel(key, rows.dtype), blocks, 256, (*of, firsts))
        if known is not None:
            return orders, firsts
        return self._compact(orders), None if firsts is None else self._compact(firsts)

    def _group_keys(self) -> Any:
        """The keys of sorted rows' groups; None where groups have codes from the least key on."""
        if self._streamed:
            return None if self._dense() else self._streamed[False].keys
        return None if self._runs is None else self._runs[0]

    def _dense(self) -> bool:
        """Whether keys reach no farther than there is room for."""
        rows = self._rows
        return rows.reach.range <= min(rows.most_range(), max(_DENSE, _SPARSE * rows.count))

    def _run_values(self, *, mean: bool) -> FinishedValues:
        assert self._runs is not None, "asked only of sorted rows"
        _, values, offsets = self._runs
        layout = OffsetsLayout(offsets, offsets.get())
        rounding = Rounding(Finishing.MEAN if mean else Finishing.SUM, omit_nan=self._rows.omit_nan)
        sums = FinishedValues(
            self._gpu, values, layout, self._rows.dtype, SumKind.VALUES, rounding,
            shapes=self._rows.shapes.sorted[self._rows.dtype.name],
        )  # fmt: skip
        sums.start()
        sums.finish()
        return sums

    def _run(self, name: str, grid: int, block: int, args: tuple[Any, ...], shared: int = 0) -> None:
        self._gpu.kernel(unit_of(name), name)(grid, block, args, shared)


def _held(array: Any, dtype: DType, held: DType) -> Any:
    """The array as `held`, at a boundary of 16 bytes."""
    if dtype is not held:
        return array.astype(held.numpy)
    return array if int(array.data.ptr) % VECTOR_BYTES == 0 else array.copy()
