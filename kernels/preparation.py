"""The steps before a backend can time anything: compile kernels, load them, start them a first time."""

import time
from collections.abc import Hashable


class Preparation:
    """Counts the time that one thread spends in `with preparation:`; nested blocks count once.

    `total_ms` is the sum so far, in milliseconds of the host's clock. `ready` names what need not be prepared again.
    """

    def __init__(self) -> None:
        self.total_ms = 0.0
        self.ready: set[Hashable] = set()
        self._depth = 0
        self._began = 0.0

    def __enter__(self) -> None:
        if not self._depth:
            self._began = time.perf_counter()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.total_ms += (time.perf_counter() - self._began) * 1e3
