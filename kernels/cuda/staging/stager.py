"""The elements of a source brought to the GPU, piece after piece or as a whole.

Pieces have a fixed size, so that what a strategy computes depends on the source and the GPU alone, and an array need
fit neither in the GPU's memory nor, when it is a memory map, in the host's. Two pinned buffers take turns: while one is
copied by the GPU, the next piece is read into the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from warpfold.kernels.backend import Progress
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.generate import plan
from warpfold.kernels.source import GeneratedSource, Source

COPIED_BYTES = 1 << 26
"""A piece that crosses the bus: 64 MiB take 1 to 5 ms, far more than starting a copy does."""

MADE_BYTES = 1 << 29
"""A piece made on the GPU: 512 MiB take a reduction 0.1 ms or more, far more than starting it does."""


def carrier(dtype: DType) -> "np.dtype[np.generic]":
    """The NumPy dtype in which CuPy holds elements of `dtype`: bfloat16 travels as the bits it is."""
    return np.dtype(np.uint16) if dtype.name == "bfloat16" else dtype.numpy


class Stager:
    """Pieces of sources on `gpu`, in buffers that are kept for the next source."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._buffers, self._others = (_StagingBuffer(), _StagingBuffer()), (_StagingBuffer(), _StagingBuffer())

    def pieces(self, *sources: Source, progress: Progress | None = None) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(CuPy arrays of one dimension, index of their first elements) for every piece of one source, or of two of one
        length, in order.

        Work on a piece must be put on the GPU's stream before the next one is asked for; its memory is used again.
        `progress` is called before each piece and at the end, when everything is done.
        """
        size, count = min(map(piece_size, sources)), sources[0].count
        for number, start in enumerate(range(0, count, size)):
            buffers = [pair[number % 2] for pair in (self._buffers, self._others)[: len(sources)]]
            for buffer in buffers:
                buffer.wait()
            if progress is not None:  # the piece before last is done
                progress(max(0, start - size), count)
            arrays = []
            for source, buffer in zip(sources, buffers, strict=True):
                arrays.append(buffer.array(min(size, count - start), source.dtype))
                self._bring(source, start, arrays[-1], buffer)
            yield tuple(arrays), start
            for buffer in buffers:
                buffer.mark(self._gpu.stream)
        self._gpu.stream.synchronize()
        if progress is not None:
            progress(count, count)

    def whole(self, source: Source, progress: Progress | None) -> Any:
        """All of `source` in one CuPy array of one dimension. Raises OutOfMemory if it does not fit."""
        import cupy

        needed = source.count * source.dtype.itemsize
        with cuda_errors("memory of the device"):
            free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
        if needed > free:
            raise OutOfMemory(
                f"{source.count:,} elements of {source.dtype.name} need {needed:,} bytes on the GPU as a whole, "
                f"of which {free:,} are free"
            )
        with cuda_errors(f"an array of {needed:,} bytes"):
            array = cupy.empty(source.count, dtype=carrier(source.dtype))
        size = piece_size(source)
        for number, start in enumerate(range(0, source.count, size)):
            buffer = self._buffers[number % 2]
            buffer.wait()
            if progress is not None:
                progress(max(0, start - size), source.count)
            self._bring(source, start, array[start : start + size], buffer)
            buffer.mark(self._gpu.stream)
        return array

    def _bring(self, source: Source, start: int, array: Any, buffer: "_StagingBuffer") -> None:
        if isinstance(source, GeneratedSource):
            fill(self._gpu, plan(source), array, start)
            return
        import cupy

        staged = buffer.pinned(array.nbytes)
        staged[:] = np.ascontiguousarray(source.read(start, start + array.size)).view(np.uint8)
        with cuda_errors("copying to the GPU"):
            to_device = cupy.cuda.runtime.memcpyHostToDevice
            cupy.cuda.runtime.memcpyAsync(
                array.data.ptr, staged.ctypes.data, array.nbytes, to_device, self._gpu.stream.ptr
            )

    def close(self) -> None:
        """Give the buffers back."""
        self._buffers, self._others = (_StagingBuffer(), _StagingBuffer()), (_StagingBuffer(), _StagingBuffer())


def piece_size(source: Source) -> int:
    """Elements a piece of `source`; the last may have fewer."""
    return (MADE_BYTES if isinstance(source, GeneratedSource) else COPIED_BYTES) // source.dtype.itemsize


class _StagingBuffer:
    """A device buffer, a pinned host buffer, and the event after which both are free again."""

    def __init__(self) -> None:
        self._device: Any = None
        self._pinned: Any = None
        self._done: Any = None

    def wait(self) -> None:
        if self._done is not None:
            with cuda_errors("the piece before"):
                self._done.synchronize()

    def mark(self, stream: Any) -> None:
        import cupy

        if self._done is None:
            self._done = cupy.cuda.Event(disable_timing=True)
        self._done.record(stream)

    def array(self, size: int, dtype: DType) -> Any:
        import cupy

        nbytes = size * dtype.itemsize
        if self._device is None or self._device.size < nbytes:
            self._device = None  # first give back, then ask
            with cuda_errors(f"a buffer of {_rounded(nbytes):,} bytes"):
                self._device = cupy.empty(_rounded(nbytes), dtype=np.uint8)
        return self._device[:nbytes].view(carrier(dtype))

    def pinned(self, nbytes: int) -> Any:
        import cupy

        if self._pinned is None or self._pinned.size < nbytes:
            self._pinned = None
            size = _rounded(nbytes)
            with cuda_errors(f"a pinned buffer of {size:,} bytes"):
                self._pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), dtype=np.uint8, count=size)
        return self._pinned[:nbytes]


def _rounded(nbytes: int) -> int:
    """The power of two that holds `nbytes`, at least 64 KiB, so that buffers are rarely replaced."""
    return max(1 << 16, 1 << (nbytes - 1).bit_length())
