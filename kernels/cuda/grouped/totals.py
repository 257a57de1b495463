"""Exact totals of many values on a GPU, and their roundings: sums of floats, magnitudes, squares or products of two
arrays, and moments.

The kernels are those of `../sources/grouped_states.cu`: blocks add up each value as they add up a whole array, and one
thread rounds it. Most values are left to `values.py`, and what that marks comes here.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import carrier, element
from warpfold.kernels.cuda.exact.accumulator import alike
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind
from warpfold.kernels.cuda.exact.total import limbs_of
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.layouts import Layout
from warpfold.kernels.cuda.grouped.shapes import GroupedShapes
from warpfold.kernels.cuda.grouped.states import KeptTotals
from warpfold.kernels.cuda.grouped.values import MARKS, GroupedValues, Rounding, grouped_serves
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "grouped_states.cu"

THREADS = {2: 128, 4: 128, 8: 64}
"""Threads a block, by the bytes of an element: those of float64 have the most shared memory each."""

PART, LEAST_PART = 1 << 16, 1 << 12
"""Elements of a value that one block has at least: of many values, and where multiprocessors would be idle."""

MOST_PARTS = 1 << 16
"""Blocks of all values together, where a value has several."""

ROOM_OF_BLOCKS = 5
"""Blocks that find room on a multiprocessor."""

AT_ONCE = 1 << 28
"""Bytes of totals that are in memory at a time."""

ROOM = {
    SumKind.VALUES: 340, SumKind.MAGNITUDES: 340, SumKind.SQUARES: 636, SumKind.PRODUCTS: 636, SumKind.MOMENTS: 1604,
}  # fmt: skip
"""Bytes of shared memory that a thread rounds a total with (`TotalsOf` of include/grouped_finish.cuh)."""


def totals_kernel(dtype: DType, kind: SumKind) -> str:
    """The kernel of a float `dtype`, as a C++ name expression."""
    shared = SHAPES[dtype.name][kind].shared
    return f"totals<{element(dtype)}, {kind}, {THREADS[dtype.itemsize]}, {shared}>"


def finished_kernel(dtype: DType, kind: SumKind) -> str:
    """The kernel that rounds totals, as a C++ name expression."""
    return f"finished<{element(dtype)}, {kind}, {ROOM[kind]}>"


def totals_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    for name in SHAPES:
        yield Unit(SOURCE, tuple(totals_kernel(DTYPES[name], kind) for kind in SumKind))
        yield Unit(SOURCE, tuple(finished_kernel(DTYPES[name], kind) for kind in SumKind))


class GroupedTotals:
    """The totals of `kind` of the values of a layout of `array`, a CuPy array of a float `dtype` of one dimension; of
    products with `other`, an array like it.

    With a `rounding` they become `values` on the GPU, and `omitted` says how many elements were left out of each; with
    `keep` they are fetched before that, as `kept`. Without a rounding they are fetched as they are. To be used while
    `gpu.active()`."""

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, kind: SumKind, at_once: int = AT_ONCE,
        *, rounding: Rounding | None = None, keep: bool = False, other: Any = None,
    ) -> None:  # fmt: skip
        self._other = np.uint64(0) if other is None else alike(other, array)
        self._gpu, self._array, self._layout, self._dtype, self._kind = gpu, array, layout, dtype, kind
        self._limbs, self._rounding, self._keep = limbs_of(kind), rounding, keep
        self._at_once = max(1, at_once // (8 * self._limbs))
        self._fetched: list[NDArray[np.int64]] = []
        self.kept: list[KeptTotals] = []
        self.values: Any = None
        self.omitted: Any = None
        self.kernel = "totals"

    def start(self) -> None:
        """Add up all values; waits for the work, but for no rounding."""
        import cupy

        count = self._layout.count
        self._fetched, self.kept = [], []
        if self._rounding is not None:
            self.values = cupy.empty(count, dtype=carrier(self._dtype))
            self.omitted = cupy.zeros(count if self._rounding.omit_nan else 1, dtype=np.uint32)
        for start in range(0, count, self._at_once):
            many = min(self._at_once, count - start)
            words = self._added(start, many, self._parts(count), None)
            if self._keep:
                self.kept.append(KeptTotals.fetched(self._kind, words.reshape(many, self._limbs)))
            if self._rounding is None:
                self._fetched.append(words.get().reshape(many, self._limbs))
            else:
                stop = start + many
                omitted = self.omitted[start:stop] if self._rounding.omit_nan else self.omitted
                self._round(words, start, many, self._rounding, self.values[start:stop], omitted, None)

    def replace(self, listed: Any, values: Any, omitted: Any) -> None:
        """Add up the values that are `listed`, a CuPy array of int64, and round each to its place in `values` and in
        `omitted`."""
        assert self._rounding is not None, "values are rounded"
        for start in range(0, int(listed.size), self._at_once):
            some = listed[start : start + self._at_once]
            words = self._added(0, some.size, self._parts(int(listed.size)), some)
            self._round(words, 0, some.size, self._rounding, values, omitted, some)

    def _parts(self, count: int) -> int:
        """Blocks for each of so many values."""
        longest, room = self._layout.longest, ROOM_OF_BLOCKS * self._gpu.multiprocessors
        many = min(-(-longest // PART), MOST_PARTS // max(1, count))
        return max(1, many, min(-(-longest // LEAST_PART), room // max(1, count)))

    def _added(self, start: int, many: int, parts: int, listed: Any) -> Any:
        """The totals of values from number `start` on, or of those that are listed."""
        import cupy

        name, threads = totals_kernel(self._dtype, self._kind), THREADS[self._dtype.itemsize]
        words = cupy.zeros(many * self._limbs, dtype=np.int64)
        if self._array.size:
            self._gpu.kernel(Unit(SOURCE, (name,)), name)(
                many * parts, threads,
                (self._array, self._other, *self._layout.members, np.uint64(start), np.uint32(parts),
                 np.uint32(self._limbs), words, np.uint64(0) if listed is None else listed),
                threads * SHAPES[self._dtype.name][self._kind].shared,
            )  # fmt: skip
        return words

    def _round(  # noqa: PLR0917
        self, words: Any, start: int, many: int, rounding: Rounding, values: Any, omitted: Any, listed: Any
    ) -> None:
        name = finished_kernel(self._dtype, self._kind)
        self._gpu.kernel(Unit(SOURCE, (name,)), name)(
            -(-many // 32), 32,
            (words, *self._layout.members, np.uint64(start), np.uint64(many), np.uint64(rounding.finish),
             np.uint64(rounding.ddof), np.uint32(rounding.omit_nan), values, omitted,
             np.uint64(0) if listed is None else listed),
            32 * ROOM[self._kind],
        )  # fmt: skip

    def limbs(self) -> NDArray[np.int64]:
        """The limbs of all values (`kernels.cuda.exact.total`), shape (values, limbs); their counts are 0. There are
        none where the values were rounded."""
        return np.concatenate(self._fetched) if self._fetched else np.zeros((0, self._limbs), np.int64)


class FinishedValues:
    """The values of a layout of `array`, a CuPy array of a float `dtype` of one dimension; of products with `other`, an
    array like it. To be used while `gpu.active()`.

    `values` is a CuPy array of a result each, `omitted` of how many elements were left out of each. The value of no
    elements is arbitrary. Both are there before a start where they are made by launches alone. With `keep` the totals
    are `kept` before they are rounded. `kernel` names what the shape chose.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, kind: SumKind, rounding: Rounding,
        *, keep: bool = False, shapes: GroupedShapes | None = None, other: Any = None,
    ) -> None:  # fmt: skip
        import cupy

        self._gpu, self._dtype = gpu, dtype
        self.values: Any = None
        self.omitted: Any = None
        self._totals = GroupedTotals(gpu, array, layout, dtype, kind, rounding=rounding, keep=keep, other=other)
        self._grouped: GroupedValues | None = None
        if not keep and grouped_serves(gpu, dtype, kind, layout):
            self._grouped = GroupedValues(gpu, array, layout, dtype, kind, rounding, shapes=shapes, other=other)
            self.values = self._grouped.values
            self.omitted = cupy.zeros(layout.count if rounding.omit_nan else 1, dtype=np.uint32)

    @property
    def kernel(self) -> str:
        return self._totals.kernel if self._grouped is None else self._grouped.kernel

    @property
    def kept(self) -> Sequence[KeptTotals]:
        return self._totals.kept

    def start(self) -> None:
        """Put the launches that nearly all values need on the GPU's stream."""
        import cupy

        grouped = self._grouped
        if grouped is None:
            self._totals.start()
            self.values, self.omitted = self._totals.values, self._totals.omitted
            return
        if grouped.giants.size:  # blocks that wait for memory, beside a stream that waits for the instruction before
            listed = cupy.asarray(grouped.giants)
            with self._gpu.aside():
                self._totals.replace(listed, self.values, self.omitted)
        grouped.start()
        if grouped.giants.size:
            self._gpu.join()

    def finish(self) -> int:
        """Have the values that are marked added up, and say how many; waits for the work."""
        import cupy

        if self._grouped is None:
            return 0
        count = int(self._grouped.marked.get()[0])
        if count:
            bits, mark = MARKS[self._dtype.name]
            listed = cupy.flatnonzero(self.values.view(bits) == bits(mark)).astype(np.int64)
            self._totals.replace(listed, self.values, self.omitted)
            self._grouped.marked.fill(0)
        return count
