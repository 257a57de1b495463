"""Quantiles of a whole source in two to four reads, none of which keeps all elements. The first counts the elements by
the leading 16 bits of their keys, and so finds with which bits those in the wanted ranks begin. The next gathers the
elements that begin with these bits or, where they do not fit into memory, counts them by the bits that follow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import refuse_nan
from warpfold.kernels.aggregates.quantile import Quantile, Ranks
from warpfold.kernels.backend import Progress
from warpfold.kernels.cpu.folds import AggregateFold
from warpfold.kernels.cpu.memory import available_bytes
from warpfold.kernels.cpu.pieces import pieces_of
from warpfold.kernels.cpu.stream import Streamed, stream
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.parts.selected import Selected
from warpfold.kernels.sources.sequential import Elements, SequentialSource

FEW = 1 << 16
"""So many elements are put in order at once, which needs no compiler."""

_LAST = (1 << 16) + 1
"""The last first digit: see `aggregates.loops`."""

_BLOCK = 1 << 15
"""Keys at a time, which stay in a second-level cache."""

_SAMPLES, _RUN = 64, 256
"""Integers are sampled at so many places, so many neighbours each."""

_MOST_COUNTERS = 1 << 22

_SHARE_OF_FREE = 4
"""Elements that are gathered take one in so many of the free bytes at most; they are copied once."""


def select(source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Selected:
    """The quantiles of all elements. Those that are few, or come in order, are kept while they are read, if the memory
    holds them. Raises InvalidInput for a NaN where the policy is RAISE, and OutOfMemory."""
    sequential = isinstance(source, SequentialSource)
    if sequential or (source.count or 0) <= FEW:
        try:
            return kept(source, op, nan_policy, progress)
        except OutOfMemory:
            if not sequential:
                raise
    return _in_passes(source, op, nan_policy, progress)


def kept(source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Selected:
    """The values of all elements, of which one read keeps what the op needs. Raises as `select`."""
    pieces = pieces_of(source, by_index=nan_policy is NanPolicy.RAISE)
    streamed = stream(pieces, partial(AggregateFold, op, source.dtype, nan_policy), progress)
    fold = streamed.fold
    return Selected(fold.values(), fold.count, streamed.load_ms, streamed.kernel_ms, streamed.stages)


def _in_passes(source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None) -> Selected:
    dtype = source.dtype
    reads = _Reads(source, _Digits.of(op, source), nan_policy is NanPolicy.RAISE, progress)
    counts = reads.read(_Counts).counts
    nans = int(counts[-2:].sum()) if dtype.is_float else 0
    count = int(counts.sum()) - (nans if nan_policy is NanPolicy.OMIT else 0)
    ranks = Ranks(op, np.array([count]))
    if not count or (nans and nan_policy is not NanPolicy.OMIT):
        return reads.selected(np.full(ranks.quantiles, np.nan), count)
    if not counts[0] <= ranks.sorted.min() <= ranks.sorted.max() < count - (0 if dtype.is_float else counts[-1]):
        reads.digits = _Digits.of(op, source, sampled=False)
        counts = reads.read(_Counts).counts
    keys = _in_ranks(reads, counts, ranks.sorted[0])
    return reads.selected(Quantile(op, dtype).values(keys.reshape(1, -1), ranks, None), count)


def _in_ranks(reads: "_Reads", counts: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[Any]:
    """The keys in these ranks, of elements that have been counted by their first digits."""
    digits = reads.digits
    first = np.arange(counts.size).astype(np.uint64) - np.uint64(1)
    sought = _Sought.among(first, digits.top, counts, np.cumsum(counts) - counts, ranks)
    while sought.shift:
        if int(sought.counts.sum()) * digits.keys.word.itemsize <= available_bytes() // _SHARE_OF_FREE:
            gathered = reads.read(partial(_Gathered, sought=sought)).all()
            at = sought.numbers(ranks)
            places = ranks - sought.before[at] + (np.cumsum(sought.counts) - sought.counts)[at]
            gathered.partition(np.unique(places))
            return np.asarray(gathered[places])
        bits = min(16, sought.shift, (_MOST_COUNTERS // sought.prefixes.size).bit_length() - 1)
        followed = reads.read(partial(_NextCounts, sought=sought, bits=bits)).counts
        prefixes = (sought.prefixes[:, None] << np.uint64(bits)) + np.arange(1 << bits, dtype=np.uint64)
        before = sought.before[:, None] + np.cumsum(followed, axis=1) - followed
        flat, shift = [each.reshape(-1) for each in (prefixes, followed, before)], sought.shift - bits
        sought = _Sought.among(flat[0], shift, flat[1], flat[2], ranks)
    return (sought.prefixes[sought.numbers(ranks)] + digits.least).view(np.int64).astype(digits.keys.word)


@dataclass(frozen=True, slots=True)
class _Digits:
    """How keys of a dtype are cut into digits: see `aggregates.loops`."""

    keys: Keys
    least: np.uint64
    top: int

    @classmethod
    def of(cls, op: Op, source: Elements, *, sampled: bool = True) -> "_Digits":
        """The digits of the elements' dtype or, of integers that are read by position, those of nearly all elements:
        most integers are small, so that their leading bits say little."""
        keys, width = Keys(op, source.dtype, omit=True), 8 * source.dtype.itemsize
        least, top = -(1 << (width - 1)), max(0, width - 16)
        if sampled and top and not source.dtype.is_float and not isinstance(source, SequentialSource):
            starts = np.linspace(0, source.count - _RUN, _SAMPLES).astype(np.int64).tolist()
            sample = keys.of(np.concatenate([source.read(start, start + _RUN) for start in starts]))
            low, high = int(sample.min()), int(sample.max())
            margin = (high - low) // 4 + 1
            least, top = max(least, low - margin), min(top, max(0, (high - low + 2 * margin).bit_length() - 16))
        return cls(keys, np.uint64(least % (1 << 64)), top)


@dataclass(frozen=True, slots=True)
class _Sought:
    """The sorted prefixes of the elements in the wanted ranks, which are their bits from `shift` on; how many elements
    have each, and how many sort before these."""

    prefixes: NDArray[np.uint64]
    shift: int
    counts: NDArray[np.int64]
    before: NDArray[np.int64]

    @classmethod
    def among(cls, prefixes: Any, shift: int, counts: Any, before: Any, ranks: NDArray[np.int64]) -> Self:
        """Those prefixes that elements in some of the ranks have."""
        at = np.unique(np.searchsorted(before + counts, ranks, "right"))
        return cls(prefixes[at], shift, counts[at], before[at])

    def numbers(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the prefix that the element in each rank has."""
        return np.searchsorted(self.before + self.counts, ranks, "right")

    def arguments(self, digits: _Digits) -> tuple[Any, ...]:
        """What compiled loops need to look for the prefixes."""
        first = (self.prefixes >> np.uint64(digits.top - self.shift)) + np.uint64(1)
        starts = np.searchsorted(first, np.arange(_LAST + 2, dtype=np.uint64))
        return digits.least, np.uint64(digits.top), starts, self.prefixes, np.uint64(self.shift)


