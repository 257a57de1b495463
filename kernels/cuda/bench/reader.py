"""Reading for its own sake: to displace what the cache holds, and to find out how fast memory can be read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Call, Prepared

SOURCE = Path(__file__).parent / "read.cu"
_SCRAMBLE = "scramble"


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads a block, blocks a multiprocessor, 16-byte reads in flight a thread, and whether past the cache. With
    `flights` a block reads so many flights and ends, and there are as many blocks as that takes."""

    threads: int
    blocks: int
    flight: int
    streaming: bool
    flights: int = 0

    @property
    def kernel(self) -> str:
        if self.flights:
            return f"read_parts<{self.flight}, {self.flights}>"
        return f"read<{self.flight}, {str(self.streaming).lower()}>"

    def grid(self, vectors: int, multiprocessors: int) -> int:
        """Blocks for so many reads."""
        if self.flights:
            return -(-vectors // (self.threads * self.flight * self.flights))
        return self.blocks * multiprocessors


SWEEP = Shape(threads=512, blocks=4, flight=4, streaming=False)
SHAPES = (
    SWEEP,
    *(
        Shape(threads, blocks, flight, streaming=True)
        for threads, blocks in ((256, 8), (512, 4), (1024, 2))
        for flight in (2, 4, 8)
    ),
    *(Shape(threads=512, blocks=0, flight=4, streaming=False, flights=flights) for flights in (2, 4, 8)),
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
    vectors = array.nbytes // 16
    args = (array, np.uint64(vectors), never)
    blocks = shape.grid(vectors, gpu.multiprocessors)
    return Prepared(gpu, [Call(kernel, blocks, shape.threads, args, 0, cooperative=False)])
