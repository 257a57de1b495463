"""Reductions of arrays that are on a GPU already: started on the caller's stream, with values that stay on the GPU.

Nothing waits here, and nothing comes back to the host: an array is read from where it lies, and its value is written to
where the caller wants it. Arrays, values and streams are given by their addresses, so that any library's serve. What
follows from an op and a dtype is settled once, so that a call costs Python little more than the driver's call.
"""

from dataclasses import dataclass
from typing import Protocol

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.finishing import FinishedOp
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES, LaunchShape
from warpfold.kernels.cuda.gpu.packed import function_of
from warpfold.kernels.cuda.resident.shapes import (
    EACH_THREADS,
    each_kernel,
    each_shape,
    few_shape,
    rows_kernel,
    unit_of,
    whole_kernel,
    whole_shape,
)
from warpfold.kernels.cuda.resident.stream_totals import Totals
from warpfold.kernels.dtypes import DType

_MOST_THREADS = 2048
"""Threads of a multiprocessor, on any GPU."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel that is loaded, how many of its blocks run at a time, and the shape of a block.

    `tile` is how many reads of 16 bytes a block has in flight, `lanes` how many elements one has.
    """

    kernel: Kernel
    resident: int
    threads: int
    shared: int
    tile: int
    lanes: int

    @classmethod
    def of(cls, gpu: Gpu, unit: Unit, shape: LaunchShape, itemsize: int) -> "Launch":
        """The first kernel of a unit."""
        kernel, shared = gpu.kernel(unit, unit.kernels[0]), shape.threads * shape.shared
        resident = kernel.blocks_per_multiprocessor(shape.threads, shared) * gpu.multiprocessors
        return cls(kernel, resident, shape.threads, shared, shape.threads * shape.flight, VECTOR_BYTES // itemsize)

    def whole(self, address: int, count: int) -> int:
        """Blocks for a whole array: as many as it has tiles, and at most as many as run at a time."""
        lanes = self.lanes
        head = -address % VECTOR_BYTES * lanes // VECTOR_BYTES
        reads = count if count < head else count - (count - head) // lanes * (lanes - 1)
        return max(1, min(self.resident, -(-reads // self.tile)))

    def each(self, count: int, values: int, *, marked: bool) -> int:
        """Blocks for many values of `count` elements: several a value where there are few."""
        if marked or values >= self.resident:
            return self.resident
        return values * max(1, min(self.resident // values, count // (self.lanes * self.tile)))


class WholeReduction(Protocol):
    """An op of all elements of an array of a dtype, ready to be started."""

    def __call__(  # noqa: PLR0917
        self, address: int, count: int, out: int, stream: int, ddof: int = 0, captured: bool = False
    ) -> None:
        """Put the reduction of `count` elements to one value at `out` on `stream`. Raises CuPy's CUDADriverError."""


class DotReduction(Protocol):
    """Σ x y of all elements of two arrays of a dtype, ready to be started."""

    def __call__(  # noqa: PLR0917
        self, left: int, right: int, count: int, out: int, stream: int, captured: bool = False
    ) -> None:
        """Put the reduction of the products of two arrays of `count` elements to one value at `out` on `stream`. Both
        addresses lie alike between boundaries of 16 bytes. Raises CuPy's CUDADriverError."""


def _whole(on: Launch, totals: Totals, finish: int) -> WholeReduction:
    """All that a call needs is at hand by local names, and it calls nothing of ours: that saves a microsecond."""
    function = function_of(on.kernel, on.threads, on.shared, 6)
    pointer, block, shared, launch = function.pointer, function.block, function.shared, function.launch
    pack, room, known, tile, blocks = function.pack, function.room, totals.known, on.tile, on.whole

    def start(  # noqa: PLR0917
        address: int, count: int, out: int, stream: int, ddof: int = 0, captured: bool = False
    ) -> None:
        words = None if captured else known.get(stream)
        if words is None:
            kept = totals.of(stream, captured=captured)
            words = kept.data.ptr
        memory, table = room.parts
        pack(memory, 0, address, count, words, out, finish, ddof)
        grid = 1 if count <= tile else blocks(address, count)
        launch(pointer, grid, 1, 1, block, 1, 1, shared, stream, table, 0)

    return start


def _either(few: WholeReduction, most: int, others: WholeReduction) -> WholeReduction:
    """The first for arrays of up to `most` elements, and the other for those of more."""

    def start(  # noqa: PLR0917
        address: int, count: int, out: int, stream: int, ddof: int = 0, captured: bool = False
    ) -> None:
        (few if count <= most else others)(address, count, out, stream, ddof, captured)

    return start


def _dot(on: Launch, totals: Totals) -> DotReduction:
    """The same for two arrays."""
    function = function_of(on.kernel, on.threads, on.shared, 5)
    pointer, block, shared, launch = function.pointer, function.block, function.shared, function.launch
    pack, room, known, tile, blocks = function.pack, function.room, totals.known, on.tile, on.whole

    def start(  # noqa: PLR0917
        left: int, right: int, count: int, out: int, stream: int, captured: bool = False
    ) -> None:
        words = None if captured else known.get(stream)
        if words is None:
            kept = totals.of(stream, captured=captured)
            words = kept.data.ptr
        memory, table = room.parts
        pack(memory, 0, left, right, count, words, out)
        grid = 1 if count <= tile else blocks(left, count)
        launch(pointer, grid, 1, 1, block, 1, 1, shared, stream, table, 0)

    return start


class ResidentReducer:
    """The kernels of one GPU for arrays that are on it. Each is compiled and loaded when it is first asked for.

    A launch that is `captured` into a graph gets memory of its own from CuPy's current allocator. It must last as long
    as the graph, which may run on any stream.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._totals = Totals(1)
        self.each_blocks = gpu.multiprocessors * (_MOST_THREADS // EACH_THREADS)
        """So many blocks of many values run at a time."""
        self.each_totals = Totals(self.each_blocks)
        """Those of many values: one for each block."""

    def whole(self, op: FinishedOp, dtype: DType) -> WholeReduction:
        """An op of one array, of all elements of a float `dtype`."""
        kind, finish = op.kind, int(op.finish)
        limit, few = self.gpu.shared_per_block, few_shape(dtype, kind)
        all_others = _whole(self._whole_launch(dtype, kind, whole_shape(dtype, kind, limit)), self._totals, finish)
        if few is None or few.threads * few.shared > limit:
            return all_others
        on = self._whole_launch(dtype, kind, few)
        return _either(_whole(on, self._totals, finish), on.resident * on.tile * on.lanes, all_others)

    def dot(self, dtype: DType) -> DotReduction:
        """The dot product of arrays of a float `dtype`."""
        shape = whole_shape(dtype, SumKind.PRODUCTS, self.gpu.shared_per_block)
        return _dot(self._whole_launch(dtype, SumKind.PRODUCTS, shape), self._totals)

    def each_launch(self, dtype: DType, kind: SumKind) -> Launch:
        """The launch for each of many values of a float `dtype`."""
        return Launch.of(self.gpu, unit_of(each_kernel(dtype, kind)), each_shape(dtype, kind), dtype.itemsize)

    def rows_launch(self, dtype: DType) -> Launch:
        """The launch for rows of float32 or float64 that needs no other launch."""
        shape = each_shape(dtype, SumKind.VALUES)
        return Launch.of(self.gpu, unit_of(rows_kernel(dtype)), shape, dtype.itemsize)

    def _whole_launch(self, dtype: DType, kind: SumKind, shape: LaunchShape) -> Launch:
        return Launch.of(self.gpu, unit_of(whole_kernel(dtype, kind, shape)), shape, dtype.itemsize)
