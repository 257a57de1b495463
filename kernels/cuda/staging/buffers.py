"""Buffers through which elements reach the GPU: a ring of pinned parts on the host, and pieces in the GPU's memory."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.parts import Part, RingShape, bytes_of, parts_of
from warpfold.kernels.cuda.staging.stage_times import StageTimes
from warpfold.kernels.dtypes import DType
from warpfold.kernels.source import Source, in_memory


class PinnedRing:
    """Pinned parts that take turns: threads read parts of sources into them, in order, and the GPU copies from them.

    A part is read again as soon as the GPU has copied it, so that reading and copying go on side by side whatever
    happens between the pieces of an array.
    """

    def __init__(self, gpu: Gpu, shape: RingShape) -> None:
        self._gpu = gpu
        self._shape = shape
        self._threads: ThreadPoolExecutor | None = None
        # The threads that read the current sources; None where the sources are short.
        self._readers: ThreadPoolExecutor | None = None
        self._slots: deque[_Slot] = deque()
        self._coming: Iterator[Part] = iter(())
        self._times = StageTimes(gpu.stream)
        self._room = 0
        self._lent: list[int] | None = None

    def begin(self, sources: Sequence[Source], piece: int, times: StageTimes) -> None:
        """Start to read `sources`, which `send` will ask for in pieces of `piece` elements, and of each piece source
        after source. What is read and copied is counted in `times`."""
        self._abandon()
        self._lent = None
        self._times, total_bytes = times, bytes_of(sources)
        self._coming = parts_of(sources, piece, self._shape)
        largest = self._shape.largest(total_bytes)
        parts, threads = min(self._shape.parts, -(-total_bytes // largest)), self._shape.threads()
        if total_bytes > largest and self._threads is None:
            self._threads = ThreadPoolExecutor(threads, "staging", initializer=self._use_gpu)
        self._readers = self._threads if total_bytes > largest else None
        times.threads = max(times.threads, min(threads, parts))
        self._room = min(total_bytes, largest)
        while len(self._slots) < parts:
            self._slots.append(_Slot())
        for slot in self._slots:
            self._read(slot)

    def send(self, array: Any) -> None:
        """Put the copies of the next parts, as many as fill the CuPy `array`, on the GPU's stream. Raises what reading
        them raised."""
        import cupy

        sent = 0
        while sent < array.nbytes:
            slot = self._slots[0]
            slot.wait_for_thread()
            with cuda_errors("copying to the GPU"), slot.copying(self._gpu.stream, self._times):
                cupy.cuda.runtime.memcpyAsync(
                    array.data.ptr + sent,
                    slot.address,
                    slot.nbytes,
                    cupy.cuda.runtime.memcpyHostToDevice,
                    self._gpu.stream.ptr,
                )
            sent += slot.nbytes
            self._read(slot)
            self._slots.rotate(-1)

    def _read(self, slot: "_Slot") -> None:
        part = next(self._coming, None)
        if part is not None:
            slot.read(part, self._room, self._readers, self._times)

    def count_copies(self) -> None:
        """Count the times of the last copies of each part, which must have ended."""
        for slot in self._slots:
            slot.count_copy()

    def _use_gpu(self) -> None:
        import cupy

        cupy.cuda.Device(self._gpu.index).use()

    def _abandon(self) -> None:
        """Wait until no thread writes into the ring any more: a reduction that ended early asks for no more parts."""
        wait([slot.reading for slot in self._slots if slot.reading is not None])

    @property
    def part_bytes(self) -> int:
        """The bytes of a part of a long source."""
        return self._shape.part_bytes

    def lend(self) -> list[int]:
        """The addresses of all parts, `part_bytes` each, for others to use until `begin` is called. Nothing uses them
        any more."""
        if self._lent is None:
            self._abandon()
            self._coming = iter(())
            while len(self._slots) < self._shape.parts:
                self._slots.append(_Slot())
            for slot in self._slots:
                slot.reserve(self._shape.part_bytes)
            self._lent = sorted(slot.address for slot in self._slots)
        return self._lent

    def close(self) -> None:
        """Give the memory back, and end the threads."""
        self._coming = iter(())
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = self._readers = None
        self._lent = None
        self._slots.clear()


class _Slot:
    """A pinned part, the thread that reads into it, and the events between which the GPU copies it."""

    def __init__(self) -> None:
        self.reading: Future[None] | None = None
        self.nbytes = 0
        self._pinned: Any = None
        self._begun: Any = None
        self._copied: Any = None
        self._copying: StageTimes | None = None  # where the time of a copy goes that is not counted yet

    @property
    def address(self) -> int:
        address: int = self._pinned.ctypes.data
        return address

    def read(self, part: Part, room: int, threads: ThreadPoolExecutor | None, times: StageTimes) -> None:
        """Read `part` into the pinned memory, of which there are `room` bytes or as many as the part has."""
        self.nbytes = part.size * part.source.dtype.itemsize
        if self._pinned is None or self._pinned.size < self.nbytes:
            self.reserve(max(room, self.nbytes))
        if threads is None:
            self.reading = None
            self._fill(part, times)
        else:
            self.reading = threads.submit(self._fill, part, times)

    def reserve(self, nbytes: int) -> None:
        """Have at least `nbytes` of pinned memory, which the GPU does not read any more."""
        self._wait_for_gpu()
        if self._pinned is None or self._pinned.size < nbytes:
            self._pinned = _pinned(nbytes)

    def _fill(self, part: Part, times: StageTimes) -> None:
        self._wait_for_gpu()
        with times.reading(in_memory=in_memory(part.source)):
            part.source.read_into(part.start, self._pinned[: self.nbytes])

    def _wait_for_gpu(self) -> None:
        if self._copied is not None:
            with cuda_errors("the piece before"):
                self._copied.synchronize()
        self.count_copy()

    def count_copy(self) -> None:
        """Count the time of the last copy, which has ended, if it is not counted yet."""
        import cupy

        times, self._copying = self._copying, None
        if times is not None:
            with cuda_errors("the time of a copy"):
                times.copied(cupy.cuda.get_elapsed_time(self._begun, self._copied) / 1e3)

    def wait_for_thread(self) -> None:
        if self.reading is not None:
            self.reading.result()

    @contextmanager
    def copying(self, stream: Any, times: StageTimes) -> Iterator[None]:
        """The copy that is put on `stream` within is that of this part."""
        import cupy

        if self._copied is None:
            self._begun, self._copied = cupy.cuda.Event(), cupy.cuda.Event(block=True)
        self._begun.record(stream)
        yield
        self._copied.record(stream)
        self._copying = times


class DeviceBuffer:
    """Memory on the GPU for one piece, and the event after which it is free again."""

    def __init__(self) -> None:
        self._memory: Any = None
        self._done: Any = None

    def wait(self) -> None:
        """Wait until the work that uses the buffer is done."""
        if self._done is not None:
            with cuda_errors("the piece before"):
                self._done.synchronize()

    def hold_back(self, stream: Any) -> None:
        """Have what is put on `stream` from now on begin when the work that uses the buffer is done."""
        if self._done is not None:
            stream.wait_event(self._done)

    def mark(self, stream: Any) -> None:
        """Note that the work that was put on `stream` so far uses the buffer."""
        import cupy

        if self._done is None:
            self._done = cupy.cuda.Event(disable_timing=True)
        self._done.record(stream)

    def array(self, size: int, dtype: DType) -> Any:
        """`size` elements of the buffer, as a CuPy array of one dimension. New memory counts as used by the work on
        CuPy's current stream: the pool gives what that work may still use."""
        import cupy

        nbytes = size * dtype.itemsize
        if self._memory is None or self._memory.size < nbytes:
            self._memory = None  # first give back, then ask
            with cuda_errors(f"a buffer of {_rounded(nbytes):,} bytes"):
                self._memory = cupy.empty(_rounded(nbytes), dtype=np.uint8)
                self.mark(cupy.cuda.get_current_stream())
        return self._memory[:nbytes].view(carrier(dtype))


def _pinned(nbytes: int) -> Any:
    import cupy

    size = _rounded(nbytes)
    with cuda_errors(f"a pinned buffer of {size:,} bytes"):
        return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), dtype=np.uint8, count=size)


def _rounded(nbytes: int) -> int:
    """The power of two that holds `nbytes`, at least 64 KiB, so that buffers are rarely replaced."""
    return max(1 << 16, 1 << (nbytes - 1).bit_length())
