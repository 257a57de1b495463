"""Elements of windows as finite float64, and exact sums of blocks of them, with which chunks of values begin."""

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable, widened
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.rolling.integer_sums import RunningSums, numbers_of
from warpfold.kernels.cpu.rolling.threads import on_all_cores
from warpfold.kernels.cpu.windows import rolling
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

CHUNK = 1 << 16
"""Values that a thread makes at a time, and elements of a block."""

_MAGNITUDE = np.int64(np.iinfo(np.int64).max)
_INFINITY = 0x7FF << 52


class FiniteElements:
    """The patterns of `elements` of a dtype as float64, or of their magnitudes, with zeros for NaN and infinities,
    which are counted apart; with `omits` NaNs are left out."""

    def __init__(self, elements: NDArray[Any], dtype: DType, *, magnitudes: bool, omits: bool) -> None:
        patterns = readable(as_float64(elements, dtype), np.dtype(np.int64))
        if magnitudes:
            patterns = patterns & _MAGNITUDE
        self._specials: dict[Flags, RunningSums] = {}
        most, _, negative_zero = rolling.look(readable(patterns, patterns.dtype))
        if most >= _INFINITY or negative_zero:
            patterns = self._without_specials(patterns, omits=omits)
        self.patterns = readable(patterns, patterns.dtype)

    def _without_specials(self, patterns: NDArray[np.int64], *, omits: bool) -> NDArray[np.int64]:
        values = patterns.view(np.float64)
        kinds = {
            Flags.NAN: np.isnan(values),
            Flags.POS_INF: values == np.inf,
            Flags.NEG_INF: values == -np.inf,
            Flags.NOT_NEGATIVE_ZERO: patterns < -_MAGNITUDE,
        }
        if omits:
            del kinds[Flags.NAN]
        self._specials = {flag: numbers_of(places) for flag, places in kinds.items() if places.any()}
        return np.where((patterns & _MAGNITUDE) < _INFINITY, patterns, 0)

    def flags(self, begins: Index, ends: Index, counts: Index) -> Index | None:
        """The flags of the elements in each window; None where all are finite and none is −0."""
        if not self._specials:
            return None
        flags = np.where(counts > 0, int(Flags.NOT_NEGATIVE_ZERO), 0).astype(np.int64)
        for flag, places in self._specials.items():
            numbers = places.sums(begins, ends)
            if flag is Flags.NOT_NEGATIVE_ZERO:
                flags[numbers == counts] = 0
            else:
                flags[numbers > 0] |= int(flag)
        return flags


def as_float64(elements: NDArray[Any], dtype: DType) -> NDArray[np.float64]:
    """The elements, which float64 holds."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide: NDArray[np.float64] = widened(elements, dtype).astype(np.float64, copy=False)
    return wide


class BlockTotals:
    """Exact sums of finite float64, or of their squares, for windows of up to `longest` elements: none unless they are
    longer than half a block."""

    def __init__(self, elements: NDArray[np.float64], terms: Terms, longest: int) -> None:
        self._elements, self._terms = elements, terms
        self._before: list[int] = []
        if longest > CHUNK // 2:
            starts = range(0, elements.size, CHUNK)
            totals = on_all_cores(lambda start: self.added(start, min(start + CHUNK, elements.size)), starts)
            self._before = list(accumulate(totals, initial=0))

    def begin(self, begin: int, end: int) -> tuple[int, int]:
        """Where a chunk whose first window has the elements `begin` to `end` − 1 starts to add, and the exact sum of
        those before. A short window is added up anew."""
        if not self._before or end - begin <= CHUNK // 2:
            return begin, 0
        first, last = -(-begin // CHUNK), end // CHUNK
        if first > last:
            return end, self.added(begin, end)
        inside = self._before[last] - self._before[first]
        return end, inside + self.added(begin, first * CHUNK) + self.added(last * CHUNK, end)

    def added(self, start: int, stop: int) -> int:
        """The exact sum of the elements `start` to `stop` − 1, in the units of states."""
        if start == stop:
            return 0
        added = accumulator([DTYPES["float64"]], self._terms)
        added.add(self._elements[start:stop])
        return added.state().units


def limbs_of(units: int, shift: int, size: int) -> NDArray[np.int64]:
    """units ÷ 2**shift, which is whole, as digits of 32 bits, of which the last one has the sign."""
    scaled = units >> shift
    digits = [(scaled >> (32 * k)) & 0xFFFFFFFF for k in range(size - 1)]
    return np.array([*digits, scaled >> (32 * (size - 1))], np.int64)
