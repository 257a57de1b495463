"""Exact sums of float32 to many values that are float64 numbers (`kernels.cpu.windows.plain`): 8 bytes a value.

They serve few elements a value, whose sums are nearly always exact; all others take two levels (`two_levels`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.grouped.runs import ElementRuns

_WORD = np.dtype(np.int32)

_REACH = 101
"""Binary places of sums that a window of two levels holds, which others may need."""


@dataclass(frozen=True, slots=True)
class PlainSums:
    """An exact sum for each value: multiples of 2**low below 2**top in magnitude, where `low` is not below `top` if all
    sums are 0. A sum of −0 alone is −0."""

    low: int
    top: int
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, array: NDArray[Any], axes: Sequence[int], *, magnitudes: bool) -> "PlainSums | None":
        """The sums of a float32 `array` along axes, or those of its magnitudes; None where a sum may not be exact, and
        where values are no columns of few neighbours."""
        from warpfold.kernels.cpu.windows import plain

        rows = prod(array.shape[axis] for axis in axes)
        if array.dtype != np.float32 or not array.size or rows > plain.MOST_ROWS:
            return None
        runs = ElementRuns.of(array, axes, _WORD)
        if runs is None or not runs.width or runs.places.size * runs.width != runs.values:
            return None
        sums = np.empty(runs.values)
        keep = _WORD.type(np.iinfo(_WORD).max if magnitudes else -1)
        sizes = runs.length, runs.stride, runs.width
        exact, low, top = plain.add_plain_columns(
            readable(runs.flat, _WORD), runs.starts, runs.places, *sizes, keep, sums
        )
        if not exact or top - low > _REACH:
            return None
        return cls(int(low), int(top), runs.ordered(sums))

    @property
    def nbytes(self) -> int:
        """The bytes of all sums."""
        return self.sums.nbytes

    def negative(self) -> NDArray[np.bool_] | None:
        """Which sums are −0; None where none is."""
        signs = np.signbit(self.sums) & (self.sums == 0)
        return signs if signs.any() else None
