"""Columns of decimals: integers with a scale. Their integers are reduced, and the value is scaled at the end. Integers
are decimals of the scale 0 where a mean of them is wanted to a number of digits.

The sum of 0.10 and 0.20 is 0.30, where floats give 0.30000000000000004: decimals are never rounded on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import partial

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total, is_plain
from warpfold.kernels.ops import Finish, Op, Terms
from warpfold.kernels.ops.parameters import NO_DIGITS
from warpfold.kernels.sources.sequential import Elements, SequentialSource, in_order, shape_of

_PIECE = 1 << 17

MOST_SCALE = 1000
"""The largest scale, and the most zeros before the point: a file may claim 10^9 of them, and a value is written in
full."""


@dataclass(frozen=True, slots=True)
class Decimals(Meaning):
    """Each element stands for itself · 10**−`scale`. Ops that are sums, means, extremes and quantiles of elements, and
    those that choose an element, take decimals, and those that only ask which elements are zero. A mean or a quantile,
    which may have no end, is a fraction, and is shown to so many significant `digits`, to nearest, ties to even."""

    scale: int
    digits: int | None = None

    @property
    def name(self) -> str:
        return "decimals"

    @property
    def kind(self) -> str:
        return "decimal"

    def takes(self, op: Op) -> bool:
        linear = op.terms is Terms.VALUES and op.finish in (Finish.ITSELF, Finish.MEAN)
        return is_plain(op) or linear or op.extreme is not None or op.selects or op.chooses

    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        """The float64 nearest to the true value, and that in full, which a mean or a quantile need not have."""
        mean, units, tens = op.finish is Finish.MEAN, Fraction(totals[0]), 10 ** abs(self.scale)
        over, under = (1, tens) if self.scale > 0 else (tens, 1)
        true = Fraction(units.numerator * over, units.denominator * under * (count if mean else 1))
        value = round_ratio(true.numerator, true.denominator, 0, DTYPES["float64"])
        if not mean and units.denominator == 1:
            return Meant(value, "float64", in_full(units.numerator, self.scale))
        shown = None if self.digits is None else to_digits(true, self.digits)
        return Meant(value, "float64", shown, fraction=true)


def with_digits(source: Elements, digits: int) -> Elements:
    """The decimals, or integers that are taken for decimals, whose mean is shown to so many digits. Raises InvalidInput
    naming "digits" for other elements."""
    if isinstance(source, SequentialSource) and isinstance(source.meaning, Decimals):
        return replace(source, meaning=replace(source.meaning, digits=digits))
    meant = isinstance(source, SequentialSource) and source.meaning is not None
    if meant or source.dtype.is_float:
        raise InvalidInput(NO_DIGITS, "digits")
    shown = Decimals(0, digits)
    if isinstance(source, SequentialSource):
        return replace(source, meaning=shown)
    make = partial(in_order, source, _PIECE)
    return SequentialSource(source.dtype, make, source.count, shape=shape_of(source), meaning=shown)


def to_digits(value: Fraction, digits: int) -> str:
    """The value to so many significant digits, rounded to nearest, ties to even; in full where it has fewer."""
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return format(context.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")


def in_full(units: int, scale: int) -> str:
    """`units` · 10**−`scale`, with `scale` digits behind the point."""
    if scale <= 0:
        return str(units * 10**-scale)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
