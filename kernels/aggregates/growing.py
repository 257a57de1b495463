"""Arrays that grow while sums are added up: rows of numbers, and rows of limbs that grow on both sides."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.memory import require

_LARGE = 1 << 24


def grown(array: NDArray[Any], count: int) -> NDArray[Any]:
    """`array` with at least `count` rows; the new ones are 0."""
    if array.shape[0] >= count:
        return array
    if array.nbytes > _LARGE:
        require(2 * array.nbytes, f"the states of more than {array.shape[0]:,} groups")
    larger = np.zeros((max(count, 2 * array.shape[0]), *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@dataclass
class GrowingLimbs:
    """Rows of limbs, of which column k counts 2**(32 (first + k)) units."""

    limbs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    first: int = 0

    def hold(self, rows: int, low: int = 0, end: int = 0) -> None:
        """Make room for so many rows, and for limbs low … end − 1 of each. Raises OutOfMemory.

        Rows are doubled, and limbs get a quarter more, so that nothing is moved more than a few times."""
        count, width = self.limbs.shape
        first, stop = self.first, self.first + width
        if end > low and not width:
            first, stop = low, end
        elif end > low:
            first = first if low >= first else max(0, low - width // 4)
            stop = stop if end <= stop else end + width // 4
        if rows <= count and (first, stop) == (self.first, self.first + width):
            return
        held = count if rows <= count else max(rows, 2 * count)
        require(held * (stop - first) * 8, f"the exact sums of {rows:,} groups")
        limbs = np.zeros((held, stop - first), np.int64)
        limbs[:count, self.first - first : self.first - first + width] = self.limbs
        self.limbs, self.first = limbs, first
