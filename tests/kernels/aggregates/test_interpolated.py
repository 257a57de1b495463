"""Values between two elements are the exact ones, rounded once, whether they are made in NumPy or in fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest

from tests.support.kernels.conformance import same
from tests.support.kernels.patterns import any_bits, array_of_bits
from warpfold.kernels.aggregates.interpolated import interpolated
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.ops import reference
from warpfold.kernels.ops.reference_order import value_between

WEIGHTS = [*map(Fraction, ("0", "1/2", "1/4", "3/10", "1/3", "1e-17", "0.99"))]


def pairs_of(dtype: DType, chance: random.Random) -> list[tuple[int, int]]:
    """Patterns of any two elements, of near ones, and of equal ones."""
    bits = [each for each in any_bits(dtype, 300, chance) if not reference.element(each, dtype).nan]
    near = [(each, min(each + chance.randrange(4), dtype.bounds[1])) for each in bits if not dtype.is_float]
    if dtype.is_float:
        near = [(each, each ^ chance.randrange(4)) for each in bits]
    pairs = [*zip(bits, reversed(bits), strict=True), *near]
    return [pair for pair in pairs if not any(reference.element(each, dtype).nan for each in pair)]


@pytest.mark.parametrize(("count", "weights"), [(40, WEIGHTS), (600, WEIGHTS), (600, WEIGHTS[:2]), (600, WEIGHTS[1:2])])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_values_between_are_rounded_once(dtype: DType, count: int, weights: list[Fraction]) -> None:
    chance = random.Random(f"{dtype.name} {count} {weights}")
    pairs = pairs_of(dtype, chance)[-count:]
    which = np.array([chance.randrange(len(weights)) for _ in pairs])
    low, high = (array_of_bits(each, dtype) for each in zip(*pairs, strict=True))
    for value, pair, number in zip(interpolated(low, high, weights, which, dtype).tolist(), pairs, which, strict=True):
        below, above = (reference.element(each, dtype) for each in pair)
        wanted = value_between(below, above, weights[number], dtype)
        assert same(value, wanted), (pair, weights[number], value, wanted)
