"""The definitions of the ops of several totals, in exact fractions: by deviations from means, and by no totals.

Each gives a fraction and a degree: the value is the root of that degree of the fraction, with the sign of the fraction.
None is a value that is not a number.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb
from types import MappingProxyType


class Pairs:
    """Numbers x beside numbers y, some of each; of a single source y is x. They are multiples of 2**−1074."""

    def __init__(self, xs: Sequence[Fraction], ys: Sequence[Fraction], ddof: int) -> None:
        self.n, self.ddof = len(xs), ddof
        # Whole numbers of 1/n units, of which the deviations are whole, too.
        self._unit = Fraction(1, self.n << 1074)
        self._xs, self._ys = ([x.numerator * ((self.n << 1074) // x.denominator) for x in side] for side in (xs, ys))
        self._means = sum(self._xs) // self.n, sum(self._ys) // self.n

    def moment(self, of_x: int, of_y: int = 0) -> Fraction:
        """The mean product of so many deviations of x and of y."""
        mean_x, mean_y = self._means
        each = ((x - mean_x) ** of_x * (y - mean_y) ** of_y for x, y in zip(self._xs, self._ys, strict=True))
        return Fraction(sum(each), self.n) * self._unit ** (of_x + of_y)

    def power(self, degree: int) -> Fraction:
        """Σ |x| ** degree"""
        return Fraction(sum(abs(x) ** degree for x in self._xs)) * self._unit**degree

    @property
    def means(self) -> tuple[Fraction, Fraction]:
        """Those of x and of y."""
        return self._means[0] * self._unit, self._means[1] * self._unit


Exact = tuple[Fraction, int] | None


def _quotient(above: Fraction, below: Fraction, degree: int = 1) -> Exact:
    return None if below == 0 else (above / below, degree)


def _skew(pairs: Pairs) -> Exact:
    third, n = pairs.moment(3), pairs.n
    sample = Fraction(n * (n - 1), (n - 2) ** 2) if pairs.ddof else 1
    return _quotient(sample * third * abs(third), pairs.moment(2) ** 3, 2)


def _kurtosis(pairs: Pairs) -> Exact:
    square, n = pairs.moment(2) ** 2, pairs.n
    excess = pairs.moment(4) - 3 * square
    if pairs.ddof:
        excess = Fraction(n - 1, comb(n - 2, 2) * 2) * ((n + 1) * excess + 6 * square)
    return _quotient(excess, square)


def _correlation(pairs: Pairs) -> Exact:
    both = pairs.moment(1, 1)
    return _quotient(both * abs(both), pairs.moment(2) * pairs.moment(0, 2), 2)


def _intercept(pairs: Pairs) -> Exact:
    mean_x, mean_y = pairs.means
    spread = pairs.moment(2)
    return _quotient(mean_y * spread - pairs.moment(1, 1) * mean_x, spread)


DEFINITIONS: Mapping[str, Callable[[Pairs], Exact]] = MappingProxyType(
    {
        "rms": lambda pairs: (pairs.power(2) / pairs.n, 2),
        "sem": lambda pairs: (pairs.moment(2) / (pairs.n - pairs.ddof), 2),
        "norm3": lambda pairs: (pairs.power(3), 3),
        "norm4": lambda pairs: (pairs.power(4), 4),
        "moment3": lambda pairs: (pairs.moment(3), 1),
        "moment4": lambda pairs: (pairs.moment(4), 1),
        "skew": _skew,
        "kurtosis": _kurtosis,
        "cov": lambda pairs: (pairs.moment(1, 1) * pairs.n / (pairs.n - pairs.ddof), 1),
        "corr": _correlation,
        "slope": lambda pairs: _quotient(pairs.moment(1, 1), pairs.moment(2)),
        "intercept": _intercept,
        "r2": lambda pairs: _quotient(pairs.moment(1, 1) ** 2, pairs.moment(2) * pairs.moment(0, 2)),
    }
)
