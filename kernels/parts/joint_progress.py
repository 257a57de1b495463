"""How far several devices are together that share one reduction."""

from collections.abc import Hashable
from functools import partial
from threading import Lock

from warpfold.kernels.backend import Progress


class JointProgress:
    """The progress of all devices together: `total` is what they have to do, and `progress` is called by one thread at
    a time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self._ended = total, progress, 0
        self._running: dict[Hashable, int] = {}
        self._lock = Lock()

    def beside(self, share: Hashable) -> Progress | None:
        """The function that the device which reduces `share` calls with its own progress."""
        return None if self._progress is None else partial(self._report, share)

    def _report(self, share: Hashable, done: int, of: int) -> None:
        assert self._progress is not None
        with self._lock:
            self._running[share] = done
            now = self._ended + sum(self._running.values())
            self._progress(min(now, self._total), self._total)

    def end(self, share: Hashable, count: int) -> None:
        """Note that a share of `count` elements or rows has ended."""
        with self._lock:
            self._running.pop(share, None)
            self._ended += count
