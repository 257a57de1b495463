"""The kernels of windows: those of a dtype, and those of running sums and keys alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "windows.cu"

THREADS, ITEMS, SCANNED, SCAN_THREADS = 256, 8, 14, 1024
"""As in `sources/windows.cu`, include/windows.cuh and include/window_scan.cuh."""

_OF_ELEMENTS = ("sum_tiles", "running_sums", "mark_tiles", "running_marks", "extremes_of_blocks", "extremes_of_windows")
WIDE, MARKS = "uint128", "uint64"
"""The running sums of fixed point, and those of marks."""

COMMON = (
    *(f"{name}<{sums}>" for name in ("sum_tiles_before", "window_words") for sums in (WIDE, MARKS)),
    f"window_counts<{MARKS}>",
    *(f"double_runs<uint{width}>" for width in (8, 16, 32, 64)),
    *(f"window_values<{name}>" for name, dtype in DTYPES.items() if dtype.is_float),
)


def of_dtype(name: str, dtype: DType) -> str:
    """The kernel called `name` for elements of `dtype`, as its unit names it."""
    return f"{name}<{element(dtype)}>"


def scanned_windows(dtype: DType) -> str:
    """The kernel of rounded sums, or means, of windows of one line of elements of `dtype`."""
    return f"scanned_windows<{element(dtype)}, {rounded_to(dtype)}>"


def rounded_to(dtype: DType) -> str:
    """The float to which means of `dtype` are rounded, and sums of floats."""
    return dtype.name if dtype.is_float else "float64"


def windows_units() -> Iterator[Unit]:
    """All units, for the compile matrix."""
    yield Unit(SOURCE, COMMON)
    yield from map(windows_unit, DTYPES.values())


def windows_unit(dtype: DType) -> Unit:
    """The kernels for elements of `dtype`."""
    extents = (of_dtype("extents", dtype),) if dtype.is_float else ()
    return Unit(SOURCE, (*(of_dtype(name, dtype) for name in _OF_ELEMENTS), scanned_windows(dtype), *extents))


def launch(  # noqa: PLR0917
    gpu: Gpu, unit: Unit, name: str, threads: int, args: tuple[Any, ...], block: int
) -> None:
    """Start so many threads of a kernel, in whole blocks."""
    gpu.kernel(unit, name)(max(1, -(-threads // block)), block, args)


COMMON_UNIT = Unit(SOURCE, COMMON)
NONE = np.uint64(0)
"""What a kernel takes for no array."""
