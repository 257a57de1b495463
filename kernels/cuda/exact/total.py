"""What `../include/exact_total.cuh` leaves in the GPU's memory, as exact states."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.exact.shapes import Kind
from kernels.exact.state import ORIGIN, ExactState, Flags
from kernels.ops import Terms

_NANS, _FLAGS, _DIGITS = 0, 1, 2

WORDS: Mapping[Terms, int] = MappingProxyType({Terms.VALUES: _DIGITS + 72, Terms.PRODUCTS: _DIGITS + 138})
"""64-bit words of a total. That of moments is one of values and, behind it, one of products."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A total taken out of the GPU's memory: the sum of the finite terms in units of the state's origin, how many
    elements (or pairs) were or had a NaN, and the flags of the others."""

    units: int = 0
    nans: int = 0
    flags: Flags = Flags.NONE

    @classmethod
    def of_words(cls, words: NDArray[np.uint64]) -> "Fetched":
        """From the words of a total."""
        units = 0
        for digit in reversed(words[_DIGITS:].view(np.int64).tolist()):
            units = (units << 32) + digit
        return cls(units, int(words[_NANS]), Flags(int(words[_FLAGS])))

    def plus(self, other: "Fetched") -> "Fetched":
        return Fetched(self.units + other.units, self.nans + other.nans, self.flags | other.flags)

    def state(self, kind: Kind, count: int, *, omit_nan: bool) -> ExactState:
        """The state of `count` terms, less those that are NaN if `omit_nan`."""
        flags = self.flags
        if omit_nan:
            count -= self.nans
        elif self.nans:
            flags |= Flags.NAN
        if flags or (count and not kind.signed):  # what has another flag is not −0
            flags |= Flags.NOT_NEGATIVE_ZERO
        return ExactState.from_limbs(kind.terms, (self.units,), ORIGIN[kind.terms], count, flags)


@dataclass(frozen=True, slots=True)
class FetchedMoments:
    """The totals of values and of squares of the same elements. NaNs and flags are with the values."""

    values: Fetched = Fetched()
    squares: Fetched = Fetched()

    @classmethod
    def of_words(cls, words: NDArray[np.uint64]) -> "FetchedMoments":
        """From the words of both totals."""
        behind = WORDS[Terms.VALUES]
        return cls(Fetched.of_words(words[:behind]), Fetched.of_words(words[behind:]))

    def plus(self, other: "FetchedMoments") -> "FetchedMoments":
        return FetchedMoments(self.values.plus(other.values), self.squares.plus(other.squares))

    def states(self, count: int, *, omit_nan: bool) -> tuple[ExactState, ExactState]:
        """The states of values and of squares of `count` elements, less those that are NaN if `omit_nan`."""
        infinite = self.values.flags & (Flags.POS_INF | Flags.NEG_INF)
        squares = Fetched(self.squares.units, self.values.nans, Flags.POS_INF if infinite else Flags.NONE)
        return (
            self.values.state(Kind.VALUES, count, omit_nan=omit_nan),
            squares.state(Kind.SQUARES, count, omit_nan=omit_nan),
        )
