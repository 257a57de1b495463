"""The fields of an exact state (its unit, digits and flags, and how large they may be) and their bytes, version 1.

`docs/exact-state.md` has the table of the bytes; equal states have equal bytes.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType

from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.ops import Terms

DIGIT_BITS = 32
DIGIT_MASK = (1 << DIGIT_BITS) - 1
MAX_COUNT = (1 << 64) - 1

MAGIC = b"WFXS"
VERSION = 1
HEADER = struct.Struct("<4sBBBBQHHI")
_DIGIT_BYTES = DIGIT_BITS // 8

FACTORS: Mapping[Terms, int] = MappingProxyType(
    {Terms.VALUES: 1, Terms.PRODUCTS: 2, Terms.TRIPLES: 3, Terms.QUADRUPLES: 4}
)
"""How many elements each of the terms multiplies."""

CODES: Mapping[Terms, int] = MappingProxyType({terms: factors - 1 for terms, factors in FACTORS.items()})
TERMS: Mapping[int, Terms] = MappingProxyType({code: terms for terms, code in CODES.items()})

MAX_DIGITS: Mapping[Terms, int] = MappingProxyType(
    {terms: -(-(2098 * factors + 64 + 1) // DIGIT_BITS) for terms, factors in FACTORS.items()}
)
"""Digits for 2**64 − 1 of the largest terms and a sign: 2098 + 64 + 1 bits of values, 4196 + 64 + 1 of products."""


class Flags(IntFlag):
    """Facts about the terms that the sum of the finite terms does not record."""

    NONE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 4
    NOT_NEGATIVE_ZERO = 8  # some term was not −0


ORIGIN: Mapping[Terms, int] = MappingProxyType({terms: -1074 * factors for terms, factors in FACTORS.items()})
"""Exponent of the unit: every finite float64 is a multiple of 2**−1074, every product of two a multiple of 2**−2148."""

_LARGEST_VALUE = ((1 << 53) - 1) << (971 + 1074)
LARGEST: Mapping[Terms, int] = MappingProxyType({terms: _LARGEST_VALUE**factors for terms, factors in FACTORS.items()})
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


def encode(state: Fields) -> bytes:
    """The canonical bytes of `state`: a header of 24 bytes, and 4 bytes for each digit."""
    digits = digits_needed(state.units)
    first = ((state.units & -state.units).bit_length() - 1) // DIGIT_BITS if state.units else 0
    stored = digits - first if digits else 0
    header = HEADER.pack(MAGIC, VERSION, CODES[state.terms], int(state.flags), 0, state.count, first, stored, 0)
    body = (state.units >> (first * DIGIT_BITS)).to_bytes(stored * _DIGIT_BYTES, "little", signed=True)
    return header + body


def decode(data: bytes) -> Fields:
    """The fields that `encode` turned into `data`. Raises StateError naming magic, version, length, terms, flags,
    reserved or limbs. `ExactState.from_bytes` checks whether the fields fit each other and whether `data` are their
    canonical bytes.
    """
    if data[:4] != MAGIC:
        raise StateError("magic", f"an exact state begins with {MAGIC!r}")
    if len(data) > 4 and data[4] != VERSION:
        raise StateError("version", f"version {data[4]} is not known; this is version {VERSION}")
    if len(data) < HEADER.size:
        raise StateError("length", f"{len(data)} bytes are fewer than the header's {HEADER.size}")
    _, _, code, flags, reserved, count, first, stored, padding = HEADER.unpack_from(data)
    if code not in TERMS:
        raise StateError("terms", f"code {code} is none of values (0) and products of two, three and four (1, 2, 3)")
    if reserved or padding:
        raise StateError("reserved", "the reserved bytes must be 0")
    if len(data) != HEADER.size + stored * _DIGIT_BYTES:
        raise StateError("length", f"{len(data)} bytes, but {stored} digits make {HEADER.size + stored * _DIGIT_BYTES}")
    terms = TERMS[code]
    if first + stored > MAX_DIGITS[terms]:
        raise StateError("limbs", f"digits {first} … {first + stored - 1} exceed the {MAX_DIGITS[terms]} of {terms}")
    units = int.from_bytes(data[HEADER.size :], "little", signed=True) << (first * DIGIT_BITS)
    return Fields(terms, units, count, _flags(flags))


def _flags(code: int) -> Flags:
    if code > 15:
        raise StateError("flags", f"{code} has bits beyond the four that are defined")
    return Flags(code)
