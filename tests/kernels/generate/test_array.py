"""Generated arrays: the elements that the formulas give, whatever the range, chunks or threads.

The formulas are in `tests/support/kernels/formulas.py`; they are held to known answers and to the functions of Python.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tests.support.kernels import formulas
from tests.support.kernels.formulas import bits
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.generate import DISTRIBUTIONS, array, generate, plan
from warpfold.kernels.source import GeneratedSource

N = 50_000
PAIRS = [(row.name, dtype) for row in DISTRIBUTIONS.values() for dtype in row.dtypes]
SMALL = {("arange", "int8"): 128, ("arange", "uint8"): 256, ("arange", "bool"): 2, ("arange", "int16"): 32_768}
PARAMETERS: dict[tuple[str, str], dict[str, float]] = {
    ("modulo", "bool"): {"m": 2.0, "scale": 1.0},
    ("modulo", "float32"): {"m": 50.0, "scale": 0.02},
    ("modulo", "int8"): {"m": 5.0, "scale": -32.0},
    ("uniform", "int64"): {"low": -(2**63), "high": 2**63 - 1},
    ("uniform", "uint64"): {"low": 3, "high": 2**64 - 1},
    ("uniform", "int16"): {"low": -7.0, "high": 12.0},
    ("uniform", "float32"): {"low": -3.0, "high": 5.5},
    ("normal", "bfloat16"): {"mean": 0.0, "std": 1e-39},
    ("normal", "float16"): {"mean": 100.0, "std": 20.0},
    ("lognormal", "float64"): {"mean": -700.0, "sigma": 20.0},
    ("lognormal", "float32"): {"mean": 0.0, "sigma": 3.0},
    ("ill_conditioned", "float64"): {"condition": 1e20},
}


def source(distribution: str, dtype: str, count: int = N, seed: int = 0x0123456789ABCDEF) -> GeneratedSource:
    count = min(count, SMALL.get((distribution, dtype), count))
    return GeneratedSource(distribution, count, seed, DTYPES[dtype], PARAMETERS.get((distribution, dtype), {}))


@pytest.mark.parametrize(("distribution", "dtype"), PAIRS)
def test_each_element_is_the_formulas_to_the_last_bit(distribution: str, dtype: str) -> None:
    named = source(distribution, dtype)
    made = plan(named)
    elements = generate(named, 0, named.count)
    assert elements.dtype == DTYPES[dtype].numpy
    patterns = elements.view(f"uint{8 * DTYPES[dtype].itemsize}")
    chosen = np.unique(np.linspace(0, named.count - 1, 60).astype(np.int64))
    assert [int(patterns[index]) for index in chosen] == [bits(made, int(index)) for index in chosen]


@pytest.mark.parametrize(("distribution", "dtype"), PAIRS)
def test_a_range_is_a_slice_of_the_whole(distribution: str, dtype: str) -> None:
    named = source(distribution, dtype)
    whole = generate(named, 0, named.count)
    for start, stop in ((0, 1), (1, 1), (named.count // 3, named.count // 2), (named.count - 1, named.count)):
        assert generate(named, start, stop).tobytes() == whole[start:stop].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
def test_threads_change_nothing(dtype: str) -> None:
    named = source("uniform", dtype, count=array.PARALLEL + 12_345)
    whole = generate(named, 0, named.count)
    parts = [generate(named, at, min(at + 100_000, named.count)) for at in range(0, named.count, 100_000)]
    assert whole.tobytes() == b"".join(part.tobytes() for part in parts)


def test_elements_far_beyond_32_bits_of_index_are_the_formulas() -> None:
    named = GeneratedSource("normal", 1 << 40, 7, DTYPES["float64"])
    at = (1 << 40) - 5
    elements = generate(named, at, at + 5).view(np.uint64)
    assert [int(pattern) for pattern in elements] == [bits(plan(named), at + k) for k in range(5)]


def test_another_seed_gives_another_array() -> None:
    low, other = (generate(source("uniform", "float64", seed=seed), 0, 1000) for seed in (1, 1 << 32))
    assert not (low == other).any()


def test_a_range_outside_the_array_is_an_error() -> None:
    named = source("zeros", "float32", count=10)
    for start, stop in ((-1, 5), (3, 2), (0, 11)):
        with pytest.raises(IndexError):
            generate(named, start, stop)


def test_an_array_of_nothing_is_empty() -> None:
    assert generate(source("normal", "float32", count=0), 0, 0).size == 0


def test_modulo_multiplies_in_the_dtype() -> None:
    named = GeneratedSource("modulo", 1024, 0, DTYPES["float32"], {"m": 50, "scale": 0.02})
    wanted = (np.arange(1024) % 50).astype(np.float32) * np.float32(0.02)
    assert generate(named, 0, 1024).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("distribution", ["constant", "modulo"])
def test_a_parameter_is_rounded_to_the_dtype_once(distribution: str) -> None:
    above = 1.0 + 2.0**-8 + 2.0**-40  # a tie of bfloat16: by way of float32 it becomes the tie, and then even
    parameters = {"value": above} if distribution == "constant" else {"m": 2, "scale": above}
    named = GeneratedSource(distribution, 2, 0, DTYPES["bfloat16"], parameters)
    assert float(generate(named, 0, 2)[1]) == 1.0 + 2.0**-7


CHANCE = random.Random(5)


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [
        # The known answers of the authors' library, Random123: kat_vectors, philox4x32 10.
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(counter: formulas.Words, key: tuple[int, int], wanted: formulas.Words) -> None:
    assert formulas.philox4x32(counter, key) == wanted


def test_the_logarithm_is_within_a_few_ulps() -> None:
    samples = [CHANCE.random() or 1.0 for _ in range(3000)] + [2.0**-53, 1.0, 1.0 - 2.0**-53, 0.5, 0.75, math.sqrt(0.5)]
    for v in samples:
        assert abs(formulas.log(v) - math.log(v)) <= 4 * math.ulp(math.log(v)), v


def test_the_cosine_is_within_a_few_ulps_of_one() -> None:
    for u in [CHANCE.random() for _ in range(3000)] + [0.0, 0.25, 0.5, 0.75, 1.0 - 2.0**-53]:
        assert abs(formulas.cos_turn(u) - math.cos(2 * math.pi * u)) <= 2.0**-50, u
    assert formulas.cos_turn(0.25) == 0.0


def test_the_exponential_is_within_a_few_ulps() -> None:
    for y in [CHANCE.uniform(-744.0, 709.0) for _ in range(3000)] + [0.0, 1.0, -1.0, 709.7, -745.0]:
        assert abs(formulas.exp(y) - math.exp(y)) <= 8 * math.ulp(math.exp(y)), y


def test_the_parts_of_ln_2_add_up_to_it() -> None:
    ln2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
    error = ln2 - Fraction(formulas.LN2_HIGH) - Fraction(formulas.LN2_LOW)
    assert abs(error) < Fraction(math.ulp(formulas.LN2_LOW))
    assert (Fraction(formulas.LN2_HIGH) * 2**32).denominator == 1
