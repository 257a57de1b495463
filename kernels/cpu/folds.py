"""Folds: reductions that read an array piece by piece, in any order, and merge. The exact strategy folds whole arrays
by these."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import One
from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.patterns import is_nan, refuse_nan
from warpfold.kernels.cpu.accumulator import FloatAccumulator, accumulator
from warpfold.kernels.cpu.claims import ClaimJob, Claims
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ExactState, Flags, value_of
from warpfold.kernels.ops import NanPolicy, Op, Value, terms_of
from warpfold.kernels.ops.operands import check_freedom, result_dtype

PIECE = 1 << 17
"""Elements that the second accumulator finds in the cache where the first left them: at most 1 MiB. With fewer the
calls cost as much as the additions."""

Part = NDArray[Any] | tuple[NDArray[Any], ...]
"""Elements of one array, or those of the same indices of two."""


class Fold(Protocol):
    """A reduction under way. A fold serves one thread. The order of pieces and merges does not change its value."""

    @property
    def count(self) -> int:
        """How many elements were added, without the NaNs where the policy is OMIT."""
        ...

    def add(self, start: int, part: Any) -> None:
        """Take in elements start … start + len − 1 of the array, or of both as a pair, native byte order.

        Raises InvalidInput naming the first NaN's index where the policy is RAISE.
        """
        ...

    def merge(self, other: Self) -> None:
        """Take in all elements that `other` took in, a fold of the same op, dtype and policy."""
        ...

    def value(self) -> Value:
        """The value of the elements so far, of which there is at least one. Raises InvalidInput where they have no
        value."""
        ...

    def state(self) -> ExactState | None:
        """The exact accumulator, where the op has a single one."""
        ...


def fold_for(op: Op, dtypes: Sequence[DType], nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True) -> Fold:
    """An empty fold of `op` over elements of a dtype, or over pairs of elements of two. A sum that is not `compiled`
    needs no compiler."""
    if op.adds:
        return SumFold(op, dtypes, nan_policy, ddof, compiled=compiled)
    return AggregateFold(op, dtypes[0], nan_policy)


class SumFold:
    """The exact accumulators of an op that adds, and the states merged into them: of its values, of products of pairs,
    or for a variance of values and of squares. OMIT leaves out pairs in which either element is NaN. The product ∞ · 0
    is NaN and stays."""

    def __init__(
        self, op: Op, dtypes: Sequence[DType], nan_policy: NanPolicy, ddof: int = 0, *, compiled: bool = True
    ) -> None:
        self._op, self._dtypes, self._ddof = op, tuple(dtypes), ddof
        self._omit = dtypes[0].is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtypes[0].is_float and nan_policy is NanPolicy.RAISE
        kinds = terms_of(op)
        self._added = [accumulator(dtypes, kind, magnitudes=op.magnitudes, compiled=compiled) for kind in kinds]
        self._merged: list[ExactState] | None = None
        self._whole: list[ExactState] | None = None

    @property
    def count(self) -> int:
        return self.states()[0].count

    def add(self, start: int, part: Part) -> None:
        arrays = tuple(np.ascontiguousarray(array) for array in part) if isinstance(part, tuple) else (part,)
        self._whole = None
        if len(self._added) == 1:
            self._take(start, arrays)
            return
        for at in range(0, arrays[0].size, PIECE):
            self._take(start + at, tuple(array[at : at + PIECE] for array in arrays))

    def _take(self, start: int, arrays: tuple[NDArray[Any], ...]) -> None:
        if self._omit:
            arrays = self._present(arrays)
        flags = self._added[0].add(*arrays)
        if self._refuse and flags & Flags.NAN:
            for array, dtype, what in zip(arrays, self._dtypes, ("element", "other element"), strict=False):
                refuse_nan(start, array, dtype, what)
        for others in self._added[1:]:
            others.add(*arrays)

    def _present(self, arrays: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        """The elements without those that are left out."""
        missing = is_nan(arrays[0], self._dtypes[0])
        for array, dtype in zip(arrays[1:], self._dtypes[1:], strict=True):
            missing |= is_nan(array, dtype)
        return tuple(array[~missing] for array in arrays) if missing.any() else arrays

    def claiming(self, claims: Claims) -> ClaimJob:
        """A job that takes in all pieces that no other thread takes, NaNs among them; `claimed` ends it."""
        return self._claimant.claiming(claims)

    def claimed(self, job: ClaimJob) -> None:
        """Count what a job, which is done, has taken in."""
        self._whole = None
        self._claimant.claimed(job)

    @property
    def _claimant(self) -> FloatAccumulator:
        (added,) = self._added
        assert isinstance(added, FloatAccumulator), "pieces of floats are claimed"
        return added

    def merge(self, other: "SumFold") -> None:
        self._merged = self._together(other.states())
        self._whole = None

    def _together(self, states: list[ExactState]) -> list[ExactState]:
        """These states, with those that were merged so far."""
        if self._merged is None:
            return states
        return [mine.merge(theirs) for mine, theirs in zip(self._merged, states, strict=True)]

    def value(self) -> Value:
        states = self.states()
        check_freedom(self._op, states[0].count, self._ddof)
        return value_of(self._op, states, result_dtype(self._op, *self._dtypes), self._ddof)

    def states(self) -> list[ExactState]:
        """The state of each sum."""
        # They are asked for several times, and making one takes longer than adding a few elements.
        if self._whole is None:
            self._whole = self._together([added.state() for added in self._added])
        return self._whole

    def state(self) -> ExactState | None:
        """The state of the only sum; None of several, which no single state can hold."""
        states = self.states()
        return states[0] if len(states) == 1 else None


class AggregateFold:
    """All elements as the only group of an aggregate."""

    def __init__(self, op: Op, dtype: DType, nan_policy: NanPolicy) -> None:
        self._dtype = dtype
        self._omit = dtype.is_float and nan_policy is NanPolicy.OMIT
        self._refuse = dtype.is_float and nan_policy is NanPolicy.RAISE
        self._aggregate = aggregate_of(op, dtype)
        self._folded = self._aggregate.begun(1)
        self.count = 0

    def add(self, start: int, part: NDArray[Any]) -> None:
        places = None
        if self._refuse:
            refuse_nan(start, part, self._dtype)
        elif self._omit and (missing := is_nan(part, self._dtype)).any():
            kept = np.flatnonzero(~missing)
            part, places = part[kept], start + kept
        self.count += part.size
        self._folded.update((part,), One(start, places))

    def merge(self, other: "AggregateFold") -> None:
        self.count += other.count
        self._folded.merge(other._folded.rows(0, 1))

    def values(self) -> NDArray[Any]:
        """The value, or the values of an op that has several."""
        return self._aggregate.finish(self._folded.rows(0, 1), np.array([self.count]))

    def value(self) -> Value:
        value: Value = self.values().tolist()[0]
        return value

    def state(self) -> None:
        return None
