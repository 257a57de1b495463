"""The classes into which durations of jobs are counted."""

from bisect import bisect_left

BOUNDS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0)
"""Upper bounds, in seconds; what is longer falls into one class more. Changing them orphans what was counted."""


def bound_of(seconds: float) -> str:
    """The bound that a duration falls under, as Prometheus names it in `le`."""
    index = bisect_left(BOUNDS_S, seconds)
    return "+Inf" if index == len(BOUNDS_S) else str(BOUNDS_S[index])
