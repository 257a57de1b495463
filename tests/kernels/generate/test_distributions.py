"""What the distributions look like: moments and shapes of a million elements of a fixed seed."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernels.patterns import FLOATS
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ExactState
from warpfold.kernels.generate import DISTRIBUTIONS, generate
from warpfold.kernels.ops import Terms
from warpfold.kernels.source import GeneratedSource

N = 1_000_000


def sample(name: str, dtype: str = "float64", n: int = N, **parameters: float) -> NDArray[np.float64]:
    source = GeneratedSource(name, n, 2024, DTYPES[dtype], parameters)
    return generate(source, 0, n).astype(np.float64)


def kolmogorov_distance(data: NDArray[np.float64], uniform: NDArray[np.float64]) -> float:
    """√n times the largest distance of the empirical distribution of sorted `data` whose CDF values are `uniform`."""
    steps = np.arange(1, data.size + 1) / data.size
    return float(math.sqrt(data.size) * np.maximum(steps - uniform, uniform - steps + 1 / data.size).max())


def normal_cdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z])


def test_normals_are_normal() -> None:
    z = sample("normal")
    assert abs(z.mean()) < 4 / math.sqrt(N)
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / N)
    assert abs((z**3).mean()) < 4 * math.sqrt(15 / N)
    assert abs((z**4).mean() - 3) < 4 * math.sqrt(96 / N)
    part = np.sort(z[:100_000])
    # The 99.9 % point of Kolmogorov's distribution is 1.95.
    assert kolmogorov_distance(part, normal_cdf(part)) < 1.95


def test_neighbouring_normals_are_uncorrelated() -> None:
    z = sample("normal")
    for lag in (1, 2, 4, 32):
        assert abs((z[lag:] * z[:-lag]).mean()) < 4 / math.sqrt(N)


def test_normals_reach_the_tails_that_a_million_should() -> None:
    z = sample("normal")
    for edge in (3.0, 4.0):
        expected = N * math.erfc(edge / math.sqrt(2.0))
        assert abs(int((abs(z) > edge).sum()) - expected) < 4 * math.sqrt(expected)


def test_normals_have_the_mean_and_deviation_asked_for() -> None:
    z = sample("normal", mean=5.0, std=0.25)
    assert abs(z.mean() - 5.0) < 0.001
    assert abs(z.std() - 0.25) < 0.001


def test_uniforms_are_uniform() -> None:
    u = np.sort(sample("uniform", low=-2.0, high=3.0))
    assert u[0] >= -2.0
    assert u[-1] < 3.0
    assert kolmogorov_distance(u, (u + 2) / 5) < 1.95


def test_uniform_integers_take_every_value_equally_often() -> None:
    values, counts = np.unique(sample("uniform", "int16", low=-3, high=6), return_counts=True)
    assert values.tolist() == list(range(-3, 7))
    chi_square = float(((counts - N / 10) ** 2 / (N / 10)).sum())
    assert chi_square < 27.9  # 99.9 % point of 9 degrees of freedom


def test_random_bools_are_a_fair_coin() -> None:
    assert abs(sample("uniform", "bool").mean() - 0.5) < 4 * 0.5 / math.sqrt(N)


def test_the_logarithm_of_a_lognormal_is_normal() -> None:
    z = np.sort((np.log(sample("lognormal", n=100_000, mean=1.0, sigma=2.0)) - 1.0) / 2.0)
    assert kolmogorov_distance(z, normal_cdf(z)) < 1.95


def test_mixed_is_half_large_and_half_small() -> None:
    data = sample("mixed")
    large = data >= 1.0
    assert abs(large.mean() - 0.5) < 4 * 0.5 / math.sqrt(N)
    assert data[large].min() >= 1e6
    assert data[large].max() <= 1e8
    assert data[~large].min() >= 1e-3
    assert data[~large].max() <= 1e-1
    runs = (large[1:] != large[:-1]).mean()
    assert abs(runs - 0.5) < 4 * 0.5 / math.sqrt(N)


def test_pathological_repeats_three_numbers() -> None:
    assert sample("pathological", "float32", n=7).tolist() == [1e8, 1.0, -1e8, 1e8, 1.0, -1e8, 1e8]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_all_exponents_has_them_all_and_nothing_else(dtype: DType) -> None:
    bits = (
        generate(GeneratedSource("all_exponents", N, 3, dtype), 0, N).view(f"uint{8 * dtype.itemsize}").astype(np.int64)
    )
    fields = np.bincount(
        (bits >> (dtype.precision - 1)) & (2 * dtype.max_exponent - 1), minlength=2 * dtype.max_exponent
    )
    expected = N / (2 * dtype.max_exponent - 1)
    assert fields[-1] == 0, "no NaN, no infinity"
    assert (abs(fields[:-1] - expected) < 6 * math.sqrt(expected)).all()


@pytest.mark.parametrize(
    ("condition", "dtype"), [(1.0, "float32"), (1e3, "float32"), (1e20, "float64"), (1e300, "float64")]
)
def test_ill_conditioned_has_about_the_condition_asked_for(condition: float, dtype: str) -> None:
    source = GeneratedSource("ill_conditioned", 100_000, 9, DTYPES[dtype], {"condition": condition})
    data = generate(source, 0, source.count)
    empty = ExactState.empty(Terms.VALUES)
    magnitude, total = empty.add(data, magnitudes=True).units, abs(empty.add(data).units)
    assert magnitude / total == pytest.approx(condition, rel=0.02)


def test_every_generated_element_is_finite() -> None:
    for row in DISTRIBUTIONS.values():
        for name in row.dtypes:
            if DTYPES[name].is_float:
                assert np.isfinite(sample(row.name, name, n=20_000)).all(), (row.name, name)
