"""What sums along axes are compared with: the exact sum of each value, and the float that is nearest to it."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def exact_sums(array: Array, axes: tuple[int, ...]) -> list[Fraction]:
    """The sum of each value, in C order of the values, as multiples of the last place of the least element: Python adds
    integers in a tenth of the time of fractions."""
    count = int(np.prod([array.shape[axis] for axis in axes]))
    moved = np.moveaxis(array, axes, range(len(axes))).reshape(count, -1).astype(np.float64)
    significands, exponents = np.frexp(moved)
    lowest = int(exponents.min())
    integers = (significands * 2.0**53).astype(np.int64).astype(object) << (exponents - lowest).astype(object)
    return [int(total) * Fraction(2) ** (lowest - 53) for total in integers.sum(axis=0)]


def nearest(value: Fraction, dtype: str) -> float:
    """The element of a dtype that is nearest to a fraction, ties to even; an infinity beyond the largest."""
    if dtype == "float64":
        return float(value)
    largest = Fraction(float(np.finfo(np.float32).max))
    if abs(value) >= largest + Fraction(2) ** 103:
        return float("inf") if value > 0 else float("-inf")
    middle = np.float32(float(max(-largest, min(value, largest))))
    between = [middle, *(np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf))]
    even = {float(x): int(x.view(np.uint32)) & 1 for x in between if np.isfinite(x)}
    return min(even, key=lambda x: (abs(Fraction(x) - value), even[x]))


def lying(array: Array) -> list[Array]:
    """The same array of three axes as it may lie in memory."""
    wide = np.zeros((array.shape[0], array.shape[1] + 3, array.shape[2] + 1), array.dtype)
    wide[:, 2:-1, 1:] = array
    return [
        array,
        np.asfortranarray(array),
        wide[:, 2:-1, 1:],
        np.ascontiguousarray(array.transpose(1, 0, 2)).transpose(1, 0, 2),
    ]
