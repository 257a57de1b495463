"""Sums and means of rows in one launch (`reduced_rows` of `../sources/reduced.cu`), for arrays so small that to start a
second launch takes longer than the sums."""

from typing import Protocol

from warpfold.kernels.cuda.exact.finishing import FinishedOp, Finishing
from warpfold.kernels.cuda.exact.shapes import SumKind
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES, WARP
from warpfold.kernels.cuda.grouped.shapes import FLOATS
from warpfold.kernels.cuda.resident.arrangement import Members
from warpfold.kernels.cuda.resident.packed import function_of
from warpfold.kernels.cuda.resident.shapes import EACH_THREADS
from warpfold.kernels.cuda.resident.whole import ResidentReducer
from warpfold.kernels.dtypes import DType

_MOST_READS = 1 << 10
"""Reads of 16 bytes of a row: a warp takes microseconds for more, and several warps less."""

_ROWS = EACH_THREADS // WARP
"""Rows of a block."""


class RowsReduction(Protocol):
    """An op of the rows of arrays that lie alike, ready to be started."""

    def __call__(self, address: int, out: int, stream: int, captured: bool = False) -> None:
        """Put the reduction of the array at `address`, a multiple of 16, to values at `out` on `stream`. Raises CuPy's
        CUDADriverError."""


def rows_serve(reducer: ResidentReducer, op: FinishedOp, dtype: DType, members: Members) -> bool:
    """Whether these values are rows that one launch adds up."""
    summed = op.kind is SumKind.VALUES and op.finish in {Finishing.SUM, Finishing.MEAN}
    size = members.count * dtype.itemsize
    return (
        summed
        and dtype.name in FLOATS
        and members.stride == 1
        and size % VECTOR_BYTES == 0
        and size <= _MOST_READS * VECTOR_BYTES
        and members.values <= _ROWS * reducer.each_blocks
    )


def rows_reduction(reducer: ResidentReducer, op: FinishedOp, dtype: DType, members: Members) -> RowsReduction:
    """The launch for rows that it serves. All that a call needs is at hand by local names, as in `whole.py`."""
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
