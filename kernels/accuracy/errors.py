"""Errors: how far a computed value is from the true value.

The smallest sums that have any are those of three numbers: floating point is not associative, so the order matters.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from warpfold.kernels.accuracy.exactly import to_float
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import round_ratio


def distance(value: float, exact: Fraction) -> Fraction | None:
    """|value − exact|; None where `value` is not finite."""
    return abs(Fraction(value) - exact) if math.isfinite(value) else None


def written(error: Fraction | None, value: float) -> float:
    """An error of `value` as a float: infinite where the value is, NaN where it is NaN."""
    return abs(value) if error is None else to_float(error)


def relative(error: Fraction | None, exact: Fraction, value: float) -> float:
    """error ÷ |exact|: 0 for no error at all, infinite for any error of a true value of 0."""
    if not error:
        return written(error, value)
    return to_float(error / abs(exact)) if exact else math.inf


@dataclass(frozen=True, slots=True)
class Order:
    """A sum in one order: `inner` is the sum in brackets, `value` the whole. Errors are against the true sum, computed
    in fractions. The relative error is infinite where the true sum is 0 and the value is not."""

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
