"""The functions that the generators are made of, against known answers and Python's own."""

import math
import random
from fractions import Fraction

import pytest

from tests.support.kernels import formulas

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