class _Taking(Protocol):
    """What one read makes of the keys."""

    def take(self, keys: NDArray[Any]) -> None: ...

    def merge(self, other: Any) -> None: ...


class _Counts(_Taking):
    """How many elements have each first digit."""

    def __init__(self, digits: _Digits) -> None:
        from warpfold.kernels.aggregates import loops  # it imports Numba

        self._count, self._arguments = loops.count_digits, (digits.least, np.uint64(digits.top))
        self.counts = np.zeros(_LAST + 1, np.int64)

    def take(self, keys: NDArray[Any]) -> None:
        self._count(keys, *self._arguments, self.counts)

    def merge(self, other: Self) -> None:
        self.counts += other.counts


class _NextCounts(_Taking):
    """How many elements have each of the prefixes, by the bits that follow."""

    def __init__(self, digits: _Digits, sought: _Sought, bits: int) -> None:
        from warpfold.kernels.aggregates import loops  # it imports Numba

        self._count, self._arguments = loops.count_next, sought.arguments(digits)
        self._below = np.uint64(sought.shift - bits)
        self.counts = np.zeros((sought.prefixes.size, 1 << bits), np.int64)

    def take(self, keys: NDArray[Any]) -> None:
        self._count(keys, *self._arguments, self._below, self.counts)

    def merge(self, other: Self) -> None:
        self.counts += other.counts


class _Gathered(_Taking):
    """The keys that have one of the prefixes."""

    def __init__(self, digits: _Digits, sought: _Sought) -> None:
        from warpfold.kernels.aggregates import loops  # it imports Numba

        self._gather, self._arguments = loops.gather, sought.arguments(digits)
        self._room = np.empty(_BLOCK, digits.keys.word)
        self._parts = [np.empty(0, digits.keys.word)]

    def take(self, keys: NDArray[Any]) -> None:
        count = self._gather(keys, *self._arguments, self._room)
        self._parts.append(self._room[:count].copy())

    def merge(self, other: Self) -> None:
        self._parts += other._parts

    def all(self) -> NDArray[Any]:
        return np.concatenate(self._parts)


T = TypeVar("T", bound=_Taking)


class _Pass:
    """One read by one thread."""

    def __init__(self, digits: _Digits, dtype: DType, *, refuse: bool, taking: Callable[[_Digits], Any]) -> None:
        self._keys, self._dtype, self._refuse = digits.keys, dtype, refuse
        self.taking = taking(digits)

    def add(self, start: int, part: NDArray[Any]) -> None:
        if self._refuse and self._dtype.is_float:
            refuse_nan(start, part, self._dtype)
        for at in range(0, part.size, _BLOCK):
            self.taking.take(self._keys.compiled(part[at : at + _BLOCK]))

    def merge(self, other: "_Pass") -> None:
        self.taking.merge(other.taking)


class _Reads:
    """All reads of a source."""

    def __init__(self, source: Elements, digits: _Digits, refuse: bool, progress: Progress | None) -> None:
        self.digits = digits
        self._source, self._refuse, self._progress = source, refuse, progress
        self._done: list[Streamed[_Pass]] = []

    def read(self, taking: Callable[[_Digits], T]) -> T:
        """What is made of the elements in one more read. A source counts its elements and its nulls only once."""
        source, refuse = self._source, self._refuse and not self._done
        if isinstance(source, SequentialSource):
            source.tally.elements = source.tally.nulls = 0
        make = partial(_Pass, self.digits, source.dtype, refuse=refuse, taking=taking)
        streamed = stream(pieces_of(source, by_index=refuse), make, self._reporting())
        self._done.append(streamed)
        made: T = streamed.fold.taking
        return made

    def _reporting(self) -> Progress | None:
        """Reports as if there were two reads, of which any later one goes on at the end."""
        progress, before = self._progress, len(self._done)
        if progress is None:
            return None
        return lambda done, total: progress((done + min(before, 1) * total) // 2 if total else 0, total)

    def selected(self, values: NDArray[Any], count: int) -> Selected:
        """The values with the times of all reads."""
        stages = [each.stages for each in self._done]
        load_ms = sum(each.load_ms for each in self._done)
        kernel_ms = sum(each.kernel_ms for each in self._done)
        return Selected(values, count, load_ms, kernel_ms, sum(stages[1:], stages[0]))
