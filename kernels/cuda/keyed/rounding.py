"""Values of the groups of a state in the GPU's memory, each rounded once (include/keyed_finish.cuh)."""

from typing import Any

import numpy as np

from warpfold.kernels.cuda.keyed.adding import KeyedAdder, KeyedState
from warpfold.kernels.cuda.keyed.shapes import (
    LISTED_THREADS,
    WORDS,
    integers_kernel,
    listed_kernels,
    unit_of,
    values_kernel,
)
from warpfold.kernels.dtypes import DTYPES

_THREADS = 256


def rounded(rows: KeyedAdder, state: KeyedState, other: Any, *, mean: bool) -> Any:
    """The sums or means that the levels hold, one of each code. `other` says which groups have elements other than −0,
    or is None where no element is −0."""
    import cupy

    result = rows.dtype if rows.dtype.is_float else DTYPES["float64"]
    values = cupy.empty(state.range, dtype=result.numpy)
    where = np.uint64(0) if other is None else other
    args = (np.int32(rows.unit), np.uint32(mean), where, values, *state.args)
    _run(rows, values_kernel(rows.dtype, result, rows.levels), _blocks(rows, state), _THREADS, args)
    return values


def integers(rows: KeyedAdder, state: KeyedState) -> tuple[Any, Any]:
    """The sums of integers: the lower words (uint64) and the upper ones (int64)."""
    import cupy

    low, high = cupy.empty(state.range, np.uint64), cupy.empty(state.range, np.int64)
    _run(rows, integers_kernel(rows.dtype, rows.levels), _blocks(rows, state), _THREADS, (low, high, *state.args))
    return low, high


def add_listed(rows: KeyedAdder, state: KeyedState, count: int, values: Any, *, mean: bool) -> None:
    """Round the groups of the `count` listed elements again, with these."""
    import cupy

    if not count:
        return
    groups, places = np.unique(state.listed[:count].get(), return_inverse=True)
    totals = cupy.zeros(groups.size * WORDS, dtype=np.uint64)
    add, finish = listed_kernels(rows.dtype, rows.levels)
    _run(
        rows, add, -(-count // LISTED_THREADS), LISTED_THREADS,
        (state.elements, cupy.asarray(places.reshape(-1).astype(np.uint32)), np.uint32(count), totals),
    )  # fmt: skip
    _run(
        rows, finish, -(-groups.size // LISTED_THREADS), LISTED_THREADS,
        (np.int32(rows.unit), np.uint32(mean), cupy.asarray(groups), np.uint32(groups.size), totals, values,
         *state.args),
    )  # fmt: skip


def _blocks(rows: KeyedAdder, state: KeyedState) -> int:
    return int(min(-(-state.range // _THREADS), 32 * rows.gpu.multiprocessors))


def _run(rows: KeyedAdder, name: str, grid: int, block: int, args: tuple[Any, ...]) -> None:
    rows.gpu.kernel(unit_of(name), name)(grid, block, args)
