"""Sums and means of floats over windows, which `cpu.windows.rolling` adds up, chunk by chunk on all cores. NaN,
infinities and −0 are counted apart, so that none of them stays in a sum that it has left.

Each chunk begins with the sum of its first window. A short one is added up anew. A long one is made of exact sums of
blocks, which all chunks share, so that a running sum of a long array is added up twice and not once for each chunk.
"""

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable, widened
from warpfold.kernels.cpu.accumulator import accumulator
from warpfold.kernels.cpu.rolling.integer_sums import counted
from warpfold.kernels.cpu.rolling.threads import on_all_cores
from warpfold.kernels.cpu.windows import rolling
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact import ORIGIN
from warpfold.kernels.ops import Terms
from warpfold.kernels.parts.grouping import Index

CHUNK = 1 << 16
"""Values that a thread makes at a time."""

_FLOAT64 = DTYPES["float64"]
_UNIT = ORIGIN[Terms.VALUES]
_WORD = 32
_MOST_PLACE = 850
_MAGNITUDE = np.int64(np.iinfo(np.int64).max)
_INFINITY = 0x7FF << 52


class FloatWindows:
    """Sums or means of `elements` of a dtype, or of their magnitudes, over windows of up to `longest`; with `omits`
    NaNs are left out."""

    def __init__(
        self, elements: NDArray[Any], dtype: DType, longest: int, *, magnitudes: bool, divides: bool, omits: bool
    ) -> None:
        patterns = readable(as_float64(elements, dtype), np.dtype(np.int64))
        if magnitudes:
            patterns = patterns & _MAGNITUDE
        self._divides = divides
        self._specials: dict[str, NDArray[np.bool_]] = {}
        most, _, negative_zero = rolling.look(readable(patterns, patterns.dtype))
        if most >= _INFINITY or negative_zero:
            patterns = self._without_specials(patterns, omits=omits)
        self._sums = MovingSums(
            readable(patterns, patterns.dtype), (dtype.precision, dtype.min_exponent, dtype.max_exponent)
        )
        self._sums.prepare(longest)

    def _without_specials(self, patterns: NDArray[np.int64], *, omits: bool) -> NDArray[np.int64]:
        values = patterns.view(np.float64)
        missing = np.isnan(values)
        kinds = {"nan": missing, "inf": values == np.inf, "-inf": values == -np.inf, "-0": patterns < -_MAGNITUDE}
        if omits:
            del kinds["nan"]
        self._specials = {name: places for name, places in kinds.items() if places.any()}
        return np.where((patterns & _MAGNITUDE) < _INFINITY, patterns, 0)

    def values(self, begins: Index, ends: Index, counts: Index, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of windows that `counts` elements enter, written to `values`."""
        self._sums.values(begins, ends, np.maximum(counts, 1) if self._divides else None, values)
        numbers = {name: counted(places, begins, ends) for name, places in self._specials.items()}
        if not numbers:
            return values
        none = np.zeros(1, np.int64)
        if "-0" in numbers:
            values[(numbers["-0"] == counts) & (counts > 0)] = -0.0
        above, below = numbers.get("inf", none) > 0, numbers.get("-inf", none) > 0
        values[np.broadcast_to(above, values.shape)] = np.inf
        values[np.broadcast_to(below, values.shape)] = -np.inf
        values[np.broadcast_to((above & below) | (numbers.get("nan", none) > 0), values.shape)] = np.nan
        return values


def as_float64(elements: NDArray[Any], dtype: DType) -> NDArray[np.float64]:
    """The elements of a float dtype, which float64 holds."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide: NDArray[np.float64] = widened(elements, dtype).astype(np.float64, copy=False)
    return wide


class MovingSums:
    """Sums of finite float64, whose patterns are `patterns`. `form` is the format of the values: precision, least and
    most exponents."""

    def __init__(self, patterns: NDArray[np.int64], form: tuple[int, int, int]) -> None:
        self._patterns = patterns
        self._elements = patterns.view(np.float64)
        self._form = form
        self._plain = form[0] == _FLOAT64.precision
        self._before: list[int] = []

    def prepare(self, longest: int) -> None:
        """Add up what chunks of windows of up to `longest` elements begin with."""
        if longest > CHUNK // 2:
            starts = range(0, self._patterns.size, CHUNK)
            totals = on_all_cores(lambda start: self._added(start, min(start + CHUNK, self._patterns.size)), starts)
            self._before = list(accumulate(totals, initial=0))

    def values(self, begins: Index, ends: Index, divisors: Index | None, values: NDArray[np.float64]) -> None:
        """Write the sums of elements begins[i] to ends[i], divided by divisors[i], which are at least 1."""
        begin = end = int(begins[0])
        units = 0
        if self._before and int(ends[0]) - begin > CHUNK // 2:
            end = int(ends[0])
            units = self._total(begin, end)
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
        limbs = _limbs(chunk.units, lowest, size)
        rolling.slide_limbs(
            self._patterns, chunk.begins, chunk.ends, chunk.begin, chunk.end, limbs, limbs.copy(), lowest,
            chunk.by(), self._form, chunk.values,
        )  # fmt: skip

    def _total(self, start: int, stop: int) -> int:
        """The exact sum of the elements `start` to `stop` − 1, of which there are more than half a block."""
        first, last = -(-start // CHUNK), stop // CHUNK
        if first > last:
            return self._added(start, stop)
        inside = self._before[last] - self._before[first]
        return inside + self._added(start, first * CHUNK) + self._added(last * CHUNK, stop)

    def _added(self, start: int, stop: int) -> int:
        if start == stop:
            return 0
        added = accumulator(_FLOAT64, Terms.VALUES)
        added.add(self._elements[start:stop])
        return added.state().units


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


def _limbs(units: int, lowest: int, size: int) -> NDArray[Any]:
    """A sum, which is a multiple of 2**lowest, as digits of 32 bits, of which the last one has the sign."""
    scaled = units >> (lowest - _UNIT)
    digits = [(scaled >> (_WORD * k)) & ((1 << _WORD) - 1) for k in range(size - 1)]
    return np.array([*digits, scaled >> (_WORD * (size - 1))], np.int64)
