"""Measures how long others have been silent, by what they change and by a clock of this process."""

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

Clock = Callable[[], float]
"""A clock in seconds that only grow, such as `time.monotonic`: steps of the wall clock do not change it."""


@dataclass(slots=True)
class _Sign:
    value: object
    silent_s: float = 0.0
    interrupted: bool = False


class Silence(Generic[K]):
    """Watches what several others show, each under a key: who goes on showing the same is silent.

    Neither the others' clocks nor the server's count, only the time between our own looks, and of that at most
    `longest_s` a look. A server that stalled for a minute, or a watcher that was stopped for one, has kept the others
    from being seen: they get the rest of their time after it.
    """

    def __init__(self, longest_s: float, clock: Clock = time.monotonic) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._signs: dict[K, _Sign] = {}
        self._looked_at: float | None = None

    def look(self, shown: Mapping[K, object]) -> None:
        """Note what all of them show now. A key that is missing is forgotten."""
        now = self._clock()
        passed = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        before, self._signs = self._signs, {}
        for key, value in shown.items():
            sign = before.get(key)
            if sign is None or sign.value != value:
                sign = _Sign(value)
            else:
                sign.silent_s += min(passed, self._longest_s)
                sign.interrupted |= passed > self._longest_s
            self._signs[key] = sign

    def lasting(self, seconds: float) -> Mapping[K, bool]:
        """The keys that have been silent for `seconds`; True where this process could not look all the time."""
        return {key: sign.interrupted for key, sign in self._signs.items() if sign.silent_s >= seconds}
