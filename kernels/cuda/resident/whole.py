"""Reductions of arrays that are on a GPU already: started on the caller's stream, with values that stay on the GPU.

Nothing waits here, and nothing comes back to the host: an array is read from where it lies, and its value is written to
where the caller wants it. Arrays, values and streams are given by their addresses, so that any library's serve. What
follows from an op and a dtype is settled once, so that a call costs Python little more than the driver's call.
"""

from typing import Protocol

from warpfold.kernels.cuda.exact.finishing import FinishedOp, Finishing
from warpfold.kernels.cuda.exact.launch import Choice, Launch
from warpfold.kernels.cuda.exact.shapes import CHOICES, SumKind, chosen_from
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import LaunchShape
from warpfold.kernels.cuda.gpu.packed import PackedFunction, function_of
from warpfold.kernels.cuda.resident.shapes import (
    EACH_THREADS,
    END_THREADS,
    each_kernel,
    each_shape,
    end_kernel,
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
    function = on.function(6)
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
    function = on.function(5)
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


class _Chosen:
    """The kernels of jobs for long arrays, of which the data choose one, and a launch that rounds their total.

    They are loaded when the first long array comes, but not while launches are captured, for loading may wait."""

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind, totals: Totals) -> None:
        self._gpu, self._dtype, self._kind, self._totals = gpu, dtype, kind, totals
        self._counts = chosen_from(dtype, kind, gpu.multiprocessors)
        self.least = self._counts.start
        self._ready: tuple[Choice, list[PackedFunction], PackedFunction] | None = None

    def take(self, count: int, *, captured: bool) -> bool:
        """Whether they add up an array of `count` elements."""
        if count not in self._counts:
            return False
        if self._ready is None and not captured:
            name = end_kernel(self._dtype, self._kind)
            end = function_of(self._gpu.kernel(unit_of(name), name), END_THREADS, 0, 5)
            choice = Choice(self._gpu, self._dtype, self._kind)
            functions = [each.launch.function(len(each.args)) for each in choice.planned((0,), 1, 0, 0)]
            self._ready = choice, functions, end
        return self._ready is not None

    def start(  # noqa: PLR0917
        self, addresses: tuple[int, ...], count: int, out: int, stream: int, finish: int, ddof: int, captured: bool
    ) -> None:
        """Do what a WholeReduction does, where they `take` the array."""
        assert self._ready is not None, "kernels that take an array are loaded"
        choice, functions, end = self._ready
        kept = self._totals.of(stream, captured=captured)
        words = kept.data.ptr
        planned = choice.planned(addresses, count, words, words + self._totals.number_at)
        for function, each in zip(functions, planned, strict=True):
            function(each.grid, stream, *map(int, each.args))
        end(1, stream, words, out, finish, count, ddof)


def _long(others: WholeReduction, chosen: _Chosen, finish: int) -> WholeReduction:
    """The chosen kernels for the arrays that they take, and the other reduction for those of fewer elements."""
    least = chosen.least

    def start(  # noqa: PLR0917
        address: int, count: int, out: int, stream: int, ddof: int = 0, captured: bool = False
    ) -> None:
        if count >= least and chosen.take(count, captured=captured):
            chosen.start((address,), count, out, stream, finish, ddof, captured)
        else:
            others(address, count, out, stream, ddof, captured)

    return start


def _long_dot(others: DotReduction, chosen: _Chosen) -> DotReduction:
    """The same for two arrays."""
    least = chosen.least

    def start(  # noqa: PLR0917
        left: int, right: int, count: int, out: int, stream: int, captured: bool = False
    ) -> None:
        if count >= least and chosen.take(count, captured=captured):
            chosen.start((left, right), count, out, stream, int(Finishing.SUM), 0, captured)
        else:
            others(left, right, count, out, stream, captured)

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
        if kind in CHOICES.get(dtype.name, {}):
            all_others = _long(all_others, _Chosen(self.gpu, dtype, kind, self._totals), finish)
        if few is None or few.threads * few.shared > limit:
            return all_others
        on = self._whole_launch(dtype, kind, few)
        return _either(_whole(on, self._totals, finish), on.resident * on.tile * on.lanes, all_others)

    def dot(self, dtype: DType) -> DotReduction:
        """The dot product of arrays of a float `dtype`."""
        shape = whole_shape(dtype, SumKind.PRODUCTS, self.gpu.shared_per_block)
        dot = _dot(self._whole_launch(dtype, SumKind.PRODUCTS, shape), self._totals)
        if SumKind.PRODUCTS not in CHOICES.get(dtype.name, {}):
            return dot
        return _long_dot(dot, _Chosen(self.gpu, dtype, SumKind.PRODUCTS, self._totals))

    def each_launch(self, dtype: DType, kind: SumKind) -> Launch:
        """The launch for each of many values of a float `dtype`."""
        return self._launch(each_kernel(dtype, kind), each_shape(dtype, kind), dtype)

    def rows_launch(self, dtype: DType) -> Launch:
        """The launch for rows of float32 or float64 that needs no other launch."""
        return self._launch(rows_kernel(dtype), each_shape(dtype, SumKind.VALUES), dtype)

    def _whole_launch(self, dtype: DType, kind: SumKind, shape: LaunchShape) -> Launch:
        return self._launch(whole_kernel(dtype, kind, shape), shape, dtype)

    def _launch(self, name: str, shape: LaunchShape, dtype: DType) -> Launch:
        return Launch.of(self.gpu, unit_of(name), name, shape, dtype.itemsize)
