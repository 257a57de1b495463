"""Buffers through which elements reach the GPU: a ring of pinned parts on the host, and pieces in the GPU's memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpfold.kernels.cores import usable_cores
from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.dtypes import DType
from warpfold.kernels.source import Source

PART_BYTES = 1 << 23
"""What one thread reads at a time. Handing a part over takes up to 0.1 ms, and reading 8 MiB takes 1 ms."""

RING_PARTS = 16
"""Pinned parts: 128 MiB of them stay in the last-level cache, from which the GPU fetches faster than from memory."""

MOST_THREADS = 12
"""Readers. One reads 7 GB/s of a file in the page cache, and the bus carries 55; an H200 with 16 cores gets 48 to 50
with 10 or 12 readers, parts of 8 MiB and 16 of them, and less with smaller or larger ones."""


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a source that one thread reads: `size` of them from `start` on."""

    source: Source
    start: int
    size: int


class PinnedRing:
    """Pinned parts that take turns: threads read parts of sources into them, in order, and the GPU copies from them.

    A part is read again as soon as the GPU has copied it, so that reading and copying go on side by side whatever
    happens between the pieces of an array.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._threads: ThreadPoolExecutor | None = None
        self._readers: ThreadPoolExecutor | None = None  # those of the sources at hand: none for a short one
        self._slots: deque[_Slot] = deque()
        self._coming: Iterator[Part] = iter(())

    def begin(self, parts: Iterable[Part], total_bytes: int) -> None:
        """Start to read `parts`, which `send` will ask for in this order; they have `total_bytes` in all."""
        self._abandon()
        self._coming = iter(parts)
        if total_bytes > PART_BYTES and self._threads is None:
            # Some cores are left to the thread that drives the GPU and to the driver's own.
            threads = max(1, min(MOST_THREADS, usable_cores() * 3 // 4))
            self._threads = ThreadPoolExecutor(threads, "staging", initializer=self._use_gpu)
        self._readers = self._threads if total_bytes > PART_BYTES else None
        while len(self._slots) < min(RING_PARTS, -(-total_bytes // PART_BYTES)):
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
            with cuda_errors("copying to the GPU"):
                cupy.cuda.runtime.memcpyAsync(
                    array.data.ptr + sent,
                    slot.address,
                    slot.nbytes,
                    cupy.cuda.runtime.memcpyHostToDevice,
                    self._gpu.stream.ptr,
                )
            slot.mark(self._gpu.stream)
            sent += slot.nbytes
            self._read(slot)
            self._slots.rotate(-1)

    def _read(self, slot: "_Slot") -> None:
        part = next(self._coming, None)
        if part is not None:
            slot.read(part, self._readers)

    def _use_gpu(self) -> None:
        import cupy

        cupy.cuda.Device(self._gpu.index).use()

    def _abandon(self) -> None:
        """Wait until no thread writes into the ring any more: a reduction that ended early asks for no more parts."""
        wait([slot.reading for slot in self._slots if slot.reading is not None])

    def close(self) -> None:
        """Give the memory back, and end the threads."""
        self._coming = iter(())
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = self._readers = None
        self._slots.clear()


class _Slot:
    """A pinned part, the thread that reads into it, and the event after which the GPU has copied it."""

    def __init__(self) -> None:
        self.reading: Future[None] | None = None
        self.nbytes = 0
        self._pinned: Any = None
        self._copied: Any = None

    @property
    def address(self) -> int:
        address: int = self._pinned.ctypes.data
        return address

    def read(self, part: Part, threads: ThreadPoolExecutor | None) -> None:
        self.nbytes = part.size * part.source.dtype.itemsize
        if self._pinned is None or self._pinned.size < self.nbytes:
            self._wait_for_gpu()
            self._pinned = _pinned(self.nbytes)
        if threads is None:
            self.reading = None
            self._fill(part)
        else:
            self.reading = threads.submit(self._fill, part)

    def _fill(self, part: Part) -> None:
        self._wait_for_gpu()
        part.source.read_into(part.start, self._pinned[: self.nbytes])

    def _wait_for_gpu(self) -> None:
        if self._copied is not None:
            with cuda_errors("the piece before"):
                self._copied.synchronize()

    def wait_for_thread(self) -> None:
        if self.reading is not None:
            self.reading.result()

    def mark(self, stream: Any) -> None:
        import cupy

        if self._copied is None:
            self._copied = cupy.cuda.Event(block=True, disable_timing=True)
        self._copied.record(stream)


class DeviceBuffer:
    """Memory on the GPU for one piece, and the event after which it is free again."""

    def __init__(self) -> None:
        self._memory: Any = None
        self._done: Any = None

    def wait(self) -> None:
        """Until the work that uses the buffer is done."""
        if self._done is not None:
            with cuda_errors("the piece before"):
                self._done.synchronize()

    def mark(self, stream: Any) -> None:
        """Whatever was put on `stream` so far uses the buffer."""
        import cupy

        if self._done is None:
            self._done = cupy.cuda.Event(disable_timing=True)
        self._done.record(stream)

    def array(self, size: int, dtype: DType) -> Any:
        """`size` elements of the buffer, as a CuPy array of one dimension."""
        import cupy

        nbytes = size * dtype.itemsize
        if self._memory is None or self._memory.size < nbytes:
            self._memory = None  # first give back, then ask
            with cuda_errors(f"a buffer of {_rounded(nbytes):,} bytes"):
                self._memory = cupy.empty(_rounded(nbytes), dtype=np.uint8)
        return self._memory[:nbytes].view(carrier(dtype))


def _pinned(nbytes: int) -> Any:
    import cupy

    size = _rounded(nbytes)
    with cuda_errors(f"a pinned buffer of {size:,} bytes"):
        return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), dtype=np.uint8, count=size)


def _rounded(nbytes: int) -> int:
    """The power of two that holds `nbytes`, at least 64 KiB, so that buffers are rarely replaced."""
    return max(1 << 16, 1 << (nbytes - 1).bit_length())
