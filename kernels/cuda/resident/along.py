"""Reductions along axes of arrays that are on a GPU already: the shape in memory chooses the kernels.

Sums and means of float32 and float64 take the kernels of `../grouped/`. What those mark is added up by one more launch,
which does nothing where there are no marks: so the host need not look. All other ops take a block for each value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import prod
from threading import get_ident
from typing import Any

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.grouped import ColumnsLayout, GroupedSums, Layout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import FLOATS
from warpfold.kernels.cuda.resident.packed import function_of
from warpfold.kernels.cuda.resident.whole import Members, ResidentReducer
from warpfold.kernels.dtypes import DType


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How an array without gaps lies in memory, and what of it makes a value.

    `kept` are the axes that are kept, from the slowest to the fastest, and `lengths` their lengths; `count` elements
    make a value. In `runs` neighbours that are both reduced or both kept are one, and axes of one element are left out;
    `reduced` says whether the first run is reduced, and the others take turns.
    """

    kept: tuple[int, ...]
    lengths: tuple[int, ...]
    count: int
    runs: tuple[int, ...]
    reduced: bool

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int], axes: frozenset[int]) -> "Arrangement | None":
        """The arrangement of an array with these strides, in elements; None where the array has gaps, repeats elements,
        or reduces axes between others that are kept."""
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        expected = 1
        for axis in reversed(order):
            if shape[axis] > 1:
                if strides[axis] != expected:
                    return None
                expected *= shape[axis]
        runs: list[tuple[int, bool]] = []
        for axis in order:
            reduced = axis in axes
            if shape[axis] == 1:
                continue
            if runs and runs[-1][1] == reduced:
                runs[-1] = (runs[-1][0] * shape[axis], reduced)
            else:
                runs.append((shape[axis], reduced))
        if len(runs) > 2:
            return None
        kept = tuple(axis for axis in order if axis not in axes)
        lengths = tuple(shape[axis] for axis in kept)
        count = prod(shape[axis] for axis in axes)
        return cls(kept, lengths, count, tuple(length for length, _ in runs), bool(runs) and runs[0][1])

    @classmethod
    def rows(cls, shape: Sequence[int], axes: frozenset[int]) -> "Arrangement":
        """The arrangement of a copy of an array of `shape` whose reduced axes were moved behind the others."""
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
        lengths = tuple(shape[axis] for axis in kept)
        count = prod(shape[axis] for axis in axes)
        return cls(kept, lengths, count, (prod(lengths), count), False)

    def members(self) -> Members:
        """Where the elements of the values lie."""
        match self.runs:
            case (height, width) if self.reduced:
                return Members(1, width, height, width)
            case (values, count):
                return Members(count, 1, count, values)
            case (count,) if self.reduced:
                return Members(count, 1, count, 1)
        return Members(1, 1, 1, prod(self.lengths))

    @property
    def order(self) -> tuple[int, ...]:
        """The places of the kept axes in their own order: a transposition of the values."""
        return tuple(sorted(range(len(self.kept)), key=self.kept.__getitem__))


class Along:
    """The launches of sums or means along axes, recorded once: the same array elsewhere takes the same ones.

    Memory in between is this object's, from CuPy's current allocator, so all runs must be on one stream, and those of
    one thread: the launches of two threads would mix.
    """

    def __init__(
        self, reducer: ResidentReducer, dtype: DType, address: int, members: Members, out: int, *, mean: bool
    ) -> None:
        elements = _array(address, members.values * members.count, dtype)
        results = _array(out, members.values, dtype)
        layout: Layout = ColumnsLayout(members.values, members.count)
        if members.stride == 1:
            layout = RowsLayout(members.values, members.count, elements.size)
        recorder = _Recorder(reducer, (address, elements.nbytes), (out, results.nbytes))
        sums = GroupedSums(recorder, elements, layout, dtype, mean=mean, values=results)  # type: ignore[arg-type]
        sums.start()
        self._launches = tuple(recorder.launches)
        self._cleared = tuple((array.data, array.nbytes) for array in sums.cleared)
        self.marked = sums.marked

    def start(self, address: int, out: int, stream: Any) -> None:
        """Put the launches for the array at `address` on `stream`."""
        for memory, size in self._cleared:
            memory.memset_async(0, size, stream)
        for function, grid, block, args, shared in self._launches:
            moved = tuple(
                value if base is None else value + (address if base is _Base.ARRAY else out) for base, value in args
            )
            function(grid, block, moved, shared, stream)


class _Base(Enum):
    """The origin of an address."""

    ARRAY = 0
    VALUES = 1


class _Recorder:
    """A GPU whose launches are noted: addresses within the array and within its values as what they are relative to."""

    def __init__(self, reducer: ResidentReducer, array: tuple[int, int], values: tuple[int, int]) -> None:
        self._gpu, self._array, self._values = reducer.gpu, array, values
        self.multiprocessors = reducer.gpu.multiprocessors
        self.launches: list[tuple[Any, tuple[int], tuple[int], tuple[tuple[_Base | None, Any], ...], int]] = []

    def kernel(self, unit: Unit, name: str) -> Any:
        kernel = self._gpu.kernel(unit, name)
        function = function_of(kernel)

        def note(grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
            kernel.allow(shared)
            self.launches.append((function, (grid,), (block,), tuple(map(self._noted, args)), shared))

        return note

    def _noted(self, arg: Any) -> tuple[_Base | None, Any]:
        data = getattr(arg, "data", None)
        address = getattr(data, "ptr", None)
        if address is None:
            return None, arg
        for base, (start, size) in ((_Base.ARRAY, self._array), (_Base.VALUES, self._values)):
            if start <= address < start + size:
                return base, address - start
        return None, arg


_REMEMBERED = 1 << 24
"""Up to so many elements the launches are remembered: later, Python takes less time than the GPU."""


@lru_cache(maxsize=256)
def _remembered(  # noqa: PLR0917
    reducer: ResidentReducer, dtype: DType, members: Members, mean: bool, alignment: tuple[int, int], stream: int,
    thread: int,
) -> list[Along]:  # fmt: skip
    """Where the launches for such arrays are kept; those of another alignment differ."""
    return []


def reduce_along(  # noqa: PLR0917
    reducer: ResidentReducer, op: str, dtype: DType, address: int, arrangement: Arrangement, out: int, stream: Any,
    ddof: int, captured: bool,
) -> None:  # fmt: skip
    """Reduce the array at `address`, which has elements, to values at `out` that lie as the axes that are kept.

    Everything is put on `stream`, which must be CuPy's current one."""
    row, members = FINISHED_OPS[op], arrangement.members()
    if members.values == 1:
        reducer.reduce(row, dtype, address, members.count, out, stream, ddof, captured)
        return
    marked = None
    if op in ("sum", "mean") and dtype.name in FLOATS:
        kept: list[Along] = []
        if not captured and members.values * members.count <= _REMEMBERED:
            alignment = (address % 16, out % 16)
            kept = _remembered(reducer, dtype, members, op == "mean", alignment, stream.ptr, get_ident())
        if not kept:
            kept.append(Along(reducer, dtype, address, members, out, mean=op == "mean"))
        kept[0].start(address, out, stream)
        marked = kept[0].marked
    reducer.reduce_each(row, dtype, address, members, out, stream, ddof, captured, marked)


def _array(address: int, size: int, dtype: DType) -> Any:
    """The CuPy array of this memory, which others own."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, size * dtype.itemsize, None)
    return cupy.ndarray((size,), dtype.numpy, cupy.cuda.MemoryPointer(memory, 0))
