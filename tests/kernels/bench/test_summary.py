import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.bench.summary import CONFIDENCE, Interval, median_interval, summarise

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=80)


@given(SAMPLES)
def test_the_median_is_numpys(samples: list[float]) -> None:
    summary = summarise(samples)
    assert summary.median == pytest.approx(float(np.median(samples)), rel=1e-14)
    assert (summary.min, summary.samples) == (min(samples), len(samples))


@given(SAMPLES)
def test_figures_are_in_order(samples: list[float]) -> None:
    summary = summarise(samples)
    assert summary.min <= summary.median <= max(samples)
    assert summary.min <= summary.p95 <= max(samples)
    if summary.interval is not None:
        assert summary.interval.low <= summary.median <= summary.interval.high


def test_a_single_sample_is_its_own_summary() -> None:
    summary = summarise([3.0])
    assert (summary.median, summary.min, summary.p95, summary.rse) == (3.0, 3.0, 3.0, math.inf)
    assert summary.interval is None


def coverage(n: int, k: int) -> Fraction:
    """P(x₍ₖ₎ ≤ median ≤ x₍ₙ₊₁₋ₖ₎), exactly."""
    return 1 - 2 * sum((Fraction(math.comb(n, i), 2**n) for i in range(k)), Fraction(0))


@pytest.mark.parametrize("n", [*range(1, 40), 101, 1000])
def test_the_interval_is_the_narrowest_that_reaches_its_confidence(n: int) -> None:
    interval = median_interval([float(i) for i in range(1, n + 1)], CONFIDENCE)
    if interval is None:
        assert coverage(n, 1) < CONFIDENCE
        return
    k = int(interval.low)
    assert interval.high == n + 1 - k
    assert coverage(n, k) >= CONFIDENCE
    assert k + 1 > (n + 1) / 2 or coverage(n, k + 1) < CONFIDENCE


def test_seven_samples_are_the_fewest_with_an_interval() -> None:
    assert median_interval([1.0] * 6, CONFIDENCE) is None
    assert median_interval([float(i) for i in range(7)], CONFIDENCE) == Interval(0.0, 6.0)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    generator = random.Random(20261121)
    held = 0
    for _ in range(2000):
        # A skewed distribution, as times are; its median is ln 2.
        interval = median_interval(sorted(generator.expovariate(1.0) for _ in range(25)), CONFIDENCE)
        assert interval is not None
        held += interval.low <= math.log(2) <= interval.high
    assert held / 2000 >= CONFIDENCE - 0.01
