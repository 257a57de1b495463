"""Where a quantile lies among sorted elements: the methods of Hyndman and Fan (1996), and NumPy's others, as exact
fractions.

A q is the decimal number that is written: 0.1 is one tenth, and not the float64 nearest to it. So the quantile 0.1 of
eleven elements is the second one, however large its neighbours are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType

MOST_QUANTILES = 1_000

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Between:
    """A value between two neighbours among sorted elements, which are counted from 0: (1 − weight) · that at `low` +
    weight · that at `high`. The weight is 0 where both are one."""

    low: int
    high: int
    weight: Fraction


@dataclass(frozen=True, slots=True)
class QuantileMethod:
    """A method: the place of the quantile q among n elements, which may lie before the first or behind the last, and
    whether the value is always an element."""

    place: Callable[[int, Fraction], Fraction]
    chooses: bool = False


def _spaced(alpha: Fraction, beta: Fraction) -> QuantileMethod:
    return QuantileMethod(lambda n, q: n * q + alpha + q * (1 - alpha - beta) - 1)


def _closest(n: int, q: Fraction) -> Fraction:
    """The nearest element; of two, the one whose number, counted from 1, is even."""
    place = n * q - 1
    return Fraction(floor(place) + (floor(place) % 2 == 0) if place % 1 == _HALF else round(place))


def _averaged(n: int, q: Fraction) -> Fraction:
    place = n * q - 1
    return place + _HALF if place.denominator == 1 else Fraction(ceil(place))


def _middle(n: int, q: Fraction) -> Fraction:
    place = (n - 1) * q
    return Fraction(floor(place) + ceil(place), 2)


METHODS: Mapping[str, QuantileMethod] = MappingProxyType(
    {
        "inverted_cdf": QuantileMethod(lambda n, q: Fraction(ceil(n * q) - 1), chooses=True),
        "averaged_inverted_cdf": QuantileMethod(_averaged),
        "closest_observation": QuantileMethod(_closest, chooses=True),
        "interpolated_inverted_cdf": _spaced(Fraction(0), Fraction(1)),
        "hazen": _spaced(_HALF, _HALF),
        "weibull": _spaced(Fraction(0), Fraction(0)),
        "linear": _spaced(Fraction(1), Fraction(1)),
        "median_unbiased": _spaced(Fraction(1, 3), Fraction(1, 3)),
        "normal_unbiased": _spaced(Fraction(3, 8), Fraction(3, 8)),
        "lower": QuantileMethod(lambda n, q: Fraction(floor((n - 1) * q)), chooses=True),
        "higher": QuantileMethod(lambda n, q: Fraction(ceil((n - 1) * q)), chooses=True),
        "midpoint": QuantileMethod(_middle),
        "nearest": QuantileMethod(lambda n, q: Fraction(round((n - 1) * q)), chooses=True),
    }
)
"""Every method, called as in NumPy."""


def decimal_of(q: float) -> Fraction:
    """The number that `q` is written as."""
    return Fraction(repr(float(q)))


def between(method: str, q: float, count: int) -> Between:
    """The neighbours of the quantile `q` among `count` ≥ 1 sorted elements."""
    place = min(max(METHODS[method].place(count, decimal_of(q)), Fraction(0)), Fraction(count - 1))
    low = floor(place)
    return Between(low, low if place == low else low + 1, place - low)
