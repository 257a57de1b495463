"""The kernels that pick elements of rows and count them in bins, and the launches that rows need."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu, Kernel
from warpfold.kernels.cuda.ranks.rows import LONG, ValueRows
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "picks.cu"

COUNT_PICKS, WRITE_PICKS, COUNT_BINS = "count_picks", "write_picks", "count_bins"
KEYS_OF_VALUES, TAKE_RUNS = "keys_of_values", "take_runs"
_KERNELS = (COUNT_PICKS, WRITE_PICKS, COUNT_BINS, KEYS_OF_VALUES, TAKE_RUNS)

_PART = 1 << 14
"""Elements of a part of a long value."""


def picks_unit(dtype: DType) -> Unit:
    """The kernels for elements of `dtype`."""
    return Unit(SOURCE, tuple(name_of(name, dtype) for name in _KERNELS))


def picks_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    return map(picks_unit, DTYPES.values())


def name_of(name: str, dtype: DType) -> str:
    """The kernel called `name` for elements of `dtype`, as its unit names it."""
    return f"{name}<{element(dtype)}>"


def kernel(gpu: Gpu, name: str, dtype: DType) -> Kernel:
    """The kernel called `name` for elements of `dtype`."""
    return gpu.kernel(picks_unit(dtype), name_of(name, dtype))


@dataclass(frozen=True, slots=True)
class RowsLaunch:
    """Rows of one launch: those of all values from number 0 on, or the parts of a value that is long. `bounds` says
    where they lie, as `PickRows` of include/picks.cuh, and `step` is 0 for parts."""

    array: Any
    bounds: tuple[Any, ...]
    value: int
    rows: int
    part: int
    step: np.uint64


def launches(rows: ValueRows) -> Iterator[RowsLaunch]:
    """The launches of rows of any lengths."""
    long = rows.long()
    if not rows.lengths.any():
        return
    if len(long) < rows.lengths.size:
        yield RowsLaunch(rows.array, (*rows.bounds, np.uint64(LONG)), 0, rows.lengths.size, 0, np.uint64(1))
    for value in long:
        array = rows.elements(value)
        parts = -(-int(array.size) // _PART)
        bounds = (np.uint64(0), np.uint64(_PART), np.uint64(array.size), np.uint64(parts), np.uint64(_PART))
        yield RowsLaunch(array, bounds, value, parts, _PART, np.uint64(0))
