"""The numbers that an exact state is made of: its unit, its digits, its flags, and how large they may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Terms

DIGIT_BITS = 32
DIGIT_MASK = (1 << DIGIT_BITS) - 1
MAX_COUNT = (1 << 64) - 1


class Flags(IntFlag):
    """What a sum of the finite terms does not tell about the others."""

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
    """Bytes or numbers do not make an exact state; `part` names what is wrong: magic, version, length, terms, limbs,
    …"""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(f"{part}: {message}", "state")
        self.part = part


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a `state.ExactState`, which checks that they fit each other."""

    terms: Terms
    units: int
    count: int
    flags: Flags


def digits_needed(units: int) -> int:
    """How many two's-complement digits hold `units`; 0 for zero."""
    if units == 0:
        return 0
    # A negative number needs the bits of its complement and, like a positive one, a sign bit.
    return (units if units > 0 else ~units).bit_length() // DIGIT_BITS + 1
