"""How long the stages of a reduction on a GPU were busy.

Threads of the host add the time that their own work took. Copies and generators are timed by events on the GPU's
stream, which are read when the work behind them is known to have ended: nothing waits for a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

from warpfold.kernels.backend import Stages
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch


class StageTimes:
    """The busy seconds of one reduction on the GPU that `stream` belongs to; several threads may add to them.

    `threads` is how many threads of the host read at the same time; `ahead_s` is how long the sources' own threads
    decoded ahead, each at the same time.
    """

    def __init__(self, stream: Any) -> None:
        self.threads = 1
        self.ahead_s = 0.0
        self.making = Stopwatch(stream)
        self._lock = Lock()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def reading(self, *, in_memory: bool) -> Iterator[None]:
        """A thread brings elements into a pinned part. Where they are in memory already, that is half of their way to
        the GPU and no reading."""
        yield from self._timed("staged" if in_memory else "read")

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """A thread asks sources that come in order for their next elements. One thread at a time does it."""
        yield from self._timed("decoded")

    def copied(self, seconds: float) -> None:
        """Note that the GPU has copied a part, and for how many seconds."""
        self._add("copied", seconds)

    def brought(self, read_s: float, copied_s: float, *, in_memory: bool) -> None:
        """Note that threads read for so many seconds together, as `reading` counts them, and for how many seconds the
        GPU copied what they read."""
        self._add("staged" if in_memory else "read", read_s)
        self._add("copied", copied_s)

    def stages(self, reduce_s: float) -> Stages:
        """The stages of a reduction whose work has ended; `reduce_s` is its time on the GPU.

        Making elements on the GPU counts as reading them. It goes on beside the reading of another source, and copying
        into pinned memory beside copying to the GPU; of such two the longer one counts."""
        with self._lock:
            seconds = dict(self._seconds)
        read = _longer(_shared(seconds.get("read"), self.threads), (self.making.total_ms() / 1e3) or None)
        copy = _longer(_shared(seconds.get("staged"), self.threads), seconds.get("copied"))
        decode = _longer(seconds.get("decoded"), self.ahead_s or None)
        return Stages(read_s=read, decode_s=decode, copy_s=copy, reduce_s=reduce_s)

    def _timed(self, stage: str) -> Iterator[None]:
        began = perf_counter()
        yield
        self._add(stage, perf_counter() - began)

    def _add(self, stage: str, seconds: float) -> None:
        with self._lock:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds


def _shared(seconds: float | None, threads: int) -> float | None:
    return None if seconds is None else seconds / threads


def _longer(first: float | None, second: float | None) -> float | None:
    return max((seconds for seconds in (first, second) if seconds is not None), default=None)
