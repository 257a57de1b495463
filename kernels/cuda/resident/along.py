"""Reductions along axes of arrays that are on a GPU already: the shape in memory chooses the kernels.

Sums and means of float32 and float64 take the kernels of `../grouped/`. What those mark is added up by one more launch,
which does nothing where there are no marks: so the host need not look. All other ops take a block for each value.
"""

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from threading import get_ident
from typing import Any

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.grouped import ColumnsLayout, GroupedSums, Layout, RowsLayout
from warpfold.kernels.cuda.grouped.shapes import FLOATS
from warpfold.kernels.cuda.resident.arrangement import Arrangement, Members
from warpfold.kernels.cuda.resident.packed import function_of
from warpfold.kernels.cuda.resident.whole import ResidentReducer
from warpfold.kernels.dtypes import DType


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
