"""What the exact totals of some elements come to: one function of integers for each op that adds up several totals.

A function gets the number of elements, the delta degrees of freedom, and the totals that its row names, in the order of
the row. The totals are integers of one unit u: Σ x is in units of u, Σ x y in units of u², and so on. The function
gives the value as a root of a fraction, which `kernels.exact.finish` rounds once.
"""

# ruff: noqa: PLR0917 - a function gets the totals in the order of its row

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Root:
    """± (|numerator / denominator| · u**units) ** (1 / degree), with the sign of the fraction; the denominator is not
    0."""

    numerator: int
    denominator: int = 1
    units: int = 0
    degree: int = 1


Value = Root | None
"""None is a value that is not a number, such as a quotient by 0."""


def product(n: int, ddof: int, xy: int) -> Value:
    """Σ x y"""
    return Root(xy, 1, 2)


def mean(n: int, ddof: int, x: int) -> Value:
    """Σ x / n"""
    return _positive(Root(x, n, 1))


def variance(n: int, ddof: int, x: int, xx: int) -> Value:
    """Σ (x − mean)² / (n − ddof)"""
    return _positive(Root(n * xx - x * x, n * (n - ddof), 2))


def deviation(n: int, ddof: int, x: int, xx: int) -> Value:
    """√ var, which is no number where weights make var negative."""
    spread = _positive(Root(n * xx - x * x, n * (n - ddof), 2, 2))
    return spread if spread.numerator >= 0 else None


def _positive(value: Root) -> Root:
    """The same fraction with a positive denominator: weights may have a negative sum."""
    if value.denominator > 0:
        return value
    return replace(value, numerator=-value.numerator, denominator=-value.denominator)


def root_mean_square(n: int, ddof: int, xx: int) -> Value:
    """√ (Σ x² / n)"""
    square = _positive(Root(xx, n, 2, 2))
    return square if square.numerator >= 0 else None


def standard_error(n: int, ddof: int, x: int, xx: int) -> Value:
    """√ (var / n)"""
    return Root(n * xx - x * x, n * n * (n - ddof), 2, 2)


def cube_root(n: int, ddof: int, xxx: int) -> Value:
    """(Σ |x|³) ** (1/3)"""
    return Root(xxx, 1, 3, 3)


def fourth_root(n: int, ddof: int, xxxx: int) -> Value:
    """(Σ x⁴) ** (1/4)"""
    return Root(xxxx, 1, 4, 4)


def third_moment(n: int, ddof: int, x: int, xx: int, xxx: int) -> Value:
    """Σ (x − mean)³ / n"""
    return Root(_third(n, x, xx, xxx), n**3, 3)


def fourth_moment(n: int, ddof: int, x: int, xx: int, xxx: int, xxxx: int) -> Value:
    """Σ (x − mean)⁴ / n"""
    return Root(_fourth(n, x, xx, xxx, xxxx), n**4, 4)


def skewness(n: int, ddof: int, x: int, xx: int, xxx: int) -> Value:
    """m₃ / m₂ ** (3/2), and with ddof 1 that of a sample, times √ (n (n − 1)) / (n − 2)."""
    second, third = n * xx - x * x, _third(n, x, xx, xxx)
    if not second:
        return None
    sample, whole = (n * (n - 1), (n - 2) ** 2) if ddof else (1, 1)
    return Root(sample * third * abs(third), whole * second**3, 0, 2)


def kurtosis(n: int, ddof: int, x: int, xx: int, xxx: int, xxxx: int) -> Value:
    """m₄ / m₂² − 3, and with ddof 1 that of a sample: ((n + 1) kurtosis + 6) (n − 1) / ((n − 2) (n − 3))."""
    square = (n * xx - x * x) ** 2
    if not square:
        return None
    excess = _fourth(n, x, xx, xxx, xxxx) - 3 * square
    if ddof:
        return Root((n - 1) * ((n + 1) * excess + 6 * square), (n - 2) * (n - 3) * square)
    return Root(excess, square)


def covariance(n: int, ddof: int, x: int, y: int, xy: int) -> Value:
    """Σ (x − mean of x) (y − mean of y) / (n − ddof)"""
    return _positive(Root(n * xy - x * y, n * (n - ddof), 2))


def correlation(n: int, ddof: int, x: int, y: int, xx: int, xy: int, yy: int) -> Value:
    """cov / (std of x · std of y)"""
    both, spread = n * xy - x * y, (n * xx - x * x) * (n * yy - y * y)
    return Root(both * abs(both), spread, 0, 2) if spread > 0 else None


def determination(n: int, ddof: int, x: int, y: int, xx: int, xy: int, yy: int) -> Value:
    """The square of the correlation"""
    both, spread = n * xy - x * y, (n * xx - x * x) * (n * yy - y * y)
    return _positive(Root(both * both, spread)) if spread else None


def slope(n: int, ddof: int, x: int, y: int, xx: int, xy: int) -> Value:
    """cov / var of x"""
    spread = n * xx - x * x
    return _positive(Root(n * xy - x * y, spread)) if spread else None


def intercept(n: int, ddof: int, x: int, y: int, xx: int, xy: int) -> Value:
    """mean of y − slope · mean of x"""
    spread = n * xx - x * x
    return _positive(Root(y * xx - x * xy, spread, 1)) if spread else None


def _third(n: int, x: int, xx: int, xxx: int) -> int:
    """n³ · m₃, of which m₃ = Σ (x − mean)³ / n."""
    return n * n * xxx - 3 * n * x * xx + 2 * x**3


def _fourth(n: int, x: int, xx: int, xxx: int, xxxx: int) -> int:
    """n⁴ · m₄, of which m₄ = Σ (x − mean)⁴ / n."""
    return n**3 * xxxx - 4 * n * n * x * xxx + 6 * n * x * x * xx - 3 * x**4
