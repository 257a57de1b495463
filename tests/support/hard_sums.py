"""Columns whose sums are hard to round, and their right values, computed with rationals."""

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
    return nearest(exact)


def true_mean(column: Column) -> float | None:
    """The mean, rounded once; None of no elements."""
    count = len(present(column))
    return true_sum(column, count) if count else None


def true_dot(column: Column, other: Column) -> float | None:
    """Σ x y of the rows where neither is null, rounded once; None where there are none."""
    pairs = [(x, y) for x, y in zip(column, other, strict=True) if x is not None and y is not None]
    if not pairs:
        return None
    if not all(math.isfinite(x) and math.isfinite(y) for x, y in pairs):
        return _special(x * y for x, y in pairs if not (math.isfinite(x) and math.isfinite(y)))
    exact = sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))
    if exact:
        return nearest(exact)
    negative = all(0 in (x, y) and math.copysign(1, x) != math.copysign(1, y) for x, y in pairs)
    return -0.0 if negative else 0.0


def nearest(exact: Fraction) -> float:
    """A rational other than 0 as the nearest float."""
    sign = 1.0 if exact > 0 else -1.0
    try:
        return float(abs(exact)) * sign
    except OverflowError:
        return math.inf * sign


def true_spread(column: Column, ddof: int, *, root: bool = False) -> float | None:
    """The variance, or its root, rounded once; None of no more than `ddof` elements."""
    elements = present(column)
    if len(elements) <= ddof:
        return None
    if not all(map(math.isfinite, elements)):
        return math.nan
    exact = [Fraction(element) for element in elements]
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((element - mean) ** 2 for element in exact), Fraction(0)) / (len(exact) - ddof)
    if not variance:
        return 0.0
    return true_root(variance) if root else nearest(variance)


def true_norm2(column: Column) -> float | None:
    """√ Σ x², rounded once; None of no elements."""
    elements = present(column)
    if not elements or not all(map(math.isfinite, elements)):
        return true_dot(column, column)
    exact = sum((Fraction(element) ** 2 for element in elements), Fraction(0))
    return true_root(exact) if exact else 0.0


def true_root(exact: Fraction) -> float:
    """The root of a positive rational as the nearest float."""
    scale = 2300  # so that the integer root has far more bits than a float
    root = math.isqrt((exact.numerator << (2 * scale)) // exact.denominator)
    return nearest(Fraction(2 * root + (root * root * exact.denominator != exact.numerator << (2 * scale)), 2 << scale))


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


def pairs_by_key(keys: list[int], elements: Column, others: Column) -> list[tuple[Column, Column]]:
    """For each key from 0 on, the elements and the others of its rows."""
    made: list[tuple[Column, Column]] = [([], []) for _ in range(max(keys) + 1)]
    for key, element, other in zip(keys, elements, others, strict=True):
        made[key][0].append(element)
        made[key][1].append(other)
    return made


def true_moments(column: Column, other: Column) -> list[float | None]:
    """Variances with ddof 0 and 1 and their roots, both norms, the sum of squares, and the dot product with `other`."""
    return [
        *(true_spread(column, ddof, root=root) for root in (False, True) for ddof in (0, 1)),
        true_sum([None if x is None else abs(x) for x in column]) if present(column) else None,
        true_norm2(column),
        true_dot(column, column),
        true_dot(column, other),
    ]
