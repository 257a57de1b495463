"""Columns of decimals: integers with a scale. Their integers are reduced, and the value is scaled at the end.

The sum of 0.10 and 0.20 is 0.30, where floats give 0.30000000000000004: decimals are never rounded on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import round_ratio
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total, is_plain
from warpfold.kernels.ops import Finish, Op, Terms

MOST_SCALE = 1000
"""The largest scale, and the most zeros before the point: a file may claim 10^9 of them, and a value is written in
full."""


@dataclass(frozen=True, slots=True)
class Decimals(Meaning):
    """Each element stands for itself · 10**−`scale`. Ops that are sums, means, extremes and quantiles of elements, and
    those that choose an element, take decimals, and those that only ask which elements are zero."""

    scale: int

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
        mean, units = op.finish is Finish.MEAN, Fraction(totals[0])
        true = units / (count if mean else 1) / Fraction(10) ** self.scale
        value = round_ratio(true.numerator, true.denominator, 0, DTYPES["float64"])
        whole = not mean and units.denominator == 1
        return Meant(value, "float64", in_full(units.numerator, self.scale) if whole else None)


def in_full(units: int, scale: int) -> str:
    """`units` · 10**−`scale`, with `scale` digits behind the point."""
    if scale <= 0:
        return str(units * 10**-scale)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
