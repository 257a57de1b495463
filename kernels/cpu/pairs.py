"""Exact accumulators of the products of two arrays. Each serves one thread."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.float_words import FloatWords
from warpfold.kernels.cpu.accumulator import IntegerAccumulator, units_of
from warpfold.kernels.cpu.interpreted import InterpretedPairs
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import Terms

_NARROW = 1 << 16
"""Elements of 16 bits that are made words by one call. Four times as few took half as long again."""


class PairAccumulator(Protocol):
    """Adds x[i] · y[i] of arrays of two dtypes."""

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> Flags:
        """Add the products of `x` and `y`, both of shape (n,), native byte order. Returns the flags of these products
        alone."""
        ...

    def state(self) -> ExactState:
        """The state of all that was added so far."""
        ...


def pair_accumulator(x: DType, y: DType, *, compiled: bool = True) -> PairAccumulator:
    """An empty accumulator of products of elements of two dtypes, both floats or neither. One that is not `compiled` is
    slower, and needs no compiler."""
    assert x.is_float == y.is_float, f"{x.name}, {y.name}"
    if not compiled:
        return InterpretedPairs()
    return _FloatPairs(x, y) if x.is_float else IntegerAccumulator((x, y), Terms.PRODUCTS)


class _FloatPairs:
    """The compiled windows of `kernels.cpu.windows` for pairs of floats of up to 32 bits, or for pairs of float64. The
    narrower array of a pair is widened to float64."""

    def __init__(self, x: DType, y: DType) -> None:
        from warpfold.kernels.cpu import windows

        self._most = windows.MAX_ELEMENTS if x.itemsize > 2 < y.itemsize else _NARROW
        double = common_float(x, y) is DTYPES["float64"]
        self._words = FloatWords(x, double=double), FloatWords(y, double=double)
        self._limbs = np.zeros(windows.LIMBS, dtype=np.int64)
        self._flags = Flags.NONE
        self._count = 0
        self._origin = ORIGIN[Terms.PRODUCTS]
        self._fraction: tuple[int, ...] = ()
        self._space: tuple[NDArray[Any], ...]
        self._add: Callable[..., int]
        if double:
            self._add = windows.add_float64_products
            words = (np.empty(windows.TILE64, dtype=np.int64) for _ in range(2))
            self._space = (np.empty(windows.TILE64), np.empty(windows.TILE64), *words)
        else:
            self._add = windows.add_float32_products
            self._fraction = (x.precision + y.precision - 2,)
            words = (np.empty(windows.TILE32, np.int32) for _ in range(2))
            self._space = (np.empty(windows.TILE32), *words)

    def add(self, x: NDArray[Any], y: NDArray[Any]) -> Flags:
        codes = 0
        for at in range(0, x.size, self._most):
            some = slice(at, at + self._most)
            left, right = (words.of(array[some]) for array, words in zip((x, y), self._words, strict=True))
            codes |= self._add(left, right, *self._fraction, self._origin, self._limbs, *self._space)
        self._flags |= Flags(codes)
        self._count += x.size
        return Flags(codes)

    def state(self) -> ExactState:
        return ExactState(Terms.PRODUCTS, units_of(self._limbs), self._count, self._flags)
