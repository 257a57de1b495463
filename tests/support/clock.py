"""A clock that a test turns by hand."""

from collections.abc import Callable


class HandClock:
    """Shows what it was set to, until it is turned on."""

    def __init__(self) -> None:
        self._now = 1000.0

    def __call__(self) -> float:
        return self._now

    def pass_over(self, seconds: float) -> None:
        """Let time pass in one leap, as it does for a process that was stopped meanwhile."""
        self._now += seconds

    def pass_slowly(self, seconds: float, look: Callable[[], object], steps: int = 40) -> None:
        """Let time pass in small steps, and `look` after each."""
        for _ in range(steps):
            self._now += seconds / steps
            look()
