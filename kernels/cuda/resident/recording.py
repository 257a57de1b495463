"""Launches for many values, recorded once: an array elsewhere that lies alike takes the same ones."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.packed import Base, RepeatedLaunch, repeated
from warpfold.kernels.cuda.grouped import ColumnsLayout, Layout, RowsLayout
from warpfold.kernels.cuda.resident.arrangement import Members
from warpfold.kernels.dtypes import DType


class Launching(Protocol):
    """Launches for many values, of which some may be marked (`../grouped/`)."""

    marked: Any

    def start(self) -> None:
        """Put the launches on the GPU's stream."""


Make = Callable[[Gpu, Any, Layout, Any], Launching]
"""Launches on a GPU for the values of a layout of elements, to an array of values."""


def layout_of(members: Members) -> Layout:
    """How the elements of these values lie."""
    if members.stride == 1:
        return RowsLayout(members.values, members.count, members.values * members.count)
    return ColumnsLayout(members.values, members.count)


class RecordedSums:
    """The launches that reduce the elements of an array at `address` to values at `out`.

    `launches` are started one after another. `memory` is how many bytes in between they take, which are
    from CuPy's current allocator. `marked` is an array of one uint32, which must be 0 before a start, and is not 0
    after it where values are marked (`../grouped/`).
    """

    def __init__(self, gpu: Gpu, dtype: DType, address: int, members: Members, out: int, make: Make) -> None:  # noqa: PLR0917
        elements = _array(address, members.values * members.count, dtype)
        results = _array(out, members.values, dtype)
        recorder = _Recorder(gpu, (address, elements.nbytes), (out, results.nbytes))
        sums = make(recorder, elements, layout_of(members), results)  # type: ignore[arg-type]
        sums.start()
        self.marked = sums.marked
        self.launches, self._between = tuple(recorder.launches), recorder.between
        self.memory = sum(array.nbytes for array in recorder.between.values())


class _Recorder:
    """A GPU whose launches are noted: addresses within the array and within its values as what they are relative to.
    `between` are the other arrays, by their addresses."""

    def __init__(self, gpu: Gpu, array: tuple[int, int], values: tuple[int, int]) -> None:
        self._gpu, self._array, self._values = gpu, array, values
        self.multiprocessors = gpu.multiprocessors
        self.launches: list[RepeatedLaunch] = []
        self.between: dict[int, Any] = {}

    def kernel(self, unit: Unit, name: str) -> Any:
        kernel = self._gpu.kernel(unit, name)

        def note(grid: int, block: int, args: Sequence[Any], shared: int = 0) -> None:
            self.launches.append(repeated(kernel, grid, block, shared, list(map(self._noted, args))))

        return note

    def _noted(self, arg: Any) -> tuple[Base | None, Any]:
        data = getattr(arg, "data", None)
        address = getattr(data, "ptr", None)
        if address is None:
            return None, arg
        for base, (start, size) in ((Base.ARRAY, self._array), (Base.VALUES, self._values)):
            if start <= address < start + size:
                return base, address - start
        self.between[address] = arg
        return None, arg


def _array(address: int, size: int, dtype: DType) -> Any:
    """The CuPy array of this memory, which others own."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, size * dtype.itemsize, None)
    return cupy.ndarray((size,), dtype.numpy, cupy.cuda.MemoryPointer(memory, 0))
