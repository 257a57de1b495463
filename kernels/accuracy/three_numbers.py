"""Three numbers added in every order, brackets around the first two or the last two: the smallest sums that show that
floating point is not associative."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from warpfold.kernels.accuracy.errors import distance, relative, written
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import round_ratio


@dataclass(frozen=True, slots=True)
class Order:
    """One way to add: `inner` is what the brackets gave, `value` the whole. Errors are against the true sum, computed
    in fractions; the relative one is infinite where that is 0 and the value is not."""

    expression: str
    inner: float
    value: float
    absolute_error: float
    relative_error: float


@dataclass(frozen=True, slots=True)
class ThreeNumbers:
    """All orders, the true sum, and the true sum rounded once to the dtype."""

    exact: Fraction
    rounded: float
    orders: tuple[Order, ...]


def add_three(a: Any, b: Any, c: Any, dtype: DType) -> ThreeNumbers:
    """(p + q) + r and p + (q + r) for all six orders p, q, r of three finite NumPy scalars of `dtype`, every addition
    rounded to it."""
    named = {"a": a, "b": b, "c": c}
    exact = sum((Fraction(float(number)) for number in named.values()), Fraction(0))
    orders = []
    with np.errstate(all="ignore"):
        for p, q, r in permutations(named):
            first, second, third = (named[name] for name in (p, q, r))
            left, right = first + second, second + third
            orders.append(_order(f"({p} + {q}) + {r}", left, left + third, exact))
            orders.append(_order(f"{p} + ({q} + {r})", right, first + right, exact))
    return ThreeNumbers(exact, round_ratio(exact.numerator, exact.denominator, 0, dtype), tuple(orders))


def _order(expression: str, inner: Any, value: Any, exact: Fraction) -> Order:
    whole = float(value)
    error = distance(whole, exact)
    return Order(expression, float(inner), whole, written(error, whole), relative(error, exact, whole))
