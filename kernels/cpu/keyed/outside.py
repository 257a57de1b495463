"""Exact sums by group of the elements that levels do not hold: NaN, infinities, and numbers that are too large or too
small."""

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import GrowingLimbs, grown
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.exact.encoding import DIGIT_BITS
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

_MOST_ADDED = 1 << 28
_REACH = 7
"""Limbs from the first that a square reaches to the one behind its last, and two for carries."""


class OutsideSums:
    """Limbs for each group that has such finite elements, and the flags of all groups. Row slots[g] of the limbs is
    that of group g; a group whose slot is 0 has none."""

    def __init__(self, terms: Terms) -> None:
        from warpfold.kernels.cpu.windows import keyed

        self._keyed = keyed
        self._squares = terms is Terms.PRODUCTS
        self._origin = ORIGIN[terms]
        self.slots: NDArray[np.int32] = np.zeros(0, np.int32)
        self.flags: Index = np.zeros(0, np.int64)
        self.limbs = GrowingLimbs()
        self._used = self._added = 0

    def add(self, elements: NDArray[np.float64], ids: NDArray[np.int32], count: int) -> None:
        """Add elements, or their squares, to groups `ids`, all below `count`."""
        words = readable(elements, np.dtype(np.int64))
        self.flags, self.slots = grown(self.flags, count), grown(self.slots, count)
        self._used = int(self._keyed.give_slots(words, ids, self.slots, self._used))
        low, high = self._keyed.finite_places(words, self._squares)
        if high >= low:
            first, last = ((place - self._origin) // DIGIT_BITS for place in (low, high))
            self.limbs.hold(self._used + 1, first, last + _REACH)
        self._count(words.size)
        origin = self._origin + DIGIT_BITS * self.limbs.first
        self._keyed.add_wild(words, ids, self._squares, origin, self.slots, self.limbs.limbs, self.flags)

    def _count(self, more: int) -> None:
        """Make room for so many more additions."""
        self._added += more
        if self._added > _MOST_ADDED:
            self._keyed.resolve_all(self.limbs.limbs)
            self._added = more + 1

    def merge(self, other: "OutsideSums", ids: NDArray[np.int32], count: int) -> None:
        """Add the sums of `other`, whose group g is ids[g] here, below `count`."""
        if other.flags.size:
            their_flags = other.flags[: ids.size]
            self.flags = grown(self.flags, count)
            self.flags[ids[: their_flags.size]] |= their_flags
        their_groups = np.flatnonzero(other.slots[: ids.size])
        if not their_groups.size:
            return
        self.slots = grown(self.slots, count)
        groups = ids[their_groups]
        new = groups[self.slots[groups] == 0]
        self.slots[new] = np.arange(self._used + 1, self._used + 1 + new.size, dtype=np.int32)
        self._used += new.size
        theirs = other.limbs
        self.limbs.hold(self._used + 1, theirs.first, theirs.first + theirs.limbs.shape[1])
        self._count(other._added)
        self._keyed.merge_limbs(
            theirs.limbs, other.slots[their_groups], theirs.first - self.limbs.first, self.limbs.limbs,
            self.slots[groups],
        )  # fmt: skip
