"""Pauses that grow while something stays away."""

import random


class Backoff:
    """Seconds to wait after each failure in a row: `first`, then twice as long each time, up to `longest`.

    Each pause is spread at random between `least` of it and all of it, so that those whom one failure sent away do not
    all come back at once.
    """

    def __init__(self, first: float = 0.05, longest: float = 1.0, *, least: float = 1.0) -> None:
        self._first = first
        self._longest = longest
        self._least = least
        self._failures = 0

    def reset(self) -> None:
        """Begin with the first pause again: what stayed away is back."""
        self._failures = 0

    @property
    def failing(self) -> bool:
        """Whether there was a failure since the last reset."""
        return self._failures > 0

    def next(self) -> float:
        """Count a failure; the seconds to wait after it."""
        pause = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return pause * random.uniform(self._least, 1.0)  # noqa: S311 (no secret)
