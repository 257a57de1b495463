"""The elements of a source brought to the GPU, piece after piece or as a whole.

Pieces have a fixed size, so that what a strategy computes depends on the source and the GPU alone, and an array need
fit neither in the GPU's memory nor, when it is a memory map, in the host's. Threads read ahead of the GPU into a ring
of pinned parts; while one piece is copied and reduced, the parts of the next are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import Progress, Stages
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.buffers import DeviceBuffer, PinnedRing
from warpfold.kernels.cuda.staging.file_ring import FileRing
from warpfold.kernels.cuda.staging.generator import fill, load
from warpfold.kernels.cuda.staging.parts import RingShape
from warpfold.kernels.cuda.staging.stage_times import StageTimes
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.generate import plan
from warpfold.kernels.parts.blocks import made_runs
from warpfold.kernels.source import Source
from warpfold.kernels.sources.sequential import (
    Elements,
    SequentialSource,
    ahead,
    decoded_ahead_s,
    gathered,
    held_side_by_side,
    likely_count,
)

T = TypeVar("T")

COPIED_BYTES = 1 << 26
"""A piece that crosses the bus: 64 MiB take 1 to 5 ms, far more than starting a copy does."""

MADE_BYTES = 1 << 29
"""A piece made on the GPU: 512 MiB take a reduction 0.1 ms or more, far more than starting it does."""


class Stager:
    """Pieces of sources on `gpu`, in buffers that are kept for the next source. It brings the sources of one reduction
    at a time."""

    def __init__(self, gpu: Gpu, shape: RingShape | None = None) -> None:
        self._gpu = gpu
        self._shape = shape or RingShape()
        self._ring = PinnedRing(gpu, self._shape)
        self._files = FileRing(gpu, self._ring, self._shape.lanes)
        # Which of the two brings the sources in hand.
        self._bringing: PinnedRing | FileRing = self._ring
        self._times = StageTimes(gpu.stream)
        self._buffers, self._others = (DeviceBuffer(), DeviceBuffer()), (DeviceBuffer(), DeviceBuffer())

    def pieces(self, *sources: Elements, progress: Progress | None = None) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(CuPy arrays of one dimension, index of their first elements) for every piece of one source, or of two of one
        length, in order.

        Work on a piece must be put on the GPU's stream before the next one is asked for; its memory is used again.
        `progress` is called before each piece and at the end, when everything is done.
        """
        self._times = StageTimes(self._gpu.stream)
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
        size = self._shape.decoded_bytes // max(source.dtype.itemsize for source in sources)
        likely, first, before = max(map(likely_count, sources)), 0, 0
        with ahead(self._decoded(held_side_by_side(sources, size))) as decoded:
            for number, parts in enumerate(decoded):
                buffers = [pair[number % 2] for pair in (self._buffers, self._others)[: len(sources)]]
                for buffer in buffers:
                    buffer.wait()
                if progress is not None:  # the piece before last is done
                    progress(before, max(first, likely))
                arrays = []
                for part, source, buffer in zip(parts, sources, buffers, strict=True):
                    arrays.append(buffer.array(part.count, source.dtype))
                    self._read_ahead((part,), part.count)
                    try:
                        self._bring(part, 0, arrays[-1])
                    finally:
                        self._files.stop()
                yield tuple(arrays), first
                for buffer in buffers:
                    buffer.mark(self._gpu.stream)
                before, first = first, first + parts[0].count
        self._times.ahead_s = decoded_ahead_s(sources)
        self._gpu.stream.synchronize()
        if progress is not None:
            progress(first, first)

    def _decoded(self, items: Iterator[T]) -> Iterator[T]:
        """The same items. The time that asking for an item takes is counted as decoding."""
        while True:
            with self._times.decoding():
                item = next(items, None)
            if item is None:
                return
            yield item

    def _by_position(
        self, sources: Sequence[Source], progress: Progress | None
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        size, count = min(map(piece_size, sources)), sources[0].count
        self._read_ahead(sources, size)
        pieces = self._prepared(sources, size, count)
        try:
            # The bus is not to wait for what is done between two pieces.
            for piece in pieces if self._bringing is self._ring else _ahead_by_one(pieces):
                if progress is not None:
                    progress(piece.done, count)
                for source, array in zip(sources, piece.arrays, strict=True):
                    self._bring(source, piece.start, array)
                yield piece.arrays, piece.start
                for buffer in piece.buffers:
                    buffer.mark(self._gpu.stream)
        finally:
            self._files.stop()
        self._gpu.stream.synchronize()
        if progress is not None:
            progress(count, count)

    def _prepared(self, sources: Sequence[Source], size: int, count: int) -> Iterator["_Prepared"]:
        """The pieces to bring, in order. Where lanes bring them, the GPU is asked to pull a piece that is prepared."""
        for number, start in enumerate(range(0, count, size)):
            buffers = [pair[number % 2] for pair in (self._buffers, self._others)[: len(sources)]]
            done = self._wait_for(buffers, start, size)
            arrays = []
            for source, buffer in zip(sources, buffers, strict=True):
                arrays.append(buffer.array(min(size, count - start), source.dtype))
                if self._bringing is self._files and made_runs(source) is None:
                    self._files.pull(arrays[-1], buffer)
            yield _Prepared(start, done, buffers, tuple(arrays))

    def _wait_for(self, buffers: Sequence[DeviceBuffer], start: int, size: int) -> int:
        """Wait until the next piece, which begins at `start`, may be brought into `buffers`; how many elements are done
        for certain. Where lanes bring it, their stream waits, and one piece more may be under way."""
        if self._bringing is self._files:
            return max(0, start - 2 * size)
        for buffer in buffers:
            buffer.wait()  # the piece before last is done
        return max(0, start - size)

    def whole(self, elements: Elements, progress: Progress | None) -> Any:
        """One CuPy array of one dimension that holds all `elements`. Raises OutOfMemory if they do not fit."""
        import cupy

        self._times = StageTimes(self._gpu.stream)
        if isinstance(elements, SequentialSource):
            with self._times.decoding():
                source = gathered(elements)
            self._times.ahead_s = decoded_ahead_s((elements,))
        else:
            source = elements
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
        try:
            for number, start in enumerate(range(0, source.count, size)):
                buffer = self._buffers[number % 2]
                done = self._wait_for((buffer,), start, size)
                if progress is not None:
                    progress(done, source.count)
                self._bring(source, start, array[start : start + size])
                buffer.mark(self._gpu.stream)
        finally:
            self._files.stop()
        return array

    def _read_ahead(self, sources: Sequence[Source], size: int) -> None:
        """Start to read what crosses the bus, in the order in which `_bring` will ask for it."""
        crossing = [source for source in sources if made_runs(source) is None]
        self._files.rest()
        self._bringing = self._files if self._files.takes(crossing) else self._ring
        self._bringing.begin(crossing, size, self._times)

    def _bring(self, source: Source, start: int, array: Any) -> None:
        if (generator := made_runs(source)) is not None:
            made, runs = plan(generator[0]), generator[1]
            load(self._gpu, made)  # the time of preparing is no time of making elements
            with self._times.making:
                fill(self._gpu, made, array, start, runs)
        else:
            self._bringing.send(array)

    def stages(self, reduce_s: float) -> Stages:
        """How long each stage of the last sources was busy. Their copies must have ended; `reduce_s` is the time of
        their reduction."""
        self._ring.count_copies()
        self._files.count_copies()
        return self._times.stages(reduce_s)

    def moments(self) -> NDArray[np.int64]:
        """When lanes read the parts of the last sources that they brought (`Lanes.moments`)."""
        return self._files.moments()

    def close(self) -> None:
        """Give the buffers back, and end the threads."""
        self._files.close()
        self._ring.close()
        self._buffers, self._others = (DeviceBuffer(), DeviceBuffer()), (DeviceBuffer(), DeviceBuffer())


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The arrays of a piece and their buffers. `start` is the index of its first element, and so many elements are
    certainly `done`."""

    start: int
    done: int
    buffers: Sequence[DeviceBuffer]
    arrays: tuple[Any, ...]


def _ahead_by_one(pieces: Iterator[T]) -> Iterator[T]:
    """The same pieces; the next one is prepared before a piece is handed out."""
    before = next(pieces, None)
    for piece in pieces:
        assert before is not None
        yield before
        before = piece
    if before is not None:
        yield before


def piece_size(source: Elements) -> int:
    """Elements a piece of `source`; the last may have fewer."""
    return (COPIED_BYTES if made_runs(source) is None else MADE_BYTES) // source.dtype.itemsize
