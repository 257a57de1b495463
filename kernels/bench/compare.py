"""Comparisons: how much faster one measurement is than another, and how sure that is."""

from dataclasses import dataclass

from warpfold.kernels.bench.summary import Interval


@dataclass(frozen=True, slots=True)
class Timed:
    """A median time and its interval, in any one unit."""

    median: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Baseline time over candidate time: above 1 the candidate is faster.

    `interval` holds the true ratio with a confidence of at least 95 %, as far as the samples of each run stand for all
    runs; None where one of the two has too few samples.
    """

    value: float
    interval: Interval | None

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.interval is not None and not self.interval.low <= 1 <= self.interval.high


def ratio(baseline: Timed, candidate: Timed) -> Ratio:
    """The ratio of the medians. Both intervals hold at once with at least 95 %, and so do the extreme ratios."""
    value = baseline.median / candidate.median
    a, b = baseline.interval, candidate.interval
    return Ratio(value, Interval(a.low / b.high, a.high / b.low) if a and b else None)
