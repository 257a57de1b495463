"""How floats become the words that compiled sums add up: patterns of float64 (int64), or of float32 (int32) for all
narrower formats."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable, widened
from warpfold.kernels.dtypes import DTYPES, DType


def is_narrow(dtype: DType) -> bool:
    """Whether the elements of a float dtype have to be widened before they are words."""
    return dtype.itemsize == 2


def is_half(dtype: DType) -> bool:
    """Whether a narrow dtype is float16, whose exponents have another bias than those of float32."""
    return dtype is DTYPES["float16"]


class FloatWords:
    """Makes words of the elements of a float dtype. Those of 16-bit formats are valid until others are made."""

    def __init__(self, dtype: DType, *, double: bool = False) -> None:
        """With `double` the words are patterns of float64, whatever the dtype is."""
        self._dtype = dtype
        self._double = double or dtype.itemsize == 8
        self._room = np.empty(0, np.int32)

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """The words of all elements; where the elements are words, they are not copied."""
        if self._double:
            with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
                array = widened(array, self._dtype).astype(np.float64, copy=False)
            return readable(array, np.dtype(np.int64))
        if not is_narrow(self._dtype):
            return readable(array, np.dtype(np.int32))
        from warpfold.kernels.cpu.windows import widen  # it imports Numba

        if self._room.size < array.size:
            self._room = np.empty(array.size, np.int32)
        words = self._room[: array.size]
        widen(readable(array, np.dtype(np.int16)), is_half(self._dtype), words)
        return readable(words, words.dtype)
