"""The one way in which tests wait: for a condition, and never for a time that a loaded machine might not keep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(
    condition: Callable[[], T],
    within_s: float = 60.0,
    *,
    every_s: float = 0.01,
    describe: Callable[[], object] = lambda: "the condition does not hold",
) -> T:
    """What `condition` returns as soon as that is true. After `within_s` seconds the test fails, with `describe()`."""
    give_up = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < give_up, describe()
        time.sleep(every_s)
    return value
