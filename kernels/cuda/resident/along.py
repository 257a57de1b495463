"""Reductions along axes of arrays that are on a GPU already: the shape in memory chooses the kernels.

Sums, means, squares and variances of float32 and float64 take the kernels of `../grouped/`. What those mark is added up
by one more launch, which does nothing where there are no marks: so the host need not look. Sums and means of rows of
small arrays take one launch (`rows_serve`). All other ops, and few long rows, take blocks for each value.
"""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS, FinishedOp, Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu, bind_context
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES, WARP
from warpfold.kernels.cuda.gpu.packed import Base, RepeatedLaunch, function_of, repeated
from warpfold.kernels.cuda.grouped import GroupedValues, Layout, Rounding
from warpfold.kernels.cuda.grouped.shapes import FLOATS
from warpfold.kernels.cuda.grouped.values import grouped_serves
from warpfold.kernels.cuda.resident.arrangement import Arrangement, Members
from warpfold.kernels.cuda.resident.recording import Launching, RecordedSums, layout_of
from warpfold.kernels.cuda.resident.shapes import EACH_THREADS
from warpfold.kernels.cuda.resident.stream_totals import stream_at
from warpfold.kernels.cuda.resident.whole import ResidentReducer
from warpfold.kernels.dtypes import DType

_MOST_MEMORY = 1 << 25
"""Bytes in between: launches that need more are not remembered."""

_READS_OF_FEW, _READS_OF_MANY = 1 << 10, 1 << 12
"""Reads of 16 bytes of a row that one warp adds up, of fewer rows than all multiprocessors take at a time and of more.
A block adds up its marked rows one after another, which takes long where other blocks have none."""

_ROWS = EACH_THREADS // WARP
"""Rows of a block."""

_MOST_REMEMBERED = 8
"""For so many alignments and streams a thread remembers the launches for arrays that lie alike."""


class AlongReduction:
    """An op along axes of arrays that lie alike in memory and have elements, ready to be started.

    Values lie one after another, as the axes that are kept.
    """

    def __init__(self, reducer: ResidentReducer, op: str, dtype: DType, arrangement: Arrangement) -> None:
        row, members = FINISHED_OPS[op], arrangement.members()
        self._reducer, self._op, self._dtype, self._members = reducer, row, dtype, members
        self._count = members.count
        self._whole = reducer.whole(row, dtype) if members.values == 1 else None
        self._rows = None
        if members.values != 1 and rows_serve(reducer, row, dtype, members):
            self._rows = rows_reduction(reducer, row, dtype, members)
        self._grouped = grouped_serves(reducer.gpu, dtype, row.kind, layout_of(members))
        self._remembered = _Remembered(bind_context)

    def __call__(self, address: int, out: int, stream: int, ddof: int = 0, captured: bool = False) -> None:
        """Put the reduction of the array at `address` to values at `out` on `stream`. Raises CuPy's CUDADriverError,
        and CudaError or OutOfMemory in a first call."""
        if self._rows is not None and not address % VECTOR_BYTES:
            self._rows(address, out, stream, captured)
        elif self._whole is not None:
            self._whole(address, self._count, out, stream, ddof, captured)
        elif not self._grouped:
            self._each(address, out, stream, ddof, captured)
        else:
            key = (address % 16, out % 16, stream, ddof)
            launches = None if captured else self._remembered.launches.get(key)
            (launches or self._launches(address, out, stream, ddof, captured)).start(address, out)

    @cached_property
    def _each(self) -> "_Each":
        return _Each(self._reducer, self._op, self._dtype, self._members)

    def _launches(self, address: int, out: int, stream: int, ddof: int, captured: bool) -> "_Launches":
        """New ones, which are remembered unless they are captured or take too much memory."""
        with stream_at(stream):
            turns = [self._recorded(address, out, ddof)]
            remembers = not captured and turns[0].memory <= _MOST_MEMORY
            if remembers:
                turns.append(self._recorded(address, out, ddof))
            made = _Launches(turns, self._each, stream, ddof, captured)
        if remembers:
            kept = self._remembered.launches
            if len(kept) == _MOST_REMEMBERED:
                kept.clear()
            kept[address % 16, out % 16, stream, ddof] = made
        return made

    def _recorded(self, address: int, out: int, ddof: int) -> RecordedSums:
        def make(gpu: Gpu, array: Any, layout: Layout, values: Any) -> Launching:
            rounding = Rounding(self._op.finish, ddof)
            return GroupedValues(gpu, array, layout, self._dtype, self._op.kind, rounding, values)

        return RecordedSums(self._reducer.gpu, self._dtype, address, self._members, out, make)


