"""Keys of elements: integers that sort as the elements do, so that all ops that look for an element look for the least
key, and all dtypes of a width share their loops.

A key is an int32 of an element of up to 32 bits, and an int64 of a longer one. A float's key is its pattern, whose
lower bits are turned over where the sign is set, so that keys sort −∞ … −0, +0 … ∞. For the largest element all bits of
the key are turned over. A NaN has the least key of all or, where NaNs are left out, the largest. Undoing these steps
turns a key into an element again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.dtypes import DType, Kind
from warpfold.kernels.ops import Extreme, Op

Form = tuple[Any, ...]
"""The numbers by which `aggregates.loops` makes a key of a pattern: words that are set in the comments of `Keys`."""


class Keys:
    """The keys of elements of a dtype, by which `op` looks for the least. With `omit`, NaNs are left out."""

    def __init__(self, op: Op, dtype: DType, *, omit: bool = False) -> None:
        width = 8 * dtype.itemsize
        self._dtype = dtype
        self._pattern = np.dtype(f"int{width}")
        self.word: np.dtype[Any] = np.dtype(np.int64 if width == 64 else np.int32)
        most = (1 << (8 * self.word.itemsize - 1)) - 1
        least = -most - 1
        self._of_magnitudes = op.magnitudes and dtype.kind is Kind.INT
        magnitude = (1 << (width - 1)) - 1  # the bits of a pattern below the sign
        # Where the sign is set: the bits that are turned over, and whether 1 is added.
        self._turned = (0 if op.magnitudes else magnitude) if dtype.is_float else -int(self._of_magnitudes)
        self._added = int(self._of_magnitudes)
        self._kept = magnitude if dtype.is_float and op.magnitudes else -1
        self._magnitude = magnitude
        self._zero = (
            0 if dtype.is_float and (op.places or op.fold in ("distinct", "mode")) else -1
        )  # the magnitude whose keys are all 0
        infinity = (2 * dtype.max_exponent - 1) << (dtype.precision - 1) if dtype.is_float else magnitude
        self._infinity = infinity  # the largest magnitude that is no NaN
        self._of_nan = most if omit else least
        # −1 turns all bits over; the sign's bit sorts unsigned numbers among signed ones.
        unsigned = least if self._of_magnitudes else -(1 << (width - 1)) if dtype.kind is Kind.UINT else 0
        self._flip = (-1 if op.extreme is Extreme.MOST else 0) ^ unsigned
        self.none = most

    def numbers(self) -> tuple[int, int, int]:
        """The mask by which every key is turned over, the key of a NaN, and the key that stands for no element."""
        return self._flip, self._of_nan, self.none

    @property
    def form(self) -> Form:
        """What compiled loops need."""
        numbers = (
            self._kept, self._turned, self._added, self._magnitude, self._zero, self._infinity, self._of_nan,
            self._flip,
        )  # fmt: skip
        return tuple(self.word.type(number) for number in numbers)

    def _words(self, array: NDArray[Any]) -> NDArray[Any]:
        """The patterns of `array`, shape (n,), as words with the sign of the pattern."""
        return readable(array, self._pattern).astype(self.word, copy=False)

    def compiled(self, array: NDArray[Any]) -> NDArray[Any]:
        """The keys of `array`, shape (n,), for a compiled loop, and by one where there is more to do than to turn bits
        over."""
        if not self._dtype.is_float and not self._of_magnitudes:
            patterns = readable(array, self._pattern)
            turned = patterns ^ self._pattern.type(self._flip) if self._flip else patterns
            return readable(turned.astype(self.word, copy=False), self.word)
        from warpfold.kernels.aggregates import loops  # it imports Numba

        words = self._words(array)
        keys = np.empty(words.size, self.word)
        loops.make_keys(readable(words, self.word), self.form, keys)
        return readable(keys, self.word)

    def of_one(self, element: Any) -> int:
        """The key of an element that NumPy has found, as `of` has it."""
        if element != element:  # noqa: PLR0124 - NaN
            return self._of_nan
        pattern = int(np.asarray(element).astype(self._dtype.numpy, copy=False).view(self._pattern))
        negative = pattern < 0
        key = 0 if pattern & self._magnitude == self._zero else (pattern & self._kept) ^ (negative and self._turned)
        key = (key + (negative and self._added)) ^ self._flip
        return (key + self.none + 1) % (2 * self.none + 2) - self.none - 1  # an integer of the word

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """The keys of `array`, shape (n,), by NumPy; `aggregates.loops` has the same steps."""
        kept, turned, added, magnitude, zero, infinity, of_nan, flip = self.form
        words = self._words(array)
        signs = words >> self.word.type(8 * self.word.itemsize - 1)
        keys = ((words & kept) ^ (signs & turned)) + (added & signs & self.word.type(1))
        magnitudes = words & magnitude
        keys = np.where(magnitudes == zero, self.word.type(0), keys) ^ flip
        return np.asarray(np.where(magnitudes > infinity, of_nan, keys))

    def elements(self, keys: NDArray[Any]) -> NDArray[Any]:
        """The elements that have these keys, or their magnitudes; of a NaN, some NaN."""
        words: NDArray[Any] = keys ^ self.word.type(self._flip)
        if self._of_magnitudes:
            return words.view(f"uint{8 * self.word.itemsize}")
        if self._dtype.is_float:
            signs = words >> self.word.type(8 * self.word.itemsize - 1)
            words = words ^ (signs & self.word.type(self._turned))
            words = np.where(keys == self.word.type(self._of_nan), self.word.type(self._infinity + 1), words)
        return words.astype(self._pattern).view(self._dtype.numpy)
