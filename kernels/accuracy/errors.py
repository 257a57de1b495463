"""Errors: how far a computed value is from the true value."""

import math
from fractions import Fraction

from warpfold.kernels.accuracy.exactly import to_float


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