class _Each:
    """A reduction of each of many values by blocks of its own."""

    def __init__(self, reducer: ResidentReducer, op: FinishedOp, dtype: DType, members: Members) -> None:
        self._launch, self.totals = reducer.each_launch(dtype, op.kind), reducer.each_totals
        self._start = function_of(self._launch.kernel, self._launch.threads, self._launch.shared, 11)
        self._finish = int(op.finish)
        self._counts = members.outer, members.stride, members.count, members.values
        self._grid = self._launch.each(members.count, members.values, marked=False)

    def __call__(self, address: int, out: int, stream: int, ddof: int, captured: bool) -> None:
        """Put the reduction on `stream`."""
        words = None if captured else self.totals.known.get(stream)
        if words is None:
            room = self.totals.of(stream, captured=captured)
            words = room.data.ptr
        self._start(self._grid, stream, address, *self._counts, 0, 0, words, out, self._finish, ddof)

    def of_marked(self, marked: Any, cleared: Any, words: Any, ddof: int) -> RepeatedLaunch:
        """The launch for the values that are marked if `marked`, an array of a uint32, is not 0. It makes `cleared` 0
        unless that is None."""
        launch = self._launch
        args = [(None, value) for value in (*self._counts, marked, 0 if cleared is None else cleared, words)]
        around = [(Base.ARRAY, 0), *args, (Base.VALUES, 0), (None, self._finish), (None, ddof)]
        return repeated(launch.kernel, launch.each(1, 1, marked=True), launch.threads, launch.shared, around)


class _Launches:
    """The launches for an array on one stream, recorded for turns that follow each other: those of one turn leave the
    marks of the next cleared, which saves a launch. Where there is one turn, it is started once.

    Memory in between is that of the turns, so all runs must be of one thread: the launches of two threads would mix.
    The turns are kept as long as their launches may be started again. Then their memory goes back to CuPy's pool, which
    hands it out again on the stream that it was taken on, that of the launches: what comes next there begins after
    them.
    """

    def __init__(self, turns: Sequence[RecordedSums], each: _Each, stream: int, ddof: int, captured: bool) -> None:
        self._words = each.totals.of(stream, captured=captured)
        self._stream, self._turns = stream, tuple(turns)
        self._started = tuple(
            (
                (
                    *turn.launches,
                    each.of_marked(turn.marked, None if turn is after else after.marked, self._words, ddof),
                ),
                number,
            )
            for turn, after, number in zip(turns, [*turns[1:], turns[0]], [*range(1, len(turns)), 0], strict=True)
        )
        self._turn = 0

    def start(self, address: int, out: int) -> None:
        """Put the launches for the array at `address` on the stream."""
        stream = self._stream
        launches, self._turn = self._started[self._turn]
        for launch in launches:
            launch(address, out, stream)


class _Remembered(threading.local):
    """The launches that a thread remembers, by the alignments of array and values, by the stream and by ddof. `begin`
    is called in each thread."""

    def __init__(self, begin: Callable[[], object]) -> None:
        begin()
        self.launches: dict[tuple[int, int, int, int], _Launches] = {}


class RowsReduction(Protocol):
    """An op of the rows of arrays that lie alike, ready to be started."""

    def __call__(self, address: int, out: int, stream: int, captured: bool = False) -> None:
        """Put the reduction of the array at `address`, a multiple of 16, to values at `out` on `stream`. Raises CuPy's
        CUDADriverError."""


def rows_serve(reducer: ResidentReducer, op: FinishedOp, dtype: DType, members: Members) -> bool:
    """Whether these values are rows that one launch adds up."""
    summed = op.kind is SumKind.VALUES and op.finish in {Finishing.SUM, Finishing.MEAN}
    size = members.count * dtype.itemsize
    reads = _READS_OF_MANY if members.values >= _ROWS * reducer.gpu.multiprocessors else _READS_OF_FEW
    return (
        summed
        and dtype.name in FLOATS
        and members.stride == 1
        and size % VECTOR_BYTES == 0
        and size <= reads * VECTOR_BYTES
        and members.values <= _ROWS * reducer.each_blocks
    )


def rows_reduction(reducer: ResidentReducer, op: FinishedOp, dtype: DType, members: Members) -> RowsReduction:
    """The launch for rows that it serves (`reduced_rows` of `../sources/reduced.cu`). All that a call needs is at hand
    by local names, as in `whole.py`."""
    on, totals = reducer.rows_launch(dtype), reducer.each_totals
    function = function_of(on.kernel, on.threads, on.shared, 6)
    pointer, block, shared, launch = function.pointer, function.block, function.shared, function.launch
    pack, room, known = function.pack, function.room, totals.known
    rows, length, finish, grid = members.values, members.count, int(op.finish), -(-members.values // _ROWS)

    def start(address: int, out: int, stream: int, captured: bool = False) -> None:
        words = None if captured else known.get(stream)
        if words is None:
            kept = totals.of(stream, captured=captured)
            words = kept.data.ptr
        memory, table = room.parts
        pack(memory, 0, address, rows, length, words, out, finish)
        launch(pointer, grid, 1, 1, block, 1, 1, shared, stream, table, 0)

    return start
