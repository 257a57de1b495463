import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpfold.kernels.bench.stopping import Ending, Rule, Spread, ending
from warpfold.kernels.errors import InvalidInput

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=60)


def spread_of(samples: list[float]) -> Spread:
    spread = Spread()
    for sample in samples:
        spread.add(sample)
    return spread


@given(SAMPLES)
def test_mean_and_variance_are_those_of_exact_arithmetic(samples: list[float]) -> None:
    exact = [Fraction(sample) for sample in samples]
    mean = sum(exact) / len(exact)
    variance = sum((x - mean) ** 2 for x in exact) / (len(exact) - 1)
    spread = spread_of(samples)
    assert spread.mean == pytest.approx(float(mean), rel=1e-12)
    assert spread.variance == pytest.approx(float(variance), rel=1e-9, abs=1e-20 * max(samples) ** 2 + 1e-300)


def test_the_relative_standard_error_is_that_of_the_mean() -> None:
    samples = [9.0, 10.0, 11.0, 10.0]
    expected = statistics.stdev(samples) / math.sqrt(4) / 10
    assert spread_of(samples).rse == pytest.approx(expected, rel=1e-14)


def test_one_sample_says_nothing_about_the_error() -> None:
    assert spread_of([1.0]).rse == math.inf
    assert ending(Rule(), spread_of([1.0]), 0.0) is None


def test_equal_samples_converge_once_there_are_enough() -> None:
    rule = Rule(min_samples=5)
    assert ending(rule, spread_of([2.0] * 4), 0.0) is None
    assert ending(rule, spread_of([2.0] * 5), 0.0) is Ending.CONVERGED


def test_noise_is_sampled_until_the_error_of_the_mean_is_small_enough() -> None:
    rule = Rule(target_rse=0.005, min_samples=2, max_samples=10_000)
    samples: list[float] = []
    while ending(rule, spread_of(samples), 0.0) is None:
        samples += [0.9, 1.1]
    # s ≈ 0.1 and 0.1 / √n ≤ 0.005 from n ≈ 400 on.
    assert 400 <= len(samples) <= 404


def test_the_time_limit_ends_it_and_is_reported() -> None:
    noisy = spread_of([1.0, 2.0, 3.0])
    assert ending(Rule(time_limit_s=5.0), noisy, 4.9) is None
    assert ending(Rule(time_limit_s=5.0), noisy, 5.0) is Ending.TIME_LIMIT


def test_at_least_one_sample_is_taken_whatever_the_time() -> None:
    assert ending(Rule(time_limit_s=1.0), Spread(), 100.0) is None


def test_the_sample_limit_ends_it_and_is_reported() -> None:
    rule = Rule(min_samples=2, max_samples=4)
    assert ending(rule, spread_of([1.0, 2.0, 3.0]), 0.0) is None
    assert ending(rule, spread_of([1.0, 2.0, 3.0, 4.0]), 0.0) is Ending.SAMPLE_LIMIT


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target_rse", 0.0),
        ("target_rse", 1.0),
        ("min_samples", 1),
        ("max_samples", 19),
        ("time_limit_s", 0.0),
        ("time_limit_s", -1.0),
        ("time_limit_s", math.inf),
        ("time_limit_s", math.nan),
    ],
)
def test_an_impossible_rule_names_its_field(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        Rule(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field
