"""How many threads and blocks a kernel is launched with: plain values, kept apart from what they tune."""

from dataclasses import dataclass, replace
from typing import Any

VECTOR_BYTES = 16
"""Bytes of one vectorised read."""

WARP = 32
FEW = 33
"""Blocks whose partials, but for the last block's own, one warp takes in at once."""

SOME = 129
"""The same for four warps. This is nearly one block a multiprocessor of an H200, and a little faster than that."""

MOST = 8192
"""Blocks of a launch in rounds: the last block has to take in a partial of each."""

_WRITTEN = ("threads", "max_blocks", "blocks_per_multiprocessor", "tile", "flight", "rounds", "cluster", "cooperative")
"""The names of the fields that the `// launch:` line of a strategy may set."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The shape of a launch, as the `// launch:` line of a strategy gives it or a table of this package.

    `threads` counts the threads of a block; a small array gets fewer. The number of blocks grows with the array up to
    `max_blocks` or `blocks_per_multiprocessor` times the multiprocessors; with `tile` there is one block for every
    `tile` elements instead. `flight` counts the 16-byte reads that a thread has in flight, 0 where it reads single
    elements. With `rounds` a large array gets more blocks than run at a time, and each block reads so many flights:
    multiprocessors are not equally near to the memory, and one that reads faster takes more blocks. Blocks come in
    clusters of `cluster`; all blocks of a `cooperative` launch run at the same time.

    Some kernels are compiled for more: with `ahead` a thread issues its next reads before it uses the latest, with
    `streaming` it reads past the cache, and `shared` is the bytes of dynamic shared memory that each thread takes.
    """

    threads: int
    max_blocks: int = 0
    blocks_per_multiprocessor: int = 0
    tile: int = 0
    flight: int = 0
    rounds: int = 0
    cluster: int = 1
    cooperative: bool = False
    ahead: bool = False
    streaming: bool = False
    shared: int = 0

    def __post_init__(self) -> None:
        limits = (self.max_blocks, self.blocks_per_multiprocessor, self.tile)
        if sum(limit > 0 for limit in limits) != 1:
            raise ValueError("give one of max_blocks, blocks_per_multiprocessor and tile")
        if self.threads % 32 or not 32 <= self.threads <= 1024:
            raise ValueError(f"threads must be a multiple of 32 up to 1024, not {self.threads}")

    @classmethod
    def parse(cls, text: str) -> "LaunchShape":
        """The launch that "threads=256 max_blocks=1024 cooperative" describes; ValueError if it does not."""
        values: dict[str, Any] = {}
        for word in text.split():
            name, _, value = word.partition("=")
            if name not in _WRITTEN:
                raise ValueError(f"a launch has no {name!r}")
            values[name] = int(value) if value else True
        return cls(**values)

    def fitted(self, shared_per_block: int) -> "LaunchShape":
        """The same shape with fewer threads, where a block may not have so many bytes of shared memory."""
        if self.threads * self.shared <= shared_per_block:
            return self
        threads = 1 << (shared_per_block // self.shared).bit_length() - 1
        return replace(self, threads=min(threads, self.threads), blocks_per_multiprocessor=1)

    def grid(self, count: int, itemsize: int, multiprocessors: int) -> tuple[int, int]:
        """Blocks, and threads a block, for `count` ≥ 1 elements of `itemsize` bytes, on so many multiprocessors."""
        if self.tile:
            return -(-count // self.tile), self.threads
        if self.flight:
            blocks, threads = self._streaming(-(-count * itemsize // VECTOR_BYTES), multiprocessors)
        else:
            blocks, threads = min(-(-count // self.threads), self.most_blocks(multiprocessors)), self.threads
        return -(-blocks // self.cluster) * self.cluster, threads

    def _streaming(self, reads: int, multiprocessors: int) -> tuple[int, int]:
        """Blocks and threads for so many 16-byte reads.

        What one block reads in two flights gets one block, with no more threads than that takes, because blocks that
        have to meet take longer. More reads get FEW blocks. Still more get SOME, which are faster than a full GPU up to
        three flights.
        """
        if reads <= 2 * self.threads * self.flight:
            return 1, min(self.threads, max(WARP, 1 << (-(-reads // self.flight) - 1).bit_length()))
        quarter, half, some = self.threads // 4, self.threads // 2, min(SOME, multiprocessors)
        for blocks, sizes in ((FEW, (quarter, half)), (some, (quarter, half, self.threads))):
            for threads in sizes:
                if threads >= WARP and reads <= blocks * threads * self.flight:
                    return blocks, threads
        if reads <= 3 * some * self.threads * self.flight:
            return some, self.threads
        tiles = -(-reads // (self.threads * self.flight))
        in_rounds = min(tiles // self.rounds, MOST) if self.rounds else 0
        return max(min(tiles, self.most_blocks(multiprocessors)), in_rounds), self.threads

    def most_blocks(self, multiprocessors: int) -> int:
        """The most blocks that the shape allows on so many multiprocessors, a launch in rounds not counted."""
        return self.max_blocks or self.blocks_per_multiprocessor * multiprocessors


GRID_STRIDE = LaunchShape(threads=256, blocks_per_multiprocessor=8)
"""The shape for kernels that do little work for each element: a thread takes one element after another."""
