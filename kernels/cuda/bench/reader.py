"""Reading for its own sake: to displace what the cache holds, and to find out how fast memory can be read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.cuda.compile import Unit
from kernels.cuda.launch import Gpu
from kernels.cuda.prepared import Call, Prepared

SOURCE = Path(__file__).parent / "read.cu"
_SCRAMBLE = "scramble"


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads a block, blocks a multiprocessor, 16-byte reads in flight a thread, and whether past the cache."""

    threads: int
    blocks: int
    flight: int
    streaming: bool

    @property
    def kernel(self) -> str:
        return f"read<{self.flight}, {str(self.streaming).lower()}>"


SWEEP = Shape(threads=512, blocks=4, flight=4, streaming=False)
SHAPES = (
    SWEEP,
    *(
        Shape(threads, blocks, flight, streaming=True)
        for threads, blocks in ((256, 8), (512, 4), (1024, 2))
        for flight in (2, 4, 8)
    ),
)


def read_unit() -> Unit:
    """Every shape's kernel."""
    return Unit(SOURCE, (*dict.fromkeys(shape.kernel for shape in SHAPES), _SCRAMBLE))


def patternless(gpu: Gpu, nbytes: int) -> Any:
    """A CuPy array of `nbytes` (rounded down to 16) random-looking bytes: zeros can be read faster than data."""
    import cupy

    array = cupy.empty(nbytes // 16 * 4, dtype=np.uint32)
    scramble = gpu.kernel(read_unit(), _SCRAMBLE)
    scramble(8 * gpu.multiprocessors, 256, (array, np.uint64(array.size)))
    return array


def reading(gpu: Gpu, array: Any, shape: Shape) -> Prepared:
    """A launch that reads all of `array`."""
    import cupy

    kernel = gpu.kernel(read_unit(), shape.kernel)
    never = cupy.zeros(1, dtype=np.uint32)
    args = (array, np.uint64(array.nbytes // 16), never)
    return Prepared(gpu, [Call(kernel, shape.blocks * gpu.multiprocessors, shape.threads, args, 0, cooperative=False)])
