"""The exact accumulator: a sum before it is rounded.

A state holds the true sum of its finite terms as one integer, with a count and the flags that IEEE 754 needs for the
other terms.
Adding states is adding integers: associative and commutative, so any order, chunking, device or shard gives the same
state and, rounded once, the same bits (Demmel and Nguyen 2013; Collange, Defour, Graillat and Iakymchuk 2015;
Neal 2015 describe such superaccumulators). `docs/exact-state.md` has its bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import encoding, portable
from warpfold.kernels.exact.encoding import (
    DIGIT_BITS,
    DIGIT_MASK,
    LARGEST,
    MAX_COUNT,
    ORIGIN,
    Fields,
    Flags,
    StateError,
    digits_needed,
)
from warpfold.kernels.exact.rounding import round_ratio
from warpfold.kernels.ops import Terms

_NOT_NEGATIVE_ZERO = int(Flags.NOT_NEGATIVE_ZERO)
_ALL_FINITE = (0, _NOT_NEGATIVE_ZERO)
"""What the flags of finite terms may be."""


@dataclass(frozen=True, slots=True)
class ExactState:
    """The sum of `count` terms: `units` · 2**ORIGIN[terms] over the finite ones, `flags` over all of them.

    Equal states compare equal and have equal bytes. Raises StateError where no terms can have such a sum.
    """

    terms: Terms
    units: int
    count: int
    flags: Flags

    def __post_init__(self) -> None:
        if self.terms not in ORIGIN:
            raise StateError("terms", f"an exact state holds values or products, not {self.terms}")
        if not 0 <= self.count <= MAX_COUNT:
            raise StateError("count", f"{self.count} is not in 0 … 2**64 − 1")
        if abs(self.units) > self.count * LARGEST[self.terms]:
            raise StateError("limbs", f"{self.count} finite terms cannot have so large a sum")
        flags = int(self.flags)  # as integers, because an operation on enum flags takes a microsecond
        if flags & ~15 or (flags and not self.count):
            raise StateError("flags", f"{self.count} terms cannot have {flags}")
        if not flags & _NOT_NEGATIVE_ZERO and (self.units or flags):
            raise StateError("flags", "terms that are all −0 have no other sum and no other flag")

    @classmethod
    def empty(cls, terms: Terms) -> "ExactState":
        """The sum of nothing."""
        return cls(terms, 0, 0, Flags.NONE)

    @classmethod
    def of(cls, array: NDArray[Any], terms: Terms = Terms.VALUES, *, magnitudes: bool = False) -> "ExactState":
        """The state of the elements of `array` (as for `add`): of their values, or with `terms` PRODUCTS of their
        squares. NumPy alone: no GPU, no compiler, no server."""
        return cls.empty(terms).add(array, magnitudes=magnitudes)

    @classmethod
    def of_products(cls, left: NDArray[Any], right: NDArray[Any]) -> "ExactState":
        """The state of the products left[i] · right[i] (as for `add_products`). NumPy alone."""
        return cls.empty(Terms.PRODUCTS).add_products(left, right)

    @classmethod
    def from_limbs(
        cls, terms: Terms, limbs: Sequence[int], exponent: int, count: int, flags: Flags = Flags.NONE
    ) -> "ExactState":
        """The state whose finite sum is Σ limbs[i] · 2**(exponent + 32 i).

        The limbs may be any integers, such as int64 digits before their carries are resolved. `exponent` may lie below
        the unit's only if the sum is still a whole number of units; StateError otherwise. A sum other than zero sets
        NOT_NEGATIVE_ZERO by itself.
        """
        units = 0
        for limb in reversed(limbs):
            units = (units << DIGIT_BITS) + int(limb)
        shift = exponent - ORIGIN[terms]
        if shift >= 0:
            units <<= shift
        elif units & ((1 << -shift) - 1):
            raise StateError("limbs", f"the sum is no multiple of 2**{ORIGIN[terms]}")
        else:
            units >>= -shift
        return cls(terms, units, count, Flags(flags) | (Flags.NOT_NEGATIVE_ZERO if units else Flags.NONE))

    @property
    def limbs(self) -> tuple[int, ...]:
        """The sum as two's-complement digits of 32 bits, the unit's first, as few as hold it; () for zero."""
        count = digits_needed(self.units)
        return tuple((self.units >> (DIGIT_BITS * index)) & DIGIT_MASK for index in range(count))

    def merge(self, other: "ExactState") -> "ExactState":
        """The state of both sets of terms together; StateError if one holds values and the other products."""
        if self.terms is not other.terms:
            raise StateError("terms", f"a state of {other.terms} cannot be merged with one of {self.terms}")
        return ExactState(self.terms, self.units + other.units, self.count + other.count, self.flags | other.flags)

    def negate(self) -> "ExactState":
        """The state of the negated terms. Zeros lose their sign, because a state does not record whether all of them
        were +0."""
        swapped = Flags.NONE
        if self.flags & Flags.POS_INF:
            swapped |= Flags.NEG_INF
        if self.flags & Flags.NEG_INF:
            swapped |= Flags.POS_INF
        kept = self.flags & Flags.NAN
        whole = Flags.NOT_NEGATIVE_ZERO if self.count else Flags.NONE
        return ExactState(self.terms, -self.units, self.count, swapped | kept | whole)

    def add(self, array: NDArray[Any], *, magnitudes: bool = False) -> "ExactState":
        """This state with the elements of `array` added, which has any shape and a dtype of `kernels.dtypes`.

        A state of values takes the elements, or with `magnitudes` their absolute values; a state of products takes
        their squares.

        NumPy alone; the definition that the compiled accumulators are tested against.
        """
        if self.terms is Terms.PRODUCTS:
            return self.add_products(array, array)
        return self.merge(_checked(portable.values(array, magnitudes=magnitudes)))

    def add_products(self, left: NDArray[Any], right: NDArray[Any]) -> "ExactState":
        """This state of products with the products left[i] · right[i] added. Both arrays have one shape. Their dtypes
        may differ if both are floats, or neither is."""
        return self.merge(_checked(portable.products(left, right)))

    def special(self) -> float | None:
        """The sum where a term was not finite, as IEEE 754 has it: NaN if one is NaN or there are infinities of both
        signs, else the infinity. None where all terms are finite."""
        if int(self.flags) in _ALL_FINITE:  # as integers, as above
            return None
        if self.flags & Flags.NAN or (self.flags & Flags.POS_INF and self.flags & Flags.NEG_INF):
            return math.nan
        return math.inf if self.flags & Flags.POS_INF else -math.inf

    def round_to(self, dtype: DType, divisor: int = 1) -> float:
        """The sum ÷ `divisor` ≥ 1 rounded once to a float dtype, to nearest, ties to even. An exact zero is −0 only
        where there are terms and every one is −0. `kernels.exact.finish` has the other values of a state."""
        special = self.special()
        if special is not None:
            return special
        if not self.units:
            return -0.0 if self.count and not self.flags & Flags.NOT_NEGATIVE_ZERO else 0.0
        return round_ratio(self.units, divisor, ORIGIN[self.terms], dtype)

    def to_bytes(self) -> bytes:
        """The canonical bytes of the state, version 1 (`kernels.exact.encoding`)."""
        return encoding.encode(Fields(self.terms, self.units, self.count, self.flags))

    @classmethod
    def from_bytes(cls, data: bytes) -> "ExactState":
        """The state of canonical bytes. Raises StateError naming the part that is wrong, so that a damaged state never
        becomes a wrong sum."""
        state = _checked(encoding.decode(data))
        if state.to_bytes() != data:
            raise StateError("limbs", "the digits are not trimmed: a low zero digit or a redundant sign digit")
        return state


def _checked(fields: Fields) -> ExactState:
    """The state with these fields. Raises StateError where they do not fit each other."""
    return ExactState(fields.terms, fields.units, fields.count, fields.flags)
