"""What a generated source may ask for, and the sentence it gets if it may not."""

import math

import numpy as np
import pytest

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate import DISTRIBUTIONS, Formula, generate, plan
from warpfold.kernels.source import GeneratedSource


def source(name: str, dtype: str = "float32", n: int = 100, seed: int = 0, **parameters: float) -> GeneratedSource:
    return GeneratedSource(name, n, seed, DTYPES[dtype], parameters)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (source("gaussian"), "source.distribution"),
        (source("mixed", "float16"), "source.distribution"),
        (source("pathological", "int8"), "source.distribution"),
        (source("normal", "int32"), "source.distribution"),
        (source("normal", seed=-1), "source.seed"),
        (source("normal", seed=1 << 64), "source.seed"),
        (source("normal", n=-1), "source.n"),
        (source("normal", n=(1 << 53) + 1), "source.n"),
        (source("arange", "int8", n=129), "source.n"),
        (source("arange", "float16", n=65_506), "source.n"),
        (source("arange", "bool", n=3), "source.n"),
        (source("normal", sigma=1.0), "source.parameters.sigma"),
        (source("zeros", value=1.0), "source.parameters.value"),
        (source("normal", mean=math.nan), "source.parameters.mean"),
        (source("normal", mean=math.inf), "source.parameters.mean"),
        (source("normal", std=-1.0), "source.parameters.std"),
        (source("normal", "float16", std=1e4), "source.parameters.std"),
        (source("normal", mean=10**400), "source.parameters.mean"),
        (source("lognormal", "float16", sigma=3.0), "source.parameters.sigma"),
        (source("lognormal", mean=100.0), "source.parameters.mean"),
        (source("uniform", low=1.0, high=0.0), "source.parameters.high"),
        (source("uniform", "float64", low=-1.7e308, high=1.7e308), "source.parameters.high"),
        (source("uniform", "uint8", low=-1.0), "source.parameters.low"),
        (source("uniform", "int8", high=128.0), "source.parameters.high"),
        (source("uniform", "int8", high=0.5), "source.parameters.high"),
        (source("constant", value=1e39), "source.parameters.value"),
        (source("constant", "bool", value=2.0), "source.parameters.value"),
        (source("constant", "int64", value=2.0**63), "source.parameters.value"),
        (source("modulo", m=0.0), "source.parameters.m"),
        (source("modulo", m=2.5), "source.parameters.m"),
        (source("modulo", "float16", m=2049.0), "source.parameters.m"),
        (source("modulo", "float16", m=50.0, scale=2000.0), "source.parameters.scale"),
        (source("modulo", "int8", m=50.0, scale=3.0), "source.parameters.scale"),
        (source("modulo", "uint8", m=50.0, scale=-1.0), "source.parameters.scale"),
        (source("ill_conditioned", condition=0.5), "source.parameters.condition"),
        (source("ill_conditioned", condition=1e38), "source.parameters.condition"),
        (source("ill_conditioned", "float64", condition=2e307), "source.parameters.condition"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_field(bad: GeneratedSource, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        plan(bad)
    assert raised.value.field == field


def test_defaults_fill_what_is_not_given() -> None:
    made = plan(source("normal", std=2.0))
    assert (made.formula, made.a, made.b) == (Formula.NORMAL, 0.0, 2.0)


def test_every_distribution_can_be_made_with_its_defaults_in_each_of_its_dtypes() -> None:
    for row in DISTRIBUTIONS.values():
        for dtype in row.dtypes:
            n = 2 if dtype == "bool" else 100
            period = {"m": 2.0} if (row.name, dtype) == ("modulo", "bool") else {}
            elements = generate(GeneratedSource(row.name, n, 0, DTYPES[dtype], period), 0, n)
            assert elements.shape == (n,)


def test_integers_beyond_float64_are_taken_whole() -> None:
    made = generate(source("constant", "uint64", value=2**64 - 1), 0, 3)
    assert made.tolist() == [2**64 - 1] * 3
    assert np.unique(generate(source("uniform", "int64", low=2**62 + 1, high=2**62 + 2), 0, 50)).tolist() == [
        2**62 + 1,
        2**62 + 2,
    ]


def test_the_whole_range_of_64_bits_is_a_span_of_zero() -> None:
    assert plan(source("uniform", "uint64", low=0, high=2**64 - 1)).span == 0


def test_the_narrowest_ranges_are_constants() -> None:
    assert set(generate(source("uniform", low=2.5, high=2.5), 0, 10).tolist()) == {2.5}
    assert set(generate(source("uniform", "int8", low=-4, high=-4), 0, 10).tolist()) == {-4}
    assert set(generate(source("normal", mean=3.0, std=0.0), 0, 10).tolist()) == {3.0}
