"""How many threads and blocks a strategy is launched with: plain values, kept apart from what they tune."""

from dataclasses import dataclass, fields, replace
from typing import Any

from warpfold.kernels.dtypes import DType
from warpfold.kernels.ops import Op

VECTOR_BYTES = 16
"""What one read of a vectorised strategy brings."""


WARP = 32
FEW = 33
"""Blocks whose partials, but for the last one's own, one warp takes in at once."""

SOME = 129
"""The same for four warps; nearly one block a multiprocessor of an H200, and a little faster than that."""

MOST = 8192
"""Blocks of a launch in rounds: the last block has to take in a partial of each."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The shape of a launch, as the `// launch:` line of a strategy gives it.

    `threads` a block, fewer where the array is small. The number of blocks grows with the array up to `max_blocks` or
    `blocks_per_multiprocessor` times the multiprocessors; with `tile` there is one block for every `tile` elements
    instead. `flight` counts the 16-byte reads that a thread has in flight, 0 where it reads single elements. With
    `rounds` a large array gets more blocks than run at a time, each of so many flights: multiprocessors are not equally
    near to the memory, and one that reads faster takes more of them. Blocks come in clusters of `cluster`; of a
    `cooperative` launch all run at the same time.
    """

    threads: int
    max_blocks: int = 0
    blocks_per_multiprocessor: int = 0
    tile: int = 0
    flight: int = 0
    rounds: int = 0
    cluster: int = 1
    cooperative: bool = False

    def __post_init__(self) -> None:
        limits = (self.max_blocks, self.blocks_per_multiprocessor, self.tile)
        if sum(limit > 0 for limit in limits) != 1:
            raise ValueError("give one of max_blocks, blocks_per_multiprocessor and tile")
        if self.threads % 32 or not 32 <= self.threads <= 1024:
            raise ValueError(f"threads must be a multiple of 32 up to 1024, not {self.threads}")

    @classmethod
    def parse(cls, text: str) -> "Launch":
        """The launch that "threads=256 max_blocks=1024 cooperative" describes; ValueError if it does not."""
        names = {field.name for field in fields(cls)}
        given: dict[str, Any] = {}
        for word in text.split():
            name, _, value = word.partition("=")
            if name not in names:
                raise ValueError(f"a launch has no {name!r}")
            given[name] = int(value) if value else True
        return cls(**given)

    def shape(self, count: int, itemsize: int, multiprocessors: int) -> tuple[int, int]:
        """Blocks, and threads a block, for `count` ≥ 1 elements of `itemsize` bytes, on so many multiprocessors."""
        if self.tile:
            return -(-count // self.tile), self.threads
        if self.flight:
            blocks, threads = self._streaming(-(-count * itemsize // VECTOR_BYTES), multiprocessors)
        else:
            blocks, threads = min(-(-count // self.threads), self._most(multiprocessors)), self.threads
        return -(-blocks // self.cluster) * self.cluster, threads

    def _streaming(self, reads: int, multiprocessors: int) -> tuple[int, int]:
        """One block for what it reads in two flights, with no more threads than it takes, because blocks that must find
        together take longer than that; then few blocks, then some, which up to three flights are faster than all."""
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
        return max(min(tiles, self._most(multiprocessors)), in_rounds), self.threads

    def _most(self, multiprocessors: int) -> int:
        return self.max_blocks or self.blocks_per_multiprocessor * multiprocessors


def suited(launch: Launch, op: Op, dtype: DType) -> Launch:
    """`launch` as it suits the accumulators of `op` of `dtype`.

    In rounds every block folds its own threads and sends a partial, which pays for accumulators of one word. An
    element with its index, and a sum of integers in 128 bits, take longer: on an H200, in rounds, argmin of int8 read
    at 0.70 of the ceiling and a sum of int32 at 0.94; in one wave 0.94 and 0.98.
    """
    wide = not dtype.is_float and op.adds
    return replace(launch, rounds=0) if op.places or wide else launch
