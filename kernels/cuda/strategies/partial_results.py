"""Partial results: the kernels leave a row of 64-bit words for each piece of the array, which become the value of an
op.

`include/outcome.cuh` writes the words. This module adds up the pieces and finishes the value exactly, so that a result
is rounded once more than its accumulator was, whatever the number of pieces.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.exact.rounding import round_ratio, round_sqrt
from warpfold.kernels.ops import Finish, Op, Value

WORDS = 4
NOWHERE = (1 << 64) - 1
"""The index where no element was better than the worst key."""

_FAR = 10_000
"""A binary exponent above that of any finite result."""


@dataclass(frozen=True, slots=True)
class PartialResult:
    """The partial result of one piece: the words that the kernels left, and the index of its first element."""

    words: NDArray[np.uint64]
    first: int

    def real(self, word: int = 0) -> float:
        return float(self.words.view(np.float64)[word])

    def integer(self) -> int:
        return int.from_bytes(self.words.tobytes(), "little", signed=True)

    def signed(self, word: int) -> int:
        return int(self.words.view(np.int64)[word])

    def unsigned(self, word: int) -> int:
        return int(self.words[word])


_COUNTS_OF_BOOL = frozenset(("Sum", "Prod", "Min", "Max", "SumSquares", "Norm1", "NormInf"))
"""Reductions that a count replaces for truth values: the magnitude and the square of one are itself; the product and
the minimum are true where no element is false."""


def reduction_of(op: Op, dtype: DType) -> str:
    """The name of the C++ template that computes `op` of `dtype`: several ops share one and differ at the end."""
    assert op.reduction is not None, f"{op.name} has no reduction in include/reductions.cuh"
    return "CountNonzero" if dtype.kind is Kind.BOOL and op.reduction in _COUNTS_OF_BOOL else op.reduction


def value_of(op: Op, dtype: DType, partials: Sequence[PartialResult], count: int) -> Value:
    """The value of `op` over `count` ≥ 1 elements of `dtype`, whose partial results, at least one, are `partials`."""
    value: Value
    match reduction_of(op, dtype):
        case "CountNonzero":
            value = of_count(op, sum(partial.integer() for partial in partials), count)
        case "ArgMin" | "ArgMax":
            value = _place(partials)
        case "Min":
            value = _extremum(partials, dtype, min)
        case "Max" | "NormInf":
            value = _extremum(partials, dtype, max)
        case "Prod":
            value = _product(partials, dtype)
        case _ if dtype.is_float and op.adds:
            value = _of_real(op, [partial.real(word) for partial in partials for word in (0, 1)], count, dtype)
        case _:
            value = of_integer(op, sum(partial.integer() for partial in partials), count)
    return bool(value) if op.result_dtype(dtype) == "bool" else value


def of_integer(op: Op, total: int, count: int) -> Value:
    """Sum, mean, norm1, sum of squares or norm2 of integers, correctly rounded, from the exact total of its terms."""
    if op.finish is Finish.MEAN:
        return round_ratio(total, count, 0, DTYPES["float64"])
    if op.finish is Finish.ROOT:
        return round_sqrt(total, 1, 0, DTYPES["float64"])
    return total


def of_count(op: Op, nonzero: int, count: int) -> Value:
    """The value of an op over `count` ≥ 1 elements of which so many are not zero; of truth values as an integer."""
    match op.name:
        case "any" | "max" | "norm_inf":
            return int(nonzero > 0)
        case "all" | "min" | "prod":
            return int(nonzero == count)
    return of_integer(op, nonzero, count)


def _place(partials: Sequence[PartialResult]) -> int:
    def order(partial: PartialResult) -> tuple[int, int]:
        index, key = partial.unsigned(0), partial.unsigned(1)
        # No integer of the piece was better than the worst key, so all are equal to it, and the first one counts. A NaN
        # that was left out has the worst key, too. But then any other element wins, and there is another one.
        return key, partial.first if index == NOWHERE else index

    return min(map(order, partials))[1]


def _extremum(partials: Sequence[PartialResult], dtype: DType, best: Callable[..., Any]) -> Value:
    if not dtype.is_float:
        return int(best(partial.integer() for partial in partials))
    values = [partial.real() for partial in partials]
    if any(map(math.isnan, values)):
        return math.nan
    return float(best(values, key=lambda value: (value, math.copysign(1.0, value))))  # −0 is below +0


def _product(partials: Sequence[PartialResult], dtype: DType) -> float:
    """Π significand · 2**exponent, rounded once."""
    significands = [partial.real() for partial in partials]
    special = math.prod(math.copysign(1.0, s) if math.isfinite(s) and s else s for s in significands)
    if not special or not math.isfinite(special):
        return special  # zero, infinite or NaN, with its sign
    whole = math.prod(map(Fraction, significands))
    exponent = sum(partial.signed(1) for partial in partials)
    bound = _FAR + len(partials)  # the significands are below 2 each
    exponent = max(-bound, min(bound, exponent))
    if abs(exponent) == bound:
        return math.copysign(0.0 if exponent < 0 else math.inf, special)
    return round_ratio(whole.numerator, whole.denominator, exponent, dtype) or math.copysign(0.0, special)


def _of_real(op: Op, parts: Sequence[float], count: int, dtype: DType) -> float:
    """Sum, mean, norm1, sum of squares or norm2 from totals and corrections."""
    if not all(map(math.isfinite, parts)):
        special = sum(part for part in parts if not math.isfinite(part))
        return math.sqrt(special) if op.finish is Finish.ROOT and not math.isnan(special) else special
    total = sum(map(Fraction, parts))
    if not total:
        # The totals are every other word. They are −0 only if all elements are −0.
        return (
            -0.0 if all(math.copysign(1.0, part) < 0 for part in parts[::2]) and op.finish is not Finish.ROOT else 0.0
        )
    if op.finish is Finish.ROOT:
        return round_sqrt(total.numerator, total.denominator, 0, dtype)
    divisor = count if op.finish is Finish.MEAN else 1
    rounded = round_ratio(total.numerator, total.denominator * divisor, 0, dtype)
    return rounded or math.copysign(0.0, total)
