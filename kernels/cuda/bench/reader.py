"""Loops that only read: they displace what the cache holds, and measure how fast memory can be read."""

from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.launch_shape import GRID_STRIDE, VECTOR_BYTES, LaunchShape
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordedLaunch

SOURCE = Path(__file__).parent / "read.cu"
_SCRAMBLE = "scramble"
_WRITING = "read_and_write<4, 2>"
_WRITING_THREADS = 512


SWEEP = LaunchShape(threads=512, blocks_per_multiprocessor=4, flight=4)
SHAPES = (
    SWEEP,
    *(
        LaunchShape(threads, blocks_per_multiprocessor=blocks, flight=flight, streaming=True)
        for threads, blocks in ((256, 8), (512, 4), (1024, 2))
        for flight in (2, 4, 8)
    ),
    # A block reads this many flights and ends. There are as many blocks as the array needs. A tile is counted in
    # 16-byte reads.
    *(LaunchShape(threads=512, tile=512 * 4 * rounds, flight=4, rounds=rounds) for rounds in (2, 4, 8)),
)


def read_kernel(shape: LaunchShape) -> str:
    """The reading loop of a shape, as a C++ name expression."""
    if shape.rounds:
        return f"read_parts<{shape.flight}, {shape.rounds}>"
    return f"read<{shape.flight}, {str(shape.streaming).lower()}>"


def read_unit() -> Unit:
    """Every shape's kernel."""
    return Unit(SOURCE, (*dict.fromkeys(map(read_kernel, SHAPES)), _WRITING, _SCRAMBLE))


def patternless(gpu: Gpu, nbytes: int) -> Any:
    """A CuPy array of `nbytes` (rounded down to 16) random-looking bytes: zeros can be read faster than data."""
    import cupy

    array = cupy.empty(nbytes // 16 * 4, dtype=np.uint32)
    scramble = gpu.kernel(read_unit(), _SCRAMBLE)
    scramble(GRID_STRIDE.most_blocks(gpu.multiprocessors), GRID_STRIDE.threads, (array, np.uint64(array.size)))
    return array


def reading(gpu: Gpu, array: Any, shape: LaunchShape) -> Prepared:
    """A launch that reads all of `array`."""
    import cupy

    kernel = gpu.kernel(read_unit(), read_kernel(shape))
    never = cupy.zeros(1, dtype=np.uint32)
    vectors = array.nbytes // VECTOR_BYTES
    args = (array, np.uint64(vectors), never)
    blocks = -(-vectors // shape.tile) if shape.tile else shape.most_blocks(gpu.multiprocessors)
    return Prepared(gpu, [RecordedLaunch(kernel, blocks, shape.threads, args, 0, cooperative=False)])


def reading_and_writing(gpu: Gpu, array: Any, out: Any, ratio: int) -> Prepared:
    """A launch that reads all of `array` and writes to `out` one byte for every `ratio` bytes that it reads."""
    kernel = gpu.kernel(read_unit(), _WRITING)
    vectors, part = array.nbytes // VECTOR_BYTES, _WRITING_THREADS * 4 * 2
    args = (array, np.uint64(vectors), out, np.uint32(ratio))
    return Prepared(gpu, [RecordedLaunch(kernel, vectors // part, _WRITING_THREADS, args, 0, cooperative=False)])
