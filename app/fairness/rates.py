"""Token buckets: so many at once, so many a second in the long run."""

import time
from collections.abc import Callable

_MOST_KEPT = 10_000


class Buckets:
    """One bucket a key. Each holds at most `burst` tokens and gets `rate` a second; a full one is forgotten."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, key: str, count: float = 1.0) -> float:
        """Take `count` tokens. Returns 0, or the seconds until there are enough; then none was taken."""
        now = self._clock()
        level, at = self._levels.get(key, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._rate)
        if level < count:
            self._levels[key] = (level, now)
            return (count - level) / self._rate
        if key not in self._levels and len(self._levels) >= _MOST_KEPT:
            self._forget_the_full(now)
        self._levels[key] = (level - count, now)
        return 0.0

    def _forget_the_full(self, now: float) -> None:
        full = [key for key, (level, at) in self._levels.items() if level + (now - at) * self._rate >= self._burst]
        # Where none is full, that many keys ask at once: the oldest is forgotten, to its advantage.
        for key in full or [next(iter(self._levels))]:
            del self._levels[key]
