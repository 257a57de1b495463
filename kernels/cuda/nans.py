"""NaN elements counted on the GPU, where the policy asks for it."""

from pathlib import Path
from typing import Any

import numpy as np

from kernels.cuda.compile import Unit
from kernels.cuda.launch import Gpu
from kernels.cuda.reductions import element
from kernels.dtypes import DType

SOURCE = Path(__file__).parent / "sources" / "nans.cu"
THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = 8


def nans_unit(dtype: DType) -> Unit:
    """The kernel that counts the NaNs of a float `dtype`."""
    return Unit(SOURCE, (f"nans<{element(dtype)}>",))


class NanCounter:
    """How many elements of the arrays shown to it were NaN. With `replace` they become −0, which adds nothing."""

    def __init__(self, gpu: Gpu, dtype: DType, *, replace: bool) -> None:
        import cupy

        unit = nans_unit(dtype)
        self._gpu = gpu
        self._kernel = gpu.kernel(unit, unit.kernels[0])
        self._replace = np.uint32(replace)
        self._count = cupy.zeros(1, dtype=np.uint64)

    def add(self, array: Any) -> None:
        blocks = min(-(-array.size // THREADS), BLOCKS_PER_MULTIPROCESSOR * self._gpu.multiprocessors)
        self._kernel(blocks, THREADS, (array, np.uint64(array.size), self._replace, self._count))

    def count(self) -> int:
        """Waits for the work so far."""
        return int(self._count.get()[0])
