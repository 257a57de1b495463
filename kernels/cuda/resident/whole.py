"""Reductions of arrays that are on a GPU already: started on the caller's stream, with values that stay on the GPU.

Nothing waits here, and nothing comes back to the host: an array is read from where it lies, and its value is written to
where the caller wants it. Arrays are given by their addresses, so that any library's serve.
"""

from dataclasses import dataclass
from threading import get_ident
from typing import Any

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.exact.finishing import FinishedOp
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.exact.total import limbs_of
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES, LaunchShape
from warpfold.kernels.cuda.resident.packed import function_of
from warpfold.kernels.cuda.resident.shapes import (
    EACH_THREADS,
    each_kernel,
    each_shape,
    unit_of,
    whole_kernel,
    whole_shape,
)
from warpfold.kernels.dtypes import DType

_MOST_THREADS = 2048
"""Threads of a multiprocessor, on any GPU."""

_STREAM_OF_THREAD = 2
"""The handle by which each thread names a stream of its own (cudaStreamPerThread)."""

WORDS = {kind: limbs_of(kind) + 1 for kind in SumKind}
"""Words of 64 bits of a total, and of how many blocks have added to it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel that is loaded, how many of its blocks run at a time, and how it is started.

    `tile` is how many reads of 16 bytes a block has in flight, `lanes` how many elements one has.
    """

    function: Any
    resident: int
    threads: tuple[int]
    shared: int
    tile: int
    lanes: int

    @classmethod
    def of(cls, gpu: Gpu, unit: Unit, shape: LaunchShape, itemsize: int) -> "Launch":
        """The first kernel of a unit."""
        kernel, shared = gpu.kernel(unit, unit.kernels[0]), shape.threads * shape.shared
        resident = kernel.blocks_per_multiprocessor(shape.threads, shared) * gpu.multiprocessors
        tile = shape.threads * shape.flight
        return cls(function_of(kernel), resident, (shape.threads,), shared, tile, VECTOR_BYTES // itemsize)

    def whole(self, address: int, count: int) -> tuple[int]:
        """The grid for a whole array: as many blocks as it has tiles, and at most as many as run at a time."""
        lanes = self.lanes
        head = -address % VECTOR_BYTES * lanes // VECTOR_BYTES
        reads = count if count < head else count - (count - head) // lanes * (lanes - 1)
        return (max(1, min(self.resident, -(-reads // self.tile))),)

    def each(self, count: int, values: int, *, marked: bool) -> tuple[int]:
        """The grid for many values of `count` elements: several blocks a value where there are few."""
        if marked or values >= self.resident:
            return (self.resident,)
        return (values * max(1, min(self.resident // values, count // (self.lanes * self.tile))),)


@dataclass(frozen=True, slots=True)
class Members:
    """Where the elements of `values` values lie: value v has `count`, from v · `outer` on, `stride` apart."""

    outer: int
    stride: int
    count: int
    values: int


class ResidentReducer:
    """The kernels of one GPU for arrays that are on it. Each is compiled and loaded when it is first used.

    Addresses are those of memory on the GPU; a `stream` has its address as `ptr`. A launch that is `captured` into a
    graph gets memory of its own from CuPy's current allocator. It must last as long as the graph, which may run on any
    stream.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._launches: dict[tuple[str, SumKind, bool], Launch] = {}
        self._words: dict[tuple[int, int, bool], Any] = {}

    def launch(self, dtype: DType, kind: SumKind, *, each: bool = False) -> Launch:
        """The launch for whole arrays of a float `dtype`, or for `each` of many values."""
        launch = self._launches.get((dtype.name, kind, each))
        if launch is None:
            limit = self.gpu.shared_per_block
            shape = each_shape(dtype, kind) if each else whole_shape(dtype, kind, limit)
            name = each_kernel(dtype, kind) if each else whole_kernel(dtype, kind, limit)
            launch = Launch.of(self.gpu, unit_of(name), shape, dtype.itemsize)
            self._launches[dtype.name, kind, each] = launch
        return launch

    def words(self, stream: Any, *, each: bool, captured: bool) -> Any:
        """Totals that are 0, a CuPy array: one, or one for each block that runs at a time. The launches of one stream
        share them and leave them 0."""
        key = (stream.ptr, get_ident() if stream.ptr == _STREAM_OF_THREAD else 0, each)
        words = None if captured else self._words.get(key)
        if words is None:
            import cupy

            most = self.gpu.multiprocessors * (_MOST_THREADS // EACH_THREADS) if each else 1
            with cuda_errors("totals"), stream:
                words = cupy.zeros(max(WORDS.values()) * most, dtype=cupy.uint64)
            if not captured:
                self._words[key] = words
        return words

    def reduce(  # noqa: PLR0917
        self, op: FinishedOp, dtype: DType, address: int, count: int, out: int, stream: Any, ddof: int, captured: bool
    ) -> None:
        """Reduce `count` elements to one value of `dtype` at `out`, by an op of one array."""
        launch = self.launch(dtype, op.kind)
        args = (address, count, self.words(stream, each=False, captured=captured), out, int(op.finish), ddof)
        launch.function(launch.whole(address, count), launch.threads, args, launch.shared, stream)

    def dot(  # noqa: PLR0917
        self, dtype: DType, left: int, right: int, count: int, out: int, stream: Any, captured: bool
    ) -> None:
        """Reduce the products of two arrays of `count` elements to one value at `out`. Both addresses lie alike between
        boundaries of 16 bytes."""
        launch = self.launch(dtype, SumKind.PRODUCTS)
        args = (left, right, count, self.words(stream, each=False, captured=captured), out)
        launch.function(launch.whole(left, count), launch.threads, args, launch.shared, stream)

    def reduce_each(  # noqa: PLR0917
        self, op: FinishedOp, dtype: DType, address: int, members: Members, out: int, stream: Any, ddof: int,
        captured: bool, marked: Any = None,
    ) -> None:  # fmt: skip
        """Reduce to many values at `out`. With `marked`, an array of a uint32 which is not 0 where values are marked,
        only those are reduced (`../grouped/`)."""
        launch = self.launch(dtype, op.kind, each=True)
        words = self.words(stream, each=True, captured=captured)
        counts = (members.outer, members.stride, members.count, members.values)
        args = (address, *counts, 0 if marked is None else marked, words, out, int(op.finish), ddof)
        grid = launch.each(members.count, members.values, marked=marked is not None)
        launch.function(grid, launch.threads, args, launch.shared, stream)
