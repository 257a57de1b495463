"""Sums and means of integers over windows: differences of running sums, which wrap around at 2**64. A sum that 64 bits
hold is right all the same. Larger ones are made of the sums of the upper and of the lower halves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.parts.grouping import Index

_HALF = 32
_EXACT = 1 << 53
"""Integers of up to this magnitude are float64 themselves."""


class RunningSums:
    """Sums of `elements`, integers or truth values, over windows of up to `longest` of them."""

    def __init__(self, elements: NDArray[Any], longest: int, *, magnitudes: bool) -> None:
        if magnitudes and elements.dtype.kind == "i":
            elements = np.abs(elements).view(f"u{elements.dtype.itemsize}")  # that of the least one wraps to itself
        least, most = (int(elements.min()), int(elements.max())) if elements.size else (0, 0)
        self._parts: tuple[Index, ...]
        if max(-least, most) * longest < 1 << 63:
            self._parts = (_running(elements),)
        else:
            word = elements.dtype.type
            self._parts = _running(elements >> word(_HALF)), _running(elements & word((1 << _HALF) - 1))

    def sums(self, begins: Index, ends: Index) -> NDArray[Any]:
        """The sums of elements begins[i] to ends[i]: int64, or Python's integers where that does not hold them."""
        first, *rest = (running[ends] - running[begins] for running in self._parts)
        if not rest:
            return first
        whole = (first.astype(object) << _HALF) + rest[0]
        least, most = min(whole, default=0), max(whole, default=0)
        return whole.astype(np.int64) if least >= -(1 << 63) and most < 1 << 63 else whole

    def means(self, begins: Index, ends: Index, counts: Index) -> NDArray[np.float64]:
        """The sums divided by `counts`, which are at least 1, rounded once."""
        sums = self.sums(begins, ends)
        means = np.empty(sums.size)
        large = np.abs(sums.astype(np.float64)) >= _EXACT
        np.divide(sums, counts, out=means, where=~large, casting="unsafe")
        # Python rounds a quotient of integers once.
        means[large] = [int(total) / int(count) for total, count in zip(sums[large], counts[large], strict=True)]
        return means


def _running(elements: NDArray[Any]) -> Index:
    """The sum of the first i elements at place i, modulo 2**64."""
    running = np.zeros(elements.size + 1, np.int64)
    np.cumsum(elements.astype(np.int64, copy=False), out=running[1:])
    return running


def numbers_of(truths: NDArray[np.bool_]) -> RunningSums:
    """How many of some truths hold in windows, of which a running sum is made once for all chunks: one of the elements
    of a chunk's windows alone would begin with the first element again and again where windows expand."""
    return RunningSums(truths, truths.size, magnitudes=False)
