"""Launches of one kernel of the exact accumulator, all adding to one total."""

from typing import Any

import numpy as np

from warpfold.kernels.cuda.exact.limbs import Limbs
from warpfold.kernels.cuda.exact.shapes import SHAPES, SumKind, exact_unit, kernel_name
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import VECTOR_BYTES
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput


class Launches:
    """The kernel of `kind` for a float `dtype`, and its total in the GPU's memory.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType, kind: SumKind) -> None:
        if dtype.name not in SHAPES:
            raise InvalidInput(f"{dtype.name} is not summed exactly by floating point")
        self.itemsize = dtype.itemsize
        shape = SHAPES[dtype.name][kind].fitted(gpu.shared_per_block)
        name = kernel_name(dtype, kind, shape)
        self._kernel = gpu.kernel(exact_unit(dtype, gpu.shared_per_block), name)
        self._threads, self._shared = shape.threads, shape.threads * shape.shared
        self._tile = shape.threads * shape.flight
        self._resident = self._kernel.blocks_per_multiprocessor(self._threads, self._shared) * gpu.multiprocessors
        self._limbs = Limbs(kind)

    @property
    def limbs(self) -> Any:
        """The limbs of the total, a CuPy array of int64."""
        return self._limbs.array

    def start(self, *arrays: Any) -> None:
        """Add arrays of one length, at least 1, that lie alike between boundaries of 16 bytes."""
        count = int(arrays[0].size)
        blocks = min(self._resident, self._tiles(arrays[0]))
        self._limbs.make_room(most_added(blocks, count))
        self._kernel(blocks, self._threads, (*arrays, np.uint64(count), self.limbs), shared=self._shared)

    def _tiles(self, array: Any) -> int:
        """How many tiles `Vectors` in include/exact_tiles.cuh makes of the array."""
        size, lanes = int(array.size), VECTOR_BYTES // self.itemsize
        head = min(size, -int(array.data.ptr) % VECTOR_BYTES // self.itemsize)
        whole = (size - head) // lanes
        return -(-(size - whole * (lanes - 1)) // self._tile)


def most_added(blocks: int, count: int) -> int:
    """How many numbers below 2**32 a launch may add to one limb.

    Numbers lie at least 8 binary places apart, at most two at one place, and reach over 128: fewer than 32 of a block
    share a limb. A warp of buckets adds 32 more whenever its lanes have met 32 · (2**14 − 32) > 2**18 elements each
    (include/exact_buckets.cuh), which is once in 2**23 elements.
    """
    return 32 * blocks + (count >> 18)
