"""Means of integers exactly. Integers are decimals of the scale 0 there: their sum is reduced, and the mean is made of
it as a fraction, beside which it is rounded to float64."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.lowering.decimals import Decimals, to_digits
from warpfold.kernels.ops import Finish, Op, Terms
from warpfold.kernels.ops.parameters import NO_DIGITS
from warpfold.kernels.parts.keyed import GroupColumn

INTEGERS = Decimals(0)

_EXACT = 2**53
"""float64 has all integers up to this one, so that it rounds a quotient of two of them once."""


def has_fraction(op: Op, dtype: DType) -> bool:
    """Whether values of `op` of elements of `dtype`, without weights, are means of integers."""
    return op.finish is Finish.MEAN and op.terms is Terms.VALUES and not dtype.is_float


def means_of_column(column: GroupColumn) -> tuple[Fraction | None, ...]:
    """The means of integers whose sums have the exact states of a column; None where a value is missing."""
    counted = zip(column.states[0].states(), column.counts.tolist(), column.missing.tolist(), strict=True)
    return tuple(
        None if gone or not count else Fraction(state.units >> -ORIGIN[state.terms], count)
        for state, count, gone in counted
    )


def in_digits(means: Sequence[Fraction | None] | None, digits: int | None) -> tuple[str | None, ...] | None:
    """The means to so many significant digits, where these are wanted. Raises InvalidInput naming "digits" where there
    are no means."""
    if digits is None:
        return None
    if means is None:
        raise InvalidInput(NO_DIGITS, "digits")
    return tuple(None if each is None else to_digits(each, digits) for each in means)


def quotients(sums: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each sum of integers by its count, rounded once; 0 of no elements."""
    some = np.maximum(counts, 1)
    if sums.dtype != object and ((sums <= _EXACT) & (sums >= -_EXACT)).all():
        return sums.astype(np.float64) / some
    # Python rounds a quotient of integers once.
    return np.array([total / count for total, count in zip(sums.tolist(), some.tolist(), strict=True)], np.float64)
