"""Generated arrays have the same bits on the GPU as on the CPU."""

import numpy as np
import pytest

from warpfold.kernels.cuda.elements import carrier
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.generator import fill
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.generate import DISTRIBUTIONS, generate, plan
from warpfold.kernels.source import GeneratedSource

SEEDS = (0, 42, 2**64 - 1)
RANGES = ((100, 0, 100), (30_001, 0, 30_001), (1 << 40, (1 << 35) - 9_000, (1 << 35) + 9_000))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_has_the_cpus_bits(gpu: Gpu, distribution: str, dtype: str) -> None:
    import cupy

    row, compared = DTYPES[dtype], 0
    for count, start, stop in RANGES:
        for seed in SEEDS:
            source = GeneratedSource(distribution, count, seed, row)
            try:
                formula = plan(source)
            except InvalidInput:
                continue
            array = cupy.empty(stop - start, dtype=carrier(row))
            fill(gpu, formula, array, start)
            assert array.get().tobytes() == generate(source, start, stop).tobytes()
            compared += 1
    if dtype not in DISTRIBUTIONS[distribution].dtypes:
        pytest.skip("not offered")
    assert compared or dtype in ("int8", "uint8", "bool", "float16")  # arange does not fit so many


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_other_parameters_keep_the_bits(gpu: Gpu, dtype: str) -> None:
    import cupy

    row = DTYPES[dtype]
    cases: list[tuple[str, dict[str, float]]] = [
        ("normal", {"mean": 0.5, "std": 2.0}),
        ("lognormal", {"mean": -20.0, "sigma": 0.5}),  # rounds to subnormals of float16
        ("uniform", {"low": -1e-3, "high": 1e3}),
        ("modulo", {"m": 10, "scale": 0.1}),
        ("ill_conditioned", {"condition": 1e3}),
    ]
    for distribution, parameters in cases:
        source = GeneratedSource(distribution, 50_000, 7, row, parameters)
        array = cupy.empty(source.count, dtype=carrier(row))
        fill(gpu, plan(source), array, 0)
        host = generate(source, 0, source.count)
        assert np.array_equal(array.get(), host.view(carrier(row))), distribution
