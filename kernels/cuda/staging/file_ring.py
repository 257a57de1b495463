"""Files on their way to the GPU by lanes, which borrow the pinned memory of a ring.

The copies have a stream of their own: while the GPU reduces a piece, the bus carries the next one.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.compile import Unit
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.buffers import DeviceBuffer, PinnedRing
from warpfold.kernels.cuda.staging.lanes import Board, Lanes, LaneShape, Puller, cuda_driver
from warpfold.kernels.cuda.staging.parts import bytes_of
from warpfold.kernels.cuda.staging.stage_times import StageTimes
from warpfold.kernels.source import Source, extents_of, in_memory

PULL = "pull_parts"

_LINE = 64
"""The bytes of which the addresses of places are multiples: the GPU reads 16 at a time."""

_MOST_PULLED = 6
"""Pieces that the GPU was asked to pull and that have not been sent: two of each of two sources, and more."""

_MOST_EXTENTS = 128
"""What lies in more extents than this for each part of the ring is put together by Python: the end of an extent ends a
part."""


def pull_unit() -> Unit:
    """The kernel that pulls parts."""
    return Unit(Path(__file__).parent.parent / "sources" / "pull.cu", (PULL,))


class FileRing:
    """Brings sources whose bytes lie in files, or in memory, as the kernels read them. It has the methods of a
    `PinnedRing`, and shares the memory of `ring`: one of the two is in use at a time."""

    def __init__(self, gpu: Gpu, ring: PinnedRing, shape: LaneShape | None) -> None:
        self._gpu, self._ring = gpu, ring
        if shape is not None and shape.part_bytes > ring.part_bytes:
            shape = replace(shape, part_bytes=ring.part_bytes)
        self._shape = shape
        self._lanes: Lanes | None = None
        self._copies: Any = None  # the stream of the copies
        self._edge: Any = None  # the event by which one stream waits for the other
        self._arrived: dict[int, Any] = {}  # events behind launches that pull, by their addresses
        self._asked = 0  # pieces that the GPU was asked to pull, and `send` was not called for
        self._times = StageTimes(gpu.stream)
        self._in_memory = False
        self._blocks: list[int] = []
        self._places = np.empty(0, np.int64)

    def takes(self, sources: Sequence[Source]) -> bool:
        """Whether the bytes of all `sources` lie somewhere, and are enough for several threads."""
        if self._shape is None or sys.platform != "linux" or bytes_of(sources) <= self._ring.part_bytes:
            return False
        lying = [extents_of(source) for source in sources]
        most = bytes_of(sources) // self._ring.part_bytes * _MOST_EXTENTS
        return all(lying) and sum(len(extents) for extents in lying if extents) <= most

    def begin(self, sources: Sequence[Source], piece: int, times: StageTimes) -> None:
        """Start to read `sources`, which `send` will ask for in pieces of `piece` elements, and of each piece source
        after source. What is read and copied is counted in `times`."""
        lanes, shape = self._ready()
        self.rest()
        if times is self._times:
            self.count_copies()  # those of the pieces before, of sources that come in order
        blocks = self._ring.lend()
        if blocks is not self._blocks:
            step = -(-shape.part_bytes // _LINE) * _LINE
            self._blocks, together = blocks, max(1, self._ring.part_bytes // step)
            places = [block + number * step for block in blocks for number in range(together)]
            self._places = np.array(places[: shape.parts], np.int64)
        self._times, self._in_memory = times, all(map(in_memory, sources))
        threads, self._asked = lanes.begin(sources, piece, self._places), 0
        times.threads = max(times.threads, threads)
        # The arrays that are filled may be memory that earlier work still uses.
        self._order(self._gpu.stream, self._copies)

    def pull(self, array: Any, buffer: DeviceBuffer | None) -> None:
        """Have the GPU pull the next piece into the CuPy `array`, when the work that uses `buffer` is done. `send`
        follows for the same array; a few pieces may be asked for before it."""
        assert self._lanes is not None, "begin comes before"
        if buffer is not None:
            buffer.hold_back(self._copies)
        _check(self._lanes.pull(array.data.ptr))
        self._asked += 1

    def send(self, array: Any) -> None:
        """Have the GPU's stream wait for the next piece, which fills the CuPy `array`. Returns when it is read. Raises
        what reading it raised."""
        assert self._lanes is not None, "begin comes before"
        if not self._asked:
            self.pull(array, None)
        self._asked -= 1
        error, event = self._lanes.arrive()
        _check(error)
        with cuda_errors("copying to the GPU"):
            self._gpu.stream.wait_event(self._arrived[event])

    def _order(self, before: Any, behind: Any) -> None:
        """Have what is put on the stream `behind` from now on wait for what is on the stream `before`."""
        with cuda_errors("copying to the GPU"):
            self._edge.record(before)
            behind.wait_event(self._edge)

    def moments(self) -> NDArray[np.int64]:
        """When the parts of the last sources were read (`Lanes.moments`)."""
        return np.empty((0, 2), np.int64) if self._lanes is None else self._lanes.moments()

    def count_copies(self) -> None:
        """Count the times of reading and of the copies, which must have ended."""
        if self._lanes is not None:
            self._lanes.settled()
            read_s, copied_s = self._lanes.taken_seconds()
            self._times.brought(read_s, copied_s, in_memory=self._in_memory)

    def stop(self) -> None:
        """Wait until no thread reads any more, and have the GPU's stream wait for the copies of what was read: the
        memory that they fill may be given back."""
        if self._lanes is not None:
            self._lanes.stop()
            if self._lanes.under_way:
                self._order(self._copies, self._gpu.stream)

    def rest(self) -> None:
        """Leave the memory to others: wait until no thread writes to it, and the GPU reads from it no more."""
        self.stop()
        if self._lanes is not None and self._lanes.under_way:
            with cuda_errors("copying to the GPU"):
                self._copies.synchronize()
            self._lanes.settled()

    def _ready(self) -> tuple[Lanes, LaneShape]:
        import cupy

        assert self._shape is not None, "takes says so"
        if self._lanes is None:
            kernel = self._gpu.kernel(pull_unit(), PULL).function.kernel.ptr
            with self._gpu.preparation, cuda_errors("what files pass through"):
                words = Board.words(self._shape)
                pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(8 * words), np.int64, words)
                self._copies = cupy.cuda.Stream(non_blocking=True)
                self._edge = cupy.cuda.Event(disable_timing=True)
                events = [cupy.cuda.Event(disable_timing=True) for _ in range(_MOST_PULLED)]
                self._arrived = {event.ptr: event for event in events}
                puller = Puller(cuda_driver(), kernel, self._copies.ptr, tuple(self._arrived))
                self._lanes = Lanes(self._shape, puller, Board(self._shape, pinned))
                self._lanes.load()
        return self._lanes, self._shape

    def close(self) -> None:
        """End the threads."""
        if self._lanes is not None:
            self.rest()
            self._lanes.close()
            self._lanes = None


def _check(error: int) -> None:
    from cupy.cuda import driver

    if error:
        with cuda_errors("copying to the GPU"):
            raise driver.CUDADriverError(error)
