"""Summaries: a few figures of many samples. They assume nothing about how times are distributed."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpfold.kernels.bench.stopping import Spread

CONFIDENCE = 0.975
"""The confidence of one median's interval. Two such intervals hold at once with a probability of at least 0.95
(Bonferroni)."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures in seconds. `rse` is the relative standard error of the mean; `interval` holds the true median with a
    confidence of CONFIDENCE, and is None where the samples are too few to say (fewer than 7)."""

    samples: int
    median: float
    min: float
    p95: float
    mean: float
    rse: float
    interval: Interval | None


def summarise(samples: Sequence[float]) -> Summary:
    """The figures of one or more samples."""
    spread = Spread()
    for sample in samples:
        spread.add(sample)
    ordered = sorted(samples)
    return Summary(
        samples=len(ordered),
        median=statistics.median(ordered),
        min=ordered[0],
        p95=float(np.quantile(ordered, 0.95)),
        mean=spread.mean,
        rse=spread.rse,
        interval=median_interval(ordered, CONFIDENCE),
    )


def median_interval(ordered: Sequence[float], confidence: float) -> Interval | None:
    """A confidence interval of the median from order statistics (H. A. David, H. N. Nagaraja, Order Statistics, 7.1).

    The number of samples below the true median is binomial (n, ½) whatever the distribution, so x₍ₖ₎ … x₍ₙ₊₁₋ₖ₎ holds
    it with probability 1 − 2 P(B < k). None when not even the whole range reaches the confidence.
    """
    n = len(ordered)
    # In integers: 2 Σ_{i<k} C(n, i) ≤ (1 − confidence) 2ⁿ, for the largest such k.
    allowed = math.floor((1 - confidence) * 2**53) * (1 << n) >> 53
    term, total, k = 1, 0, 0
    while 2 * (total + term) <= allowed:
        total += term
        k += 1
        term = term * (n - k + 1) // k
    return Interval(ordered[k - 1], ordered[n - k]) if k else None
