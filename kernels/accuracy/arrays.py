"""The arrays of a study: each is made once, kept while the cases on it follow each other, and permuted on demand."""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.accuracy import loops
from warpfold.kernels.accuracy.exactly import Truth, truth
from warpfold.kernels.cpu.memory import require
from warpfold.kernels.source import GeneratedSource

_HAND = 1 << 17
_MOST_HANDS = 256


def permuted(array: NDArray[Any], seed: int, number: int) -> NDArray[Any]:
    """Order `number` of `array`, shape (n,), a copy. Arrays of one length are permuted alike.

    The random words are NumPy's Philox with the key (seed, number). An index below m has a probability within 2⁻³² of
    1/m.
    """
    words = np.random.Generator(np.random.Philox(key=seed + (number << 64)))
    patterns = np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}")
    hands = min(_MOST_HANDS, 1 << max(0, (array.size // _HAND - 1).bit_length()))
    dealt = words.integers(0, hands, size=array.size, dtype=np.uint8, endpoint=False)
    out = np.empty_like(patterns)
    starts = loops.deal(patterns, dealt, hands, out)
    for start, stop in pairwise(starts):
        hand = out[start:stop]
        loops.shuffle(hand, words.integers(0, 1 << 32, size=hand.size, dtype=np.uint32))
    return out.view(array.dtype)


KEPT_BYTES = 1_700_000_000
"""Bytes of permuted arrays that are kept for the next method, such as 8 of 50 million float32. Others are made again,
which takes a second for 50 million."""

BYTES_AN_ELEMENT = 12
"""Multiples of the elements' own size (a float32's at least) that a study takes, without the kept orders: a copy to
sort and its target, the terms, and their float64 images. `benchmarks/accuracy.py` prints the sum."""

SourceOf = Callable[[str, str, int], GeneratedSource]
"""The array of (distribution, dtype, n)."""

_OTHER_SEED = 1  # the seed of dot's second array, added to that of the first


class Arrays:
    """One array `x` of shape (n,), for dot a second one `y`, and what is known of them."""

    def __init__(self, source: GeneratedSource) -> None:
        """Raises OutOfMemory where a study of it would not fit in memory."""
        self.dtype = source.dtype
        needed = BYTES_AN_ELEMENT * source.count * max(4, source.dtype.itemsize)
        require(needed, f"an accuracy study of {source.count:,} elements of {source.dtype.name}")
        self._source = source
        self.x = source.read(0, source.count)
        self._truths: dict[str, Truth] = {}
        self._references: dict[str, float] = {}
        self._kept: dict[tuple[str, int], NDArray[Any]] = {}

    @cached_property
    def y(self) -> NDArray[Any]:
        """The second array of dot."""
        first = self._source
        seed = (first.seed + _OTHER_SEED) % (1 << 64)
        other = GeneratedSource(first.distribution, first.count, seed, first.dtype, first.parameters)
        return other.read(0, other.count)

    def operands(self, op: str) -> tuple[NDArray[Any], ...]:
        """The arguments of `op`: x, and y for dot."""
        return (self.x, self.y) if op == "dot" else (self.x,)

    def permuted(self, op: str, number: int) -> tuple[NDArray[Any], ...]:
        """The operands in random order `number`, the same for both."""
        names = ("x", "y") if op == "dot" else ("x",)
        return tuple(self._permuted(name, number) for name in names)

    def truth(self, op: str) -> Truth:
        """The true value; see `kernels.accuracy.exactly`."""
        if op not in self._truths:
            self._truths[op] = truth(op, self.x, self.y if op == "dot" else None, self.dtype)
        return self._truths[op]

    def reference(self, op: str) -> float:
        """The reference of the course report: NumPy's answer for the elements in float64."""
        if op not in self._references:
            wide = [array.astype(np.float64) for array in self.operands(op)]
            with np.errstate(all="ignore"):
                self._references[op] = float(_REFERENCES[op](*wide))
        return self._references[op]

    def _permuted(self, name: str, number: int) -> NDArray[Any]:
        key = (name, number)
        if key in self._kept:
            return self._kept[key]
        made = permuted(getattr(self, name), self._source.seed, number)
        if sum(array.nbytes for array in self._kept.values()) + made.nbytes <= KEPT_BYTES:
            self._kept[key] = made
        return made


_REFERENCES: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "dot": np.dot,
    "norm2": lambda x: np.sqrt(np.sum(np.square(x))),
    "prod": np.prod,
}
