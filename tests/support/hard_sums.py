"""Columns whose sums are hard to round, and what they come to by rationals."""

import math
import random
from collections.abc import Iterable
from fractions import Fraction

Column = list[float | None]

COLUMNS: dict[str, Column] = {
    "cancelling": [1e16, 1.0, -1e16, 0.5, 1e-30, -0.5],
    "beyond and back": [1.7e308, 1.7e308, -1.7e308, -1.7e308, 3.0],
    "overflow": [1.7e308, 1.7e308, -1.0],
    "negative overflow": [-1.7e308, -1.7e308],
    "largest": [1.7976931348623157e308],
    "half above the largest": [1.7976931348623157e308, 9.979201547673599e291, -5e-324],
    "subnormal": [5e-324, 5e-324, -1e-323, 2.5e-320, 5e-324],
    "all exponents": [math.ldexp(1.0, exponent) * (-1) ** exponent for exponent in range(-1074, 1024, 7)],
    "a tie": [1.0, 2.0**-53],
    "above a tie": [1.0, 2.0**-53, 2.0**-1074],
    "below a tie": [1.0, 2.0**-53, -(2.0**-1074)],
    "around 2^-40 and 2^32": [
        sign * math.nextafter(edge, to)
        for sign in (1, -0.75)
        for edge in (2.0**-40, 2.0**32 - 1)
        for to in (0.0, edge, math.inf)
    ],
    "nulls": [None, 0.1, None, 0.2, 0.3],
    "only nulls": [None, None],
    "no rows": [],
    "negative zeros": [-0.0, -0.0],
    "both zeros": [-0.0, 0.0],
    "to zero": [1.5, -1.5, -0.0],
    "a NaN": [1.0, math.nan, math.inf],
    "an infinity": [1.0, math.inf, 1.7e308, 1.7e308],
    "a negative infinity": [-math.inf, 5.0],
    "both infinities": [math.inf, -math.inf],
}


def random_columns(seed: int, count: int, most: int = 40) -> list[Column]:
    """Columns of floats of any bits that are finite, every ninth a null."""
    rng = random.Random(seed)

    def element() -> float | None:
        kind = rng.random()
        if kind < 0.11:
            return None
        if kind < 0.5:
            return rng.gauss(0, 1)
        return math.ldexp(rng.uniform(-1, 1), rng.randint(-1073, 1023))

    return [[element() for _ in range(rng.randrange(most))] for _ in range(count)]


def present(column: Column) -> list[float]:
    """The elements that are no nulls."""
    return [element for element in column if element is not None]


def true_sum(column: Column, divisor: int = 1) -> float:
    """The sum ÷ `divisor`, rounded once; of no elements 0."""
    elements = present(column)
    special = _special(elements)
    if special is not None:
        return special
    exact = sum((Fraction(element) for element in elements), Fraction(0)) / divisor
    if not exact:
        return -0.0 if elements and all(math.copysign(1, element) < 0 for element in elements) else 0.0
    sign = 1.0 if exact > 0 else -1.0
    try:
        return float(abs(exact)) * sign
    except OverflowError:
        return math.inf * sign


def true_mean(column: Column) -> float | None:
    """The mean, rounded once; None of no elements."""
    count = len(present(column))
    return true_sum(column, count) if count else None


def _special(elements: Iterable[float]) -> float | None:
    specials = [element for element in elements if not math.isfinite(element)]
    if not specials:
        return None
    return specials[0] if all(element == specials[0] for element in specials) else math.nan


def same(value: float | None, expected: float | None) -> bool:
    """Whether two values have the same bits, or are both NaN or both None."""
    if value is None or expected is None:
        return value is expected
    if math.isnan(value) or math.isnan(expected):
        return math.isnan(value) and math.isnan(expected)
    return value == expected and math.copysign(1, value) == math.copysign(1, expected)


def by_rows(columns: list[Column], seed: int = 1) -> tuple[list[int], Column]:
    """A key and an element for each element of the columns, shuffled: the key is the column's number."""
    rows = [(number, element) for number, column in enumerate(columns) for element in column]
    random.Random(seed).shuffle(rows)
    return [number for number, _ in rows], [element for _, element in rows]
