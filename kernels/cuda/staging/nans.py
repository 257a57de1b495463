"""Counts NaN elements on the GPU, where the policy asks for it."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.elements import element
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE
from warpfold.kernels.cuda.strategies.partial_results import NOWHERE
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput

SOURCE = Path(__file__).parent.parent / "sources" / "nans.cu"


def nans_unit(dtype: DType) -> Unit:
    """The kernel that counts the NaNs of a float `dtype`."""
    return Unit(SOURCE, (f"nans<{element(dtype)}>",))


class NanCounter:
    """Counts the NaN elements of the arrays that are added to it."""

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        import cupy

        unit = nans_unit(dtype)
        self._gpu = gpu
        self._kernel = gpu.kernel(unit, unit.kernels[0])
        self._count_and_first = cupy.array([0, NOWHERE], dtype=np.uint64)

    def add(self, array: Any, first: int) -> None:
        blocks, threads = GRID_STRIDE.grid(array.size, array.itemsize, self._gpu.multiprocessors)
        self._kernel(blocks, threads, (array, np.uint64(array.size), np.uint64(first), self._count_and_first))

    def count(self) -> int:
        """How many elements so far are NaN. This waits for the work."""
        return int(self._count_and_first.get()[0])

    def refuse(self, what: str = "element", of: str = "") -> None:
        """Raise InvalidInput naming the first NaN element, if an element is NaN. The message calls an element `what`,
        and adds `of`, which names its source."""
        count, first = map(int, self._count_and_first.get())
        if count:
            raise InvalidInput(f"{what} {first}{of} is NaN, and nan_policy is raise", "nan_policy")
