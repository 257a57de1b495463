"""Arrays that are packed: each element stands for itself · a scale + an offset (CF conventions, section 8.1).

The stored numbers are reduced exactly, and the value follows from their totals: a sum is scale · Σ + n · offset. So
the value is that of the exact elements, rounded once to float64, where other readers round every element first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact import round_ratio, round_sqrt
from warpfold.kernels.lowering.meaning import Meaning, Meant, Total
from warpfold.kernels.ops import SUMS_OF_MOMENTS, Finish, Op, Terms, op_named

_PAIRS = (("min", "max"), ("argmin", "argmax"), ("bottom_k", "top_k"), ("argbottom_k", "argtop_k"))
_FLIPPED = {name: other for low, high in _PAIRS for name, other in ((low, high), (high, low))}


@dataclass(frozen=True, slots=True)
class Packed(Meaning):
    """Each element stands for (itself · `scale` + `offset`) / `unit`."""

    scale: int
    offset: int
    unit: int

    @classmethod
    def of(cls, scale: Fraction, offset: Fraction) -> Self:
        """The meaning of elements of this scale, which is not 0, and this offset."""
        unit = math.lcm(scale.denominator, offset.denominator)
        return cls(int(scale * unit), int(offset * unit), unit)

    @property
    def is_identity(self) -> bool:
        """Whether elements stand for themselves."""
        return self.scale == self.unit and not self.offset

    @property
    def name(self) -> str:
        return "packed numbers"

    @property
    def kind(self) -> str:
        return "packed"

    @property
    def instead(self) -> str:
        return "set stored to reduce the elements as they are stored"

    @property
    def numbers_alone(self) -> bool:
        return True

    def takes(self, op: Op) -> bool:
        if op.sources > 1 or op.name == "prod" or op.terms is Terms.TOTALS:
            return False
        # With an offset, values may be zero or change their sign anywhere among the stored numbers.
        of_signs = op.terms is Terms.VALUES and op.magnitudes
        of_zeros = op.terms is Terms.NONE and op.extreme is None and not op.keeps and op.name != "count"
        if op.fold == "span":
            return False
        return not self.offset or not (of_signs or of_zeros)

    def stored_ops(self, op: Op) -> tuple[Op, ...]:
        if op.selects:
            return op.neighbours(descending=self.scale < 0)
        stored = tuple(replace(op_named(name), parameters=op.parameters, part=op.part) for name in self._stored(op))
        return stored or Meaning.stored_ops(self, op)

    def _stored(self, op: Op) -> tuple[str, ...]:
        if op.extreme is not None and op.magnitudes:
            return ("min", "max")
        if op.extreme is not None:
            return (_FLIPPED[op.name] if self.scale < 0 else op.name,)
        if op.terms is Terms.MOMENTS:
            return SUMS_OF_MOMENTS
        if op.terms is Terms.PRODUCTS:
            return ("sum_squares", "sum") if self.offset else ("sum_squares",)
        return ()

    def meant(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> Meant:
        return Meant(self._value(op, totals, count, ddof), "float64")

    def _value(self, op: Op, totals: Sequence[Total], count: int, ddof: int) -> float:
        special = next((total for total in totals if isinstance(total, float)), None)
        if special is not None:
            return self._special(op, special if op.extreme else totals[0])
        exact = [total for total in totals if not isinstance(total, float)]
        scale, offset, unit = self.scale, self.offset, self.unit
        first, second = exact[0], exact[-1]
        match op.terms:
            case Terms.NONE:
                ends = [Fraction(scale * total + offset) for total in exact]
                return _rounded(max(abs(end) for end in ends) if op.magnitudes else ends[0], unit)
            case Terms.VALUES:
                total = (abs(scale) if op.magnitudes else scale) * first + count * offset
                return _rounded(total, unit * (count if op.finish is Finish.MEAN else 1))
            case Terms.PRODUCTS:
                square, divisor = scale * scale * first + count * offset * offset, unit * unit
                square += 2 * scale * offset * second if offset else 0
            case Terms.MOMENTS:
                square = scale * scale * (count * second - first * first)
                divisor = unit * unit * count * (count - ddof)
        return _rounded(square, divisor, root=op.finish in (Finish.ROOT, Finish.DEVIATION))

    def _special(self, op: Op, total: Total) -> float:
        """The value where a stored float is NaN or infinite. A finite total of squares has sums that cancel."""
        if op.terms is Terms.MOMENTS or not isinstance(total, float) or math.isnan(total):
            return math.nan
        turned = self.scale < 0 and op.terms is not Terms.PRODUCTS and not op.magnitudes
        return math.inf if op.magnitudes else -total if turned else total


def _rounded(true: int | Fraction, divisor: int, *, root: bool = False) -> float:
    above, below = true.as_integer_ratio()
    return (round_sqrt if root else round_ratio)(above, below * divisor, 0, DTYPES["float64"])
