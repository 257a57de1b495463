"""When to try again a delivery that failed."""

import random
from collections.abc import Sequence

DAY: Sequence[float] = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18000.0, 28800.0, 28800.0)
"""Seconds after each failure: nine attempts within a day."""

_JITTER = 0.2


def pause_after(number: int, schedule: Sequence[float] = DAY) -> float | None:
    """Seconds after the failure of attempt `number` (from 1), up to a fifth more or less, so that what failed together
    does not come back together; None after the last one."""
    if number > len(schedule):
        return None
    return schedule[number - 1] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 (no secret)
