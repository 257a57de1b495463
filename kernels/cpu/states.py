"""Many exact sums on a CPU, as limbs: they are encoded as the bytes of states, and the bytes of any number of columns
are added to them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.growing import GrowingLimbs, grown
from warpfold.kernels.aggregates.portable_sum import PortableSums
from warpfold.kernels.exact import ORIGIN, ExactState, Flags, StateError
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.exact.encoding import CODES, LARGEST
from warpfold.kernels.machine.cores import usable_cores
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

_AT_ONCE = 1 << 12
"""Sums that are finished or written at a time, so that their limbs stay in a cache."""

_MANY = 1 << 16
"""Sums that threads share from so many on."""

_RESOLVED_AFTER = 1 << 29

_Part = TypeVar("_Part")

_CARRIES = 2
"""Digits above all others, for the sum of 2**63 states."""


@dataclass(frozen=True, slots=True)
class ManySums:
    """An exact sum for each of many values: Σ limbs[i, k] · 2**(exponent + 32 k), resolved (int64, shape (values,
    limbs)), and the flags of its terms (shape (values,))."""

    terms: Terms
    exponent: int
    limbs: NDArray[np.int64]
    flags: Index

    def state(self, at: int, count: int) -> ExactState:
        """The state of sum `at`, which has `count` terms. Raises StateError where such terms have no such sum."""
        flags = Flags(int(self.flags[at]))
        return ExactState.from_limbs(self.terms, self.limbs[at].tolist(), self.exponent, count, flags)

    def at(self, some: slice) -> Self:
        """The sums at some neighbouring places."""
        return replace(self, limbs=self.limbs[some], flags=self.flags[some])

    def states(self, counts: Index) -> StateColumn:
        """The states of all sums, of so many terms each. A sum of no terms must be 0."""
        return encoded(self.terms, self.exponent, self.limbs, self.flags, counts)


Sums = ManySums | PortableSums


def encoded(terms: Terms, exponent: int, limbs: NDArray[np.int64], flags: Index, counts: Index) -> StateColumn:
    """The states of sums of `counts` terms: Σ limbs[i, k] · 2**(exponent + 32 k), resolved, with the flags of their
    terms. Where `counts` is 0, the sum must be 0."""
    from warpfold.kernels.cpu.windows import encoding

    room = encoding.HEAD + 4 * (limbs.shape[1] + 3)
    space = np.empty(min(_AT_ONCE, max(counts.size, 1)) * room, np.uint8)
    parts = []
    for some in parts_of(counts.size):
        offsets = np.zeros(counts[some].size + 1, np.int64)
        encoding.encode(
            np.ascontiguousarray(limbs[some]), exponent - ORIGIN[terms], np.ascontiguousarray(counts[some]),
            np.ascontiguousarray(flags[some]), CODES[terms], space, offsets,
        )  # fmt: skip
        parts.append(StateColumn(space[: offsets[-1]].copy(), offsets))
    return StateColumn.beside(parts)


def parts_of(count: int) -> Iterator[slice]:
    """The places of so many sums, so many at a time that their limbs stay in a cache; at least one part, which may be
    empty."""
    for start in range(0, max(count, 1), _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, count))


def by_parts(make: Callable[[slice], _Part], count: int) -> list[_Part]:
    """What `make` makes of the sums at each of the `parts_of` so many, on all cores where there are many."""
    if count < _MANY:
        return [make(some) for some in parts_of(count)]
    with ThreadPoolExecutor(usable_cores(), "finish") as pool:
        return list(pool.map(make, parts_of(count)))


def states_by_parts(sums: Callable[[slice], Sums], counts: Index) -> StateColumn:
    """The states of sums of so many terms each, where `sums` gives those at some neighbouring places."""
    return StateColumn.beside(by_parts(lambda some: sums(some).states(counts[some]), counts.size))


@dataclass
class MergedStates:
    """Sums of the states of any number of columns, one for each of a growing number of groups."""

    terms: Terms

    def __post_init__(self) -> None:
        from warpfold.kernels.cpu.windows import encoding, nearest

        self._encoding, self._nearest = encoding, nearest
        # Any number of terms may have a sum of at most so many digits.
        self._plain_digits = (LARGEST[self.terms].bit_length() - 1) // 32
        self._digits = GrowingLimbs()
        self._added = 0
        self._counts: Index = np.zeros(0, np.int64)
        self._flags: Index = np.zeros(0, np.int64)

    def add(self, states: StateColumn, ids: Index, groups: int) -> None:
        """Add state i to group ids[i], of which there are `groups`. Raises StateError with the number of the bytes that
        are no state, or of the state that holds other terms; OutOfMemory."""
        doubtful = np.zeros(len(states), np.bool_)
        code = CODES[self.terms]
        low, end, doubts = self._encoding.look(states.data, states.offsets, code, self._plain_digits, doubtful)
        for row in np.flatnonzero(doubtful).tolist() if doubts else ():
            digits = self._checked(states, row)
            low, end = min(low, digits[0]), max(end, digits[1])
        self._hold(groups, int(low), int(end) + _CARRIES)
        if self._added + len(states) > _RESOLVED_AFTER:
            self._resolve()
        self._added += len(states)
        limbs, first = self._digits.limbs, self._digits.first
        row = self._encoding.add(states.data, states.offsets, ids, first, limbs, self._counts, self._flags)
        if row >= 0:
            raise StateError("count", f"with state {row} a group has more terms than 2**63")

    def _checked(self, states: StateColumn, row: int) -> tuple[int, int]:
        """The index of the first digit of a state, and the index behind its last digit."""
        try:
            state = ExactState.from_bytes(states[row])
            if state.terms is not self.terms:
                raise StateError("terms", f"the state holds {state.terms}, and the sum is of {self.terms}")
        except StateError as error:
            raise StateError("state", f"row {row} does not hold an exact state: {error}") from None
        digits = len(state.limbs)
        return (next(at for at, digit in enumerate(state.limbs) if digit), digits) if digits else (1 << 16, 0)

    def _hold(self, groups: int, low: int = 0, end: int = 0) -> None:
        self._digits.hold(groups, low, end)
        self._counts, self._flags = grown(self._counts, groups), grown(self._flags, groups)

    def _resolve(self) -> None:
        limbs = self._digits.limbs
        if limbs.size:
            self._nearest.resolve_sums(limbs, np.ones(limbs.shape[0], np.bool_))
        self._added = 0

    def counts(self, groups: int) -> Index:
        """How many terms each of the first `groups` groups has."""
        self._hold(groups)
        return self._counts[:groups]

    def sums(self, groups: int) -> ManySums:
        """The sums of the first `groups` groups; valid until more is added."""
        self._hold(groups)
        self._resolve()
        limbs = self._digits.limbs[:groups] if self._digits.limbs.size else np.zeros((groups, 1), np.int64)
        return ManySums(self.terms, ORIGIN[self.terms] + 32 * self._digits.first, limbs, self._flags[:groups])

    def encoded(self, groups: int) -> StateColumn:
        """The states of the first `groups` groups."""
        sums, counts = self.sums(groups), self.counts(groups)
        return states_by_parts(sums.at, counts)
