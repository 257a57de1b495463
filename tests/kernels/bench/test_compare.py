import pytest

from warpfold.kernels.bench.compare import Timed, ratio
from warpfold.kernels.bench.summary import Interval


def test_twice_as_fast_is_two() -> None:
    speedup = ratio(Timed(2.0, Interval(1.9, 2.1)), Timed(1.0, Interval(0.95, 1.05)))
    assert speedup.value == 2.0
    assert speedup.differs


def test_the_interval_spans_the_extreme_ratios() -> None:
    speedup = ratio(Timed(2.0, Interval(1.9, 2.2)), Timed(1.0, Interval(0.8, 1.1)))
    assert speedup.interval is not None
    assert speedup.interval.low == pytest.approx(1.9 / 1.1, rel=1e-15)
    assert speedup.interval.high == pytest.approx(2.2 / 0.8, rel=1e-15)


def test_overlapping_intervals_show_no_difference() -> None:
    assert not ratio(Timed(1.0, Interval(0.9, 1.1)), Timed(1.05, Interval(1.0, 1.1))).differs


def test_without_an_interval_nothing_is_claimed() -> None:
    speedup = ratio(Timed(2.0, None), Timed(1.0, Interval(0.9, 1.1)))
    assert speedup.value == 2.0
    assert speedup.interval is None
    assert not speedup.differs
