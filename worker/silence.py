"""Measures how long other processes have been silent, by the values that they change and by a clock of this process."""

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


class SilenceDetector(Generic[K]):
    """Watches the values that other processes show, each under a key. A process whose value does not change is silent.
    Neither their clocks nor the server's count: only the time between the looks of this object counts, and at most
    `longest_s` of it a look. If the server stalls for a minute, or the watcher is stopped for one, changes cannot be
    seen. The others get the rest of their time afterwards.
    """

    def __init__(self, longest_s: float, clock: Clock = time.monotonic) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._signs: dict[K, _Sign] = {}
        self._looked_at: float | None = None

    def look(self, shown: Mapping[K, object]) -> None:
        """Note the values that all of them show now. A missing key is forgotten."""
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
