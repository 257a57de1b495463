"""The parts in which sources cross the bus: how large they are, how many are under way, and who reads them.

The values that decide how fast a file reaches the GPU are in `RingShape`; `python -m benchmarks.ring` measures others
beside them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpfold.kernels.cuda.staging.lanes import LaneShape
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.source import Source

_LEAST_BYTES = 1 << 19
"""The smallest part of a source that is cut into many: handing a part over takes as long as copying 2 MiB."""

_LANES = LaneShape()


@dataclass(frozen=True, slots=True)
class RingShape:
    """The sizes of a ring of pinned parts.

    A thread reads `part_bytes` at a time: handing a part over takes up to 0.1 ms, and reading 8 MiB takes 1 ms. `parts`
    of them are under way: 128 MiB stay in the last-level cache, from which the GPU fetches faster than from memory. One
    thread reads 7 GB/s of a file in the page cache, and the bus carries 55; an H200 with 16 cores gets 48 to 50 with 10
    or 12 of `most_threads`, parts of 8 MiB and 16 of them, and less with smaller or larger ones.

    `first_bytes` is the size of the first part that is read, if that is smaller; the first parts of the other threads
    have sizes between, so that parts become ready one after another and not all at once. With `waves`, a short source
    is cut into smaller parts, so that each thread reads as many of them or more: no thread reads long while all others
    have nothing left to read. `decoded_bytes` is the size of a piece of what comes in order; one piece is copied while
    the next is decoded.

    `lanes` say how sources are read whose bytes lie in a file as they are in memory; None reads them by the same
    threads as all others.
    """

    part_bytes: int = 1 << 23
    parts: int = 16
    most_threads: int = 12
    first_bytes: int = 1 << 23
    waves: int = 0
    decoded_bytes: int = 1 << 25
    lanes: LaneShape | None = _LANES

    def threads(self) -> int:
        """How many threads read. Some cores are left to the thread that drives the GPU and to the driver's own."""
        return max(1, min(self.most_threads, usable_cores() * 3 // 4))

    def largest(self, total_bytes: int) -> int:
        """The bytes of the largest part of sources that have `total_bytes` in all."""
        if not self.waves:
            return self.part_bytes
        share = max(_LEAST_BYTES, total_bytes // (self.threads() * self.waves))
        return min(self.part_bytes, 1 << (share.bit_length() - 1))

    def sizes(self, total_bytes: int) -> Iterator[int]:
        """The bytes of each part in order, without end."""
        largest, threads = self.largest(total_bytes), self.threads()
        first = min(self.first_bytes, largest)
        yield from (first + (largest - first) * thread // threads for thread in range(threads))
        while True:
            yield largest


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a source that one thread reads: `size` of them from `start` on."""

    source: Source
    start: int
    size: int


def parts_of(sources: Sequence[Source], piece: int, shape: RingShape) -> Iterator[Part]:
    """The elements of `sources` piece after piece of `piece` elements, and of each piece source after source, cut for
    threads. No part crosses the end of a piece."""
    sizes = shape.sizes(bytes_of(sources))
    for begin in range(0, max((source.count for source in sources), default=0), piece):
        for source in sources:
            start, stop = begin, min(begin + piece, source.count)
            while start < stop:
                size = min(max(1, next(sizes) // source.dtype.itemsize), stop - start)
                yield Part(source, start, size)
                start += size


def bytes_of(sources: Sequence[Source]) -> int:
    """The bytes of all elements of `sources`."""
    return sum(source.count * source.dtype.itemsize for source in sources)
