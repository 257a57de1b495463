"""Converts arrays of floats to a wider format, on the GPU."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.dtypes import DTYPES, DType

SOURCE = Path(__file__).parent.parent / "sources" / "widen.cu"


def widening_unit(wide: DType) -> Unit:
    """The kernels that widen to `wide`: float32 or float64."""
    narrower = (row for row in DTYPES.values() if row.is_float and row.precision < wide.precision)
    return Unit(SOURCE, tuple(_kernel(narrow, wide) for narrow in narrower))


def widened(gpu: Gpu, array: Any, dtype: DType, wide: DType) -> Any:
    """A CuPy array of the elements of `array`, which has `dtype`, in the format `wide`; `array` itself if that is
    `dtype`."""
    import cupy

    if dtype is wide:
        return array
    kernel = gpu.kernel(widening_unit(wide), _kernel(dtype, wide))
    out = cupy.empty(array.size, dtype=wide.numpy)
    blocks, threads = GRID_STRIDE.grid(array.size, array.itemsize, gpu.multiprocessors)
    kernel(blocks, threads, (array, np.uint64(array.size), out))
    return out


def _kernel(narrow: DType, wide: DType) -> str:
    return f"widened<{narrow.name}, {wide.name}>"
