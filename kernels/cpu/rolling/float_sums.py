"""Sums and means of floats over windows, which `cpu.windows.rolling` adds up, chunk by chunk on all cores. NaN,
infinities and −0 are counted apart, so that none of them stays in a sum that it has left.

Each chunk begins with the sum of its first window. A short one is added up anew. A long one is made of exact sums of
blocks, which all chunks share, so that a running sum of a long array is added up twice and not once for each chunk.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.rolling.elements import BlockTotals, FiniteElements, limbs_of
from warpfold.kernels.cpu.windows import rolling
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ORIGIN, Flags
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

_UNIT = ORIGIN[Terms.VALUES]
_WORD = 32
_MOST_PLACE = 850


class MovingSums:
    """Sums or means of `elements` of a dtype, or of their magnitudes, over windows of up to `longest`; with `omits`
    NaNs are left out."""

    def __init__(
        self, elements: NDArray[Any], dtype: DType, longest: int, *, magnitudes: bool, divides: bool, omits: bool
    ) -> None:
        self._finite = FiniteElements(elements, dtype, magnitudes=magnitudes, omits=omits)
        self._patterns = self._finite.patterns
        self._elements = self._patterns.view(np.float64)
        self._form = dtype.precision, dtype.min_exponent, dtype.max_exponent
        self._divides = divides
        self._plain = dtype.precision == DTYPES["float64"].precision
        self._totals = BlockTotals(self._elements, Terms.VALUES, longest)

    def values(self, begins: Index, ends: Index, counts: Index, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of windows that `counts` elements enter, written to `values`."""
        self._add(begins, ends, np.maximum(counts, 1) if self._divides else None, values)
        flags = self._finite.flags(begins, ends, counts)
        if flags is not None:
            values[(flags == 0) & (counts > 0)] = -0.0
            values[flags & int(Flags.POS_INF) != 0] = np.inf
            values[flags & int(Flags.NEG_INF) != 0] = -np.inf
            infinite = int(Flags.POS_INF | Flags.NEG_INF)
            values[(flags & infinite == infinite) | (flags & int(Flags.NAN) != 0)] = np.nan
        return values

    def _add(self, begins: Index, ends: Index, divisors: Index | None, values: NDArray[np.float64]) -> None:
        """Write the sums of elements begins[i] to ends[i], divided by divisors[i], which are at least 1."""
        begin = int(begins[0])
        end, units = self._totals.begin(begin, int(ends[0]))
        touched = [slice(end, int(ends[-1])), slice(begin, int(begins[-1]))]
        if touched[1].stop >= touched[0].start:
            touched = [slice(begin, int(ends[-1]))]
        bounds = [rolling.look(self._patterns[part]) for part in touched]
        most, least = max(int(bound[0]) for bound in bounds), min(int(bound[1]) for bound in bounds)
        chunk = _Chunk(begins, ends, begin, end, units, divisors, values)
        longest = max(int(ends[0] - begins[0]), int(ends[-1] - begins[-1]))
        if not self._by_levels(chunk, touched, most, longest):
            self._by_limbs(chunk, most, least)

    def _by_levels(self, chunk: "_Chunk", touched: list[slice], most: int, longest: int) -> bool:
        """Whether two levels hold the sums, which are made then."""
        largest = float(np.int64(most).view(np.float64))
        top = int(np.frexp(largest)[1])
        whole = chunk.units.bit_length() + _UNIT + 1
        likely = min(top + longest.bit_length() + 1, max(whole + 2, top + 16))
        top = max(top + 12, whole + 1, likely)
        place = top - 53
        if abs(place) > _MOST_PLACE:
            return False
        levels = _levels(chunk.units, place)
        anchors = (1.5 * 2.0 ** (52 + place), 1.5 * 2.0 ** (52 + place - rolling.BELOW))
        if levels is None or not all(rolling.are_held(self._elements[part], *anchors) for part in touched):
            return False
        bound = 2.0**top - 2 * rolling.PERIOD * largest
        plain = self._plain and chunk.divisors is None
        made: bool = rolling.slide_levels(
            self._elements, chunk.begins, chunk.ends, chunk.begin, chunk.end, *levels, place, bound,
            chunk.begins if plain else chunk.by(), plain, self._form, chunk.values,
        )  # fmt: skip
        return made

    def _by_limbs(self, chunk: "_Chunk", most: int, least: int) -> None:
        lowest = max((least + 1) >> 52, 1) - 1075
        if chunk.units:
            lowest = min(lowest, (chunk.units & -chunk.units).bit_length() - 1 + _UNIT)
        highest = max((most >> 52) - 1022 + self._patterns.size.bit_length(), chunk.units.bit_length() + _UNIT)
        size = max(0, highest - lowest) // _WORD + 4
        limbs = limbs_of(chunk.units, lowest - _UNIT, size)
        rolling.slide_limbs(
            self._patterns, chunk.begins, chunk.ends, chunk.begin, chunk.end, limbs, limbs.copy(), lowest,
            chunk.by(), self._form, chunk.values,
        )  # fmt: skip


class _Chunk:
    """Windows of neighbouring values, the sum of the elements `begin` to `end` with which they start, and where the
    values go."""

    def __init__(  # noqa: PLR0917
        self,
        begins: Index,
        ends: Index,
        begin: int,
        end: int,
        units: int,
        divisors: Index | None,
        values: NDArray[np.float64],
    ) -> None:
        self.begins, self.ends, self.begin, self.end = begins, ends, begin, end
        self.units, self.divisors, self.values = units, divisors, values

    def by(self) -> NDArray[np.int64]:
        """What each sum is divided by."""
        return np.ones(self.values.size, np.int64) if self.divisors is None else self.divisors


def _levels(units: int, place: int) -> tuple[float, float] | None:
    """The two levels of a sum; None where they do not hold it."""
    shift = place - _UNIT
    below = shift - rolling.BELOW
    if units & ((1 << below) - 1):
        return None
    rest = (units & ((1 << shift) - 1)) >> below
    return float(units >> shift) * 2.0**place, float(rest) * 2.0 ** (place - rolling.BELOW)
