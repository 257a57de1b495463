"""How many threads and blocks a strategy is launched with: plain values, kept apart from what they tune."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

VECTOR_BYTES = 16
"""What one read of a vectorised strategy brings."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The shape of a launch, as the `// launch:` line of a strategy gives it.

    `threads` a block. The number of blocks grows with the array up to `max_blocks` or `blocks_per_multiprocessor` times
    the multiprocessors; with `tile` there is one block for every `tile` elements instead. `flight` counts the 16-byte
    reads that a thread has in flight, 0 where it reads single elements. Blocks come in clusters of `cluster`; of a
    `cooperative` launch all run at the same time.
    """

    threads: int
    max_blocks: int = 0
    blocks_per_multiprocessor: int = 0
    tile: int = 0
    flight: int = 0
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

    def blocks(self, count: int, itemsize: int, multiprocessors: int) -> int:
        """Blocks for `count` ≥ 1 elements of `itemsize` bytes on a GPU of so many multiprocessors.

        A small array first gets one read a thread until every multiprocessor has a block, then the full flight.
        """
        if self.tile:
            return -(-count // self.tile)
        reads = -(-count * itemsize // VECTOR_BYTES) if self.flight else count
        spread = min(-(-reads // self.threads), multiprocessors)
        wanted = max(spread, -(-reads // (self.threads * max(1, self.flight))))
        most = self.max_blocks or self.blocks_per_multiprocessor * multiprocessors
        return -(-min(wanted, most) // self.cluster) * self.cluster


MEASURED: Mapping[tuple[str, str], Launch] = MappingProxyType({})
"""(strategy, architecture) → the launch that was measured to be better there than the source's own."""


def tuned(strategy: str, launch: Launch, arch: str) -> Launch:
    """The launch of `strategy` on `arch`: what was measured there, else its own."""
    return MEASURED.get((strategy, arch), launch)
