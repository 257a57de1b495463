"""Exact states of groups from the integers that a GPU leaves of their sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.states import encoded
from warpfold.kernels.cuda.exact import HEAD, flags_of_heads
from warpfold.kernels.cuda.keyed.shapes import APART
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

NOT_NEGATIVE_ZERO = int(Flags.NOT_NEGATIVE_ZERO)

_MASK = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """Sums of groups: Σ limbs[g, k] · 2**(exponent + 32 k), not resolved, and the flags of their terms. In these sums
    terms are missing that no level holds: `elements` (float64), which belong to the groups `places`."""

    exponent: int
    limbs: Index
    flags: Index
    places: Index
    elements: NDArray[np.float64]

    def with_words_above(self, upper: "GroupTotals") -> "GroupTotals":
        """The totals of integers whose terms have a word of 64 bits more, which `upper` has the totals of."""
        limbs = np.zeros((self.limbs.shape[0], upper.limbs.shape[1] + 2), np.int64)
        limbs[:, : self.limbs.shape[1]] += self.limbs
        limbs[:, 2:] += upper.limbs
        return replace(self, limbs=limbs)

    def states(self, terms: Terms, counts: Index) -> StateColumn:
        """The states of groups of `counts` terms, but for the missing ones."""
        from warpfold.kernels.cpu.windows import nearest

        limbs = np.ascontiguousarray(self.limbs)
        nearest.resolve_sums(limbs, np.ones(limbs.shape[0], np.bool_))
        held = counts - np.bincount(self.places, minlength=counts.size)
        return encoded(terms, self.exponent, limbs, self.flags, held)

    def missing(self, terms: Terms) -> tuple[Index, StateColumn]:
        """The states of what is missing, and the groups to which they belong."""
        sums: dict[int, tuple[Fraction, int]] = {}
        for place, element in zip(self.places.tolist(), self.elements.tolist(), strict=True):
            total, count = sums.get(place, (Fraction(0), 0))
            sums[place] = total + Fraction(element), count + 1
        unit = Fraction(2) ** -ORIGIN[terms]
        states = [
            ExactState(terms, int(total * unit), count, Flags.NOT_NEGATIVE_ZERO).to_bytes()
            for total, count in sums.values()
        ]
        return np.array(list(sums), np.int64), StateColumn.of_bytes(states)


def _none() -> tuple[Index, NDArray[np.float64]]:
    return np.zeros(0, np.int64), np.zeros(0)


def limbs_of_levels(halves: Sequence[NDArray[Any]], unit: int) -> tuple[int, Index]:
    """The exponent and the limbs of levels, highest first, each with the sums of its lower halves (uint64) and of its
    upper ones (int64 of the same bits); `unit` is the binary place of the highest level."""
    levels = len(halves) // 2
    limbs = np.zeros((halves[0].size, APART * (levels - 1) // 32 + 5), np.int64)
    for level in range(levels):
        low, high = halves[2 * level], halves[2 * level + 1].view(np.int64)
        skipped, places = divmod(APART * (levels - 1 - level), 32)
        digits = (
            (low & np.uint64(_MASK)).astype(np.int64),
            (low >> np.uint64(32)).astype(np.int64) + (high & _MASK),
            high >> 32,
        )
        for k, digit in enumerate(digits):
            limbs[:, skipped + k] += digit << places
    return unit - APART * (levels - 1), limbs


def totals_of_integers(low: NDArray[Any], high: NDArray[Any]) -> GroupTotals:
    """The totals of integers of 128 bits, which come as their lower words (uint64) and their upper words (int64)."""
    small = np.uint64(_MASK)
    digits = ((low & small).astype(np.int64), (low >> np.uint64(32)).astype(np.int64), high & _MASK, high >> 32)
    return GroupTotals(0, np.stack(digits, axis=1), np.full(low.size, NOT_NEGATIVE_ZERO), *_none())


def totals_of_limbs(limbs: Index, *, omit_nan: bool) -> GroupTotals:
    """The totals of groups from the limbs that a GPU made, of shape (groups, limbs)."""
    flags = flags_of_heads(limbs[:, :HEAD], signed=True, omit_nan=omit_nan)
    return GroupTotals(ORIGIN[Terms.VALUES], limbs[:, HEAD:], flags, *_none())
