"""Integers of 128 and 256 bits, such as those of long decimals, as elements of int64: each is clamped to int64, and
what that leaves out of sums and extremes is kept beside.

So every backend reduces them by the kernels of int64, in one pass, and the exact value is put together in Python
integers. A column whose integers all fit int64 leaves nothing out.
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.ops import Extreme, Op, Terms

LEAST, MOST = DTYPES["int64"].bounds

_HALF = (1 << 32) - 1

Words = NDArray[np.int64]
"""Integers in two's complement, shape (integers, words), the lowest word first."""


@dataclass(slots=True)
class _Side:
    """The integers above int64, or those below it."""

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None

    def add(self, words: Words) -> None:
        if not len(words):
            return
        least, most = _extreme(words, Extreme.LEAST), _extreme(words, Extreme.MOST)
        self.count += len(words)
        self.total += _sum(words)
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)


@dataclass(slots=True)
class Beyond:
    """The integers beyond int64 that were read so far, the longest of which has `words` words of 64 bits. Several
    threads may add to them. With `sought` the elements only say of each integer whether it equals that integer, and
    with `word` they are the word of each integer with that number, the lowest being 0."""

    sought: int | None = None
    word: int | None = None
    words: int = 1
    _above: _Side = field(default_factory=_Side)
    _below: _Side = field(default_factory=_Side)
    _lock: Lock = field(default_factory=Lock)

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self._above.count or self._below.count)

    @property
    def of_all(self) -> bool:
        """Whether it makes the elements of integers that fit int64, too."""
        return self.sought is not None or self.word is not None

    def elements(self, words: Words, outside: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The elements of int64 for integers, of which those that are `outside` do not fit."""
        if self.sought is not None:
            try:
                sought = self.sought.to_bytes(8 * words.shape[1], "little", signed=True)
            except OverflowError:  # these integers are shorter
                return np.zeros(len(words), np.int64)
            wanted = np.frombuffer(sought, np.int64)
            return np.asarray((words == wanted).all(axis=1), np.int64)
        if self.word is not None:
            held = self.word < words.shape[1]
            return np.ascontiguousarray(words[:, self.word] if held else words[:, -1] >> 63)
        negative = words[:, -1] < 0
        above, below = outside & ~negative, outside & negative
        with self._lock:
            self.words = max(self.words, words.shape[1])
            self._above.add(words[above])
            self._below.add(words[below])
        return np.where(above, MOST, np.where(below, LEAST, words[:, 0]))

    def whole(self, op: Op, clamped: int, count: int) -> int:
        """The value of `op` of `count` integers whose clamped ones have the value `clamped`; `op` is a sum or an
        extreme, of magnitudes or not."""
        above, below = self._above, self._below
        if op.terms is Terms.VALUES:
            sign = -1 if op.magnitudes else 1
            return clamped + above.total - above.count * MOST + sign * (below.total - below.count * LEAST)
        if op.magnitudes:
            return max(clamped, above.most or 0, -(below.least or 0))
        if op.extreme is Extreme.LEAST:
            return _least(clamped, below.least, above.least, all_beyond=above.count == count)
        return -_least(
            -clamped,
            None if above.most is None else -above.most,
            None if below.most is None else -below.most,
            all_beyond=below.count == count,
        )


def _least(clamped: int, below: int | None, above: int | None, *, all_beyond: bool) -> int:
    """The least integer: one below int64, if there is any; one above, if all are."""
    if below is not None:
        return below
    return above if all_beyond and above is not None else clamped


def _sum(words: Words) -> int:
    total = 0
    for place, word in enumerate(_columns(words)):
        # Sums of halves fit 64 bits.
        low, high = int((word & _HALF).sum()), int((word >> 32).sum())
        total += (low + (high << 32)) << (64 * place)
    return total


def _extreme(words: Words, extreme: Extreme) -> int:
    place = words.shape[1]
    while place:
        place -= 1
        word = _columns(words)[place]
        words = words[word == (word.min() if extreme is Extreme.LEAST else word.max())]
    return int.from_bytes(words[0].tobytes(), "little", signed=True)


def _columns(words: Words) -> list[NDArray[Any]]:
    """The words of each place; the highest has the sign."""
    low, highest = words[:, :-1].view(np.uint64), words[:, -1]
    return [*low.T, highest]
