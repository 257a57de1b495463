"""Pauses that grow while something stays away."""


class Backoff:
    """Seconds to wait after each failure in a row: `first`, then twice as long each time, up to `longest`."""

    def __init__(self, first: float = 0.05, longest: float = 1.0) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def next(self) -> float:
        pause = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return pause
