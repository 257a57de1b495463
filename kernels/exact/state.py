"""The exact accumulator: what a sum is before it is rounded.

A state is the true sum of its finite terms as one integer, with a count and the flags that IEEE 754 needs for the rest.
Adding states is adding integers: associative and commutative, so any order, chunking, device or shard gives the same
state and, rounded once, the same bits (Demmel and Nguyen 2013; Collange, Defour, Graillat and Iakymchuk 2015;
Neal 2015 describe such superaccumulators). `docs/exact-state.md` has its bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Terms

DIGIT_BITS = 32
DIGIT_MASK = (1 << DIGIT_BITS) - 1
MAX_COUNT = (1 << 64) - 1


class Flags(IntFlag):
    """What the finite sum does not say about the terms."""

    NONE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 4
    NOT_NEGATIVE_ZERO = 8  # some term was not −0


ORIGIN: Mapping[Terms, int] = MappingProxyType({Terms.VALUES: -1074, Terms.PRODUCTS: -2148})
"""Exponent of the unit: every finite float64 is a multiple of 2**−1074, every product of two a multiple of 2**−2148."""

_LARGEST_VALUE = ((1 << 53) - 1) << (971 + 1074)
LARGEST: Mapping[Terms, int] = MappingProxyType({Terms.VALUES: _LARGEST_VALUE, Terms.PRODUCTS: _LARGEST_VALUE**2})
"""Units of the largest finite term; integers of 64 bits and their products are far smaller."""


class StateError(InvalidInput):
    """Bytes or numbers that are no exact state; `part` names what is wrong: magic, version, length, terms, limbs, …"""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(f"{part}: {message}", "state")
        self.part = part


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
            raise StateError("limbs", f"no {self.count} finite terms have so large a sum")
        if self.flags & ~Flags(15) or (self.flags and not self.count):
            raise StateError("flags", f"{int(self.flags)} cannot be of {self.count} terms")
        if not self.flags & Flags.NOT_NEGATIVE_ZERO and (self.units or self.flags):
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
        """The state of the negated terms. Zeros lose their sign: a state does not hold whether all were +0."""
        swapped = Flags.NONE
        if self.flags & Flags.POS_INF:
            swapped |= Flags.NEG_INF
        if self.flags & Flags.NEG_INF:
            swapped |= Flags.POS_INF
        kept = self.flags & Flags.NAN
        whole = Flags.NOT_NEGATIVE_ZERO if self.count else Flags.NONE
        return ExactState(self.terms, -self.units, self.count, swapped | kept | whole)

    def add(self, array: NDArray[Any], *, magnitudes: bool = False) -> "ExactState":
        """With the elements of `array` (any shape and dtype of `kernels.dtypes`) added: their values, or with
        `magnitudes` their absolute values, to a state of values; their squares to one of products.

        NumPy alone; the definition that the compiled accumulators are tested against.
        """
        from warpfold.kernels.exact import portable

        if self.terms is Terms.PRODUCTS:
            return self.merge(portable.products(array, array))
        return self.merge(portable.values(array, magnitudes=magnitudes))

    def add_products(self, left: NDArray[Any], right: NDArray[Any]) -> "ExactState":
        """With the products left[i] · right[i] added to a state of products. Both arrays have one shape;
        their dtypes may differ if both are floats or neither is."""
        from warpfold.kernels.exact import portable

        return self.merge(portable.products(left, right))

    def round_to(self, dtype: DType) -> float:
        """The sum rounded once to a float dtype, to nearest, ties to even, specials as IEEE 754 (`kernels.exact.finish`
        has the other values of a state)."""
        from warpfold.kernels.exact import finish

        return finish.total(self, dtype)

    def to_bytes(self) -> bytes:
        """The canonical bytes, version 1 (`kernels.exact.encoding`)."""
        from warpfold.kernels.exact import encoding

        return encoding.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "ExactState":
        """The state of canonical bytes; StateError naming the part that is wrong."""
        from warpfold.kernels.exact import encoding

        return encoding.decode(data)


def digits_needed(units: int) -> int:
    """How many two's-complement digits hold `units`; 0 for zero."""
    if units == 0:
        return 0
    # A negative number needs the bits of its complement and, like a positive one, a sign bit.
    return (units if units > 0 else ~units).bit_length() // DIGIT_BITS + 1
