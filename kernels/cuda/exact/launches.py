"""Launches of one kernel of the exact accumulator, all adding to one total."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.exact.shapes import SHAPES, Kind, exact_unit, kernel_name
from kernels.cuda.launch import Gpu
from kernels.dtypes import DType
from kernels.errors import InvalidInput

VECTOR_BYTES = 16

MOST_BLOCKS = 1 << 25
"""Blocks that may add to a total before its 64-bit words could overflow: each adds less than 2**37 to a word, as fewer
than 32 numbers overlap it, below 2**32 each."""


class Launches:
    """The kernel of `kind` for a float `dtype`, and its total of `words` 64-bit words in the GPU's memory.

    Raises InvalidInput for a dtype that is no float.
    """

    def __init__(self, gpu: Gpu, dtype: DType, kind: Kind, words: int) -> None:
        import cupy

        if dtype.name not in SHAPES:
            raise InvalidInput(f"{dtype.name} is not summed exactly by floating point")
        self.itemsize = dtype.itemsize
        shape = SHAPES[dtype.name][kind].fitted(gpu.shared_per_block)
        name = kernel_name(dtype, kind, shape)
        self._kernel = gpu.kernel(exact_unit(dtype, gpu.shared_per_block), name)
        self._threads, self._shared = shape.threads, shape.threads * shape.shared
        self._tile = shape.threads * shape.flight
        self._resident = self._kernel.blocks_per_multiprocessor(self._threads, self._shared) * gpu.multiprocessors
        self._words = cupy.zeros(words, dtype=np.uint64)
        self._blocks = 0

    @property
    def room(self) -> bool:
        """Whether the total has room for one more launch."""
        return self._blocks + self._resident <= MOST_BLOCKS

    def start(self, *arrays: Any) -> None:
        """Add arrays of one length, at least 1, that lie alike between boundaries of 16 bytes."""
        blocks = min(self._resident, self._tiles(arrays[0]))
        self._blocks += blocks
        args = (*arrays, np.uint64(arrays[0].size), self._words)
        self._kernel(blocks, self._threads, args, shared=self._shared)

    def _tiles(self, array: Any) -> int:
        """How many tiles `Vectors` in include/exact_tiles.cuh makes of the array."""
        size, lanes = int(array.size), VECTOR_BYTES // self.itemsize
        head = min(size, -int(array.data.ptr) % VECTOR_BYTES // self.itemsize)
        whole = (size - head) // lanes
        return -(-(size - whole * (lanes - 1)) // self._tile)

    def take(self) -> NDArray[np.uint64] | None:
        """The words of the total, which is zero afterwards; None if it is zero already. Waits for the work."""
        if not self._blocks:
            return None
        words: NDArray[np.uint64] = self._words.get()
        self._words.fill(0)
        self._blocks = 0
        return words
