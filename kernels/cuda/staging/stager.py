"""The elements of a source brought to the GPU, piece after piece or as a whole.

Pieces have a fixed size, so that what a strategy computes depends on the source and the GPU alone, and an array need
fit neither in the GPU's memory nor, when it is a memory map, in the host's. Threads read ahead of the GPU into a ring
of pinned parts; while one piece is copied and reduced, the parts of the next are read.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from warpfold.kernels.backend import Progress
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.buffers import PART_BYTES, DeviceBuffer, Part, PinnedRing
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.generate import plan
from warpfold.kernels.sequential import Elements, SequentialSource, ahead, likely_count, side_by_side
from warpfold.kernels.source import ArraySource, GeneratedSource, Source

COPIED_BYTES = 1 << 26
"""A piece that crosses the bus: 64 MiB take 1 to 5 ms, far more than starting a copy does."""

MADE_BYTES = 1 << 29
"""A piece made on the GPU: 512 MiB take a reduction 0.1 ms or more, far more than starting it does."""


class Stager:
    """Pieces of sources on `gpu`, in buffers that are kept for the next source."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._ring = PinnedRing(gpu)
        self._buffers, self._others = (DeviceBuffer(), DeviceBuffer()), (DeviceBuffer(), DeviceBuffer())

    def pieces(self, *sources: Elements, progress: Progress | None = None) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(CuPy arrays of one dimension, index of their first elements) for every piece of one source, or of two of one
        length, in order.

        Work on a piece must be put on the GPU's stream before the next one is asked for; its memory is used again.
        `progress` is called before each piece and at the end, when everything is done.
        """
        by_position = tuple(source for source in sources if not isinstance(source, SequentialSource))
        if len(by_position) == len(sources):
            yield from self._by_position(by_position, progress)
        else:
            yield from self._in_order(sources, progress)

    def _in_order(
        self, sources: Sequence[Elements], progress: Progress | None
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The pieces of sources of which one at least comes in order: a thread decodes a piece while the one before is
        copied and reduced."""
        size, likely, first, before = min(map(piece_size, sources)), max(map(likely_count, sources)), 0, 0
        with ahead(side_by_side(sources, size)) as decoded:
            for number, parts in enumerate(decoded):
                buffers = [pair[number % 2] for pair in (self._buffers, self._others)[: len(sources)]]
                for buffer in buffers:
                    buffer.wait()
                if progress is not None:  # the piece before last is done
                    progress(before, max(first, likely))
                arrays = []
                for part, source, buffer in zip(parts, sources, buffers, strict=True):
                    arrays.append(buffer.array(part.size, source.dtype))
                    self._ring.begin(_parts([ArraySource(part)], part.size), part.nbytes)
                    self._ring.send(arrays[-1])
                yield tuple(arrays), first
                for buffer in buffers:
                    buffer.mark(self._gpu.stream)
                before, first = first, first + parts[0].size
        self._gpu.stream.synchronize()
        if progress is not None:
            progress(first, first)

    def _by_position(
        self, sources: Sequence[Source], progress: Progress | None
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        size, count = min(map(piece_size, sources)), sources[0].count
        self._read_ahead(sources, size)
        for number, start in enumerate(range(0, count, size)):
            buffers = [pair[number % 2] for pair in (self._buffers, self._others)[: len(sources)]]
            for buffer in buffers:
                buffer.wait()
            if progress is not None:  # the piece before last is done
                progress(max(0, start - size), count)
            arrays = []
            for source, buffer in zip(sources, buffers, strict=True):
                arrays.append(buffer.array(min(size, count - start), source.dtype))
                self._bring(source, start, arrays[-1])
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
        self._read_ahead((source,), size)
        for number, start in enumerate(range(0, source.count, size)):
            buffer = self._buffers[number % 2]
            buffer.wait()
            if progress is not None:
                progress(max(0, start - size), source.count)
            self._bring(source, start, array[start : start + size])
            buffer.mark(self._gpu.stream)
        return array

    def _read_ahead(self, sources: Sequence[Source], size: int) -> None:
        """Start to read what crosses the bus, in the order in which `_bring` will ask for it."""
        copied = [source for source in sources if not isinstance(source, GeneratedSource)]
        self._ring.begin(_parts(copied, size), sum(source.count * source.dtype.itemsize for source in copied))

    def _bring(self, source: Source, start: int, array: Any) -> None:
        if isinstance(source, GeneratedSource):
            fill(self._gpu, plan(source), array, start)
        else:
            self._ring.send(array)

    def close(self) -> None:
        """Give the buffers back, and end the threads."""
        self._ring.close()
        self._buffers, self._others = (DeviceBuffer(), DeviceBuffer()), (DeviceBuffer(), DeviceBuffer())


def piece_size(source: Elements) -> int:
    """Elements a piece of `source`; the last may have fewer."""
    return (MADE_BYTES if isinstance(source, GeneratedSource) else COPIED_BYTES) // source.dtype.itemsize


def _parts(sources: Sequence[Source], size: int) -> Iterator[Part]:
    """Piece after piece of `size` elements, and of each piece source after source, cut for threads."""
    for start in range(0, max((source.count for source in sources), default=0), size):
        for source in sources:
            stop, step = min(start + size, source.count), PART_BYTES // source.dtype.itemsize
            for first in range(start, stop, step):
                yield Part(source, first, min(step, stop - first))
