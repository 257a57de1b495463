"""The function by which all tests wait: for a condition, and never for a time that a loaded machine might not keep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SLOWEST_S = 0.1

Meanwhile = Callable[[Callable[[], object]], None]
"""Does something beside what runs (the fixture `meanwhile`)."""


def until(
    condition: Callable[[], T],
    within_s: float = 60.0,
    *,
    every_s: float = 0.01,
    describe: Callable[[], object] = lambda: "the condition does not hold",
) -> T:
    """What `condition` returns as soon as that is true. After `within_s` seconds the test fails, with `describe()`.

    `condition` is called after `every_s` seconds, and after a tenth of a second at most where it has been false for
    long: it is often a query or a request, and takes the processor from those whom the test waits for.
    """
    begun = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - begun
        assert waited < within_s, describe()
        time.sleep(max(every_s, min(waited / 10, _SLOWEST_S)))
    return value
