"""Pairs of float64 hold what is computed with them, to within the error that they state."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpfold.kernels.cpu.bounded import Bounded, Bounds

COUNT = 400


def numbers(chance: random.Random, bounds: Bounds, least: int = -40) -> tuple[Bounded, list[Fraction]]:
    """Pairs beside the numbers that they are near to."""
    exact = [
        Fraction(chance.getrandbits(160) + 1, 1 << 160) * Fraction(2) ** chance.randint(least, 40) for _ in range(COUNT)
    ]
    exact = [x * chance.choice((1, -1)) for x in exact]
    high = np.array([float(x) for x in exact])
    low = np.array([float(x - Fraction(float(near))) for x, near in zip(exact, high, strict=True)])
    return Bounded(high, low, np.abs(high) * 2.0**-105, bounds), exact


def all_hold(made: Bounded, exact: list[Any]) -> None:
    for high, low, error, x in zip(made.high, made.low, made.error, exact, strict=True):
        assert abs(Fraction(float(high)) + Fraction(float(low)) - x) <= Fraction(float(error))
        assert error <= abs(high) * 2.0**-60 + 2.0**-800 or abs(x) < 2.0**30


@pytest.mark.parametrize("seed", range(4))
def test_sums_products_quotients_and_powers_lie_within_their_errors(seed: int) -> None:
    chance, bounds = random.Random(seed), Bounds(np.ones(COUNT, np.bool_))
    (a, x), (b, y) = numbers(chance, bounds), numbers(chance, bounds)
    all_hold(a + b, [p + q for p, q in zip(x, y, strict=True)])
    all_hold(a - b * 3, [p - 3 * q for p, q in zip(x, y, strict=True)])
    all_hold(7 - a * b, [7 - p * q for p, q in zip(x, y, strict=True)])
    all_hold(a * abs(b), [p * abs(q) for p, q in zip(x, y, strict=True)])
    all_hold(a / b, [p / q for p, q in zip(x, y, strict=True)])
    all_hold(a**3 / (b**2), [p**3 / q**2 for p, q in zip(x, y, strict=True)])
    near = a * b - b * a  # all cancels
    all_hold(near + a, x)
    assert bounds.met.all()


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_roots_have_the_signs_of_their_numbers(degree: int) -> None:
    bounds = Bounds(np.ones(COUNT, np.bool_))
    a, x = numbers(random.Random(degree), bounds)
    made = (a**degree if degree % 2 else a * abs(a) if degree == 2 else a * abs(a) * a * a).root(degree)
    all_hold(made, x)
    assert bounds.met.all()


def test_conditions_hold_where_no_doubt_is_left() -> None:
    bounds = Bounds(np.ones(4, np.bool_))
    high, error = np.array([1.0, -1.0, 1.0, 0.0]), np.array([0.1, 0.1, 0.9, 0.0])
    number = Bounded(high, np.zeros(4), error, bounds)
    assert number > 0
    assert bounds.met.tolist() == [True, False, False, False]
    bounds.met[:] = True
    assert bool(number)
    assert bounds.met.tolist() == [True, True, False, False]
    bounds.met[:] = True
    assert number.__ne__(1)  # as a function of integers would ask
    assert bounds.met.tolist() == [False, True, False, True]
    bounds.met[:] = True
    assert (number / number).bounds is bounds
    assert bounds.met.tolist() == [True, True, True, False]
