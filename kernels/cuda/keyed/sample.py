"""Facts of keys and elements from a sample of the rows, before they are added up by key.

A guess that is wrong costs time, and no bits: what the sample did not show is noticed (include/keyed_sums.cuh).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed.shapes import (
    APART,
    LEAST_PLACE,
    LEAST_PLACE_OF_STREAM,
    MOST_LISTED,
    MOST_PLACE,
    MOST_PLACE_OF_STREAM,
    MOST_READ_AGAIN,
    PLACE_BINS,
    PLANES_APART,
    SAMPLES,
    TOP_BITS,
    levels_of,
    planes_of,
    sample_kernel,
    unit_of,
)
from warpfold.kernels.dtypes import DType, Kind

_LEAST_KEY, _MOST_KEY, _DESCENTS, _TOP_PLACE, _PLACES = range(5)
_RARE = 512
"""One element in so many may be left to what follows the levels."""

_ROOM_ABOVE = 2
"""Elements may be larger by so many binary places than those of the sample."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Keys from `least` on, of which there are at most `range`; `sorted` if a sample looked so."""

    least: int
    range: int
    sorted: bool = False


@dataclass(frozen=True, slots=True)
class KeyedSample:
    """How far keys reach, the highest binary place of any element, and how many elements have their lowest bit in each
    eight places; places count from 2**-1074."""

    reach: Reach
    top: int
    places: NDArray[np.uint64]

    @classmethod
    def of(cls, gpu: Gpu, keys: Any, key: DType, values: Any, dtype: DType) -> "KeyedSample":
        """Look at some of at least one row. `key` and `dtype` are what keys and elements are held as."""
        import cupy

        statistics = cupy.zeros(_PLACES + PLACE_BINS, dtype=np.uint64)
        count = int(keys.size)
        samples = min(SAMPLES, count)
        name = sample_kernel(key, dtype)
        sizes = (np.uint64(count), np.uint64(count // samples), np.uint32(samples))
        gpu.kernel(unit_of(name), name)(-(-(samples + 1) // 256), 256, (keys, values, *sizes, statistics))
        seen = statistics.get()
        turned = 1 << 63 if key.kind is Kind.INT else 0
        least, most = (1 << 64) - 1 - int(seen[_LEAST_KEY]) - turned, int(seen[_MOST_KEY]) - turned
        in_order = not int(seen[_DESCENTS])
        if samples < count and not in_order:  # keys that the sample missed
            room, ends = (most - least + 1) // 256 + 16, np.iinfo(key.name)
            least, most = max(least - room, int(ends.min)), min(most + room, int(ends.max))
        return cls(Reach(least, most - least + 1, in_order), int(seen[_TOP_PLACE]), seen[_PLACES:])

    def levels(self, dtype: DType, count: int) -> tuple[int, int] | None:
        """How many levels `count` elements of `dtype` need, and the binary place of the highest; None where no levels
        hold nearly all."""
        if not dtype.is_float:
            return levels_of(dtype)[0], 0
        unit = min(max(self.top - 1074 + _ROOM_ABOVE - TOP_BITS, LEAST_PLACE), MOST_PLACE)
        finite = int(self.places.sum())
        for levels in levels_of(dtype):
            rest, listed = self._below(unit - APART * (levels - 1)), self._below(unit - APART * levels)
            if rest * _RARE <= finite and listed * count <= finite * MOST_LISTED // 4:
                return levels, unit
        return None

    def planes(self, dtype: DType, count: int) -> tuple[int, int] | None:
        """How many planes a stream of `count` floats of `dtype` needs, and the binary place of the last; None where no
        planes hold nearly all."""
        finite = int(self.places.sum())
        for planes in planes_of(dtype):
            unit = self.top - 1074 + _ROOM_ABOVE - PLANES_APART * planes
            unit = min(max(unit, LEAST_PLACE_OF_STREAM), MOST_PLACE_OF_STREAM)
            if self._below(unit) * count <= finite * MOST_READ_AGAIN // 4:
                return planes, unit
        return None

    def _below(self, lowest: int) -> int:
        """How many elements of the sample may have bits below 2**lowest."""
        return int(self.places[: max(0, lowest + 1074 + 7) // 8].sum())
