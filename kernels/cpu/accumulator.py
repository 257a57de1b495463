"""Exact accumulators of the CPU. They take arrays and return an `ExactState`, and each serves one thread."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Folded, One
from warpfold.kernels.aggregates.float_words import FloatWords, is_half, is_narrow
from warpfold.kernels.aggregates.integer_sum import IntegerSum
from warpfold.kernels.aggregates.patterns import readable
from warpfold.kernels.cpu.claims import ClaimJob, Claims
from warpfold.kernels.cpu.interpreted import InterpretedSum
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import Terms

_NARROW = 1 << 16
"""Elements of 16 bits that are made words by one call. Four times as few took half as long again."""


class Accumulator(Protocol):
    """Adds the elements of arrays of one dtype: their values, magnitudes or squares; or the products x[i] · y[i] of
    arrays of two."""

    def add(self, *arrays: NDArray[Any]) -> Flags:
        """Add the elements of an array, or the products of those of two, shape (n,), native byte order. Returns the
        flags of these terms alone."""
        ...

    def state(self) -> ExactState:
        """The state of all that was added so far."""
        ...


def accumulator(
    dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool = False, compiled: bool = True
) -> Accumulator:
    """An empty accumulator of `terms` of elements of one dtype, or of products of elements of two, both floats or
    neither; with `magnitudes` it adds |x| for x. One that is not `compiled` is slower, and needs no compiler."""
    assert len({dtype.is_float for dtype in dtypes}) == 1, f"{dtypes} are floats, or none is"
    if not compiled:
        return InterpretedSum(terms, magnitudes=magnitudes)
    if not dtypes[0].is_float:
        return IntegerAccumulator(dtypes, terms, magnitudes=magnitudes)
    return _FloatPairs(*dtypes) if len(dtypes) == 2 else FloatAccumulator(dtypes[0], terms, magnitudes=magnitudes)


class FloatAccumulator:
    """The compiled windows of `kernels.cpu.windows` and their working space."""

    def __init__(self, dtype: DType, terms: Terms, *, magnitudes: bool) -> None:
        from warpfold.kernels.cpu import windows

        self._most = windows.MAX_ELEMENTS
        self._terms = terms
        self._squares = terms is Terms.PRODUCTS
        self._unsigned = magnitudes or self._squares
        self._limbs = np.zeros(windows.LIMBS, dtype=np.int64)
        self._flags = Flags.NONE
        self._count = 0
        self._origin = ORIGIN[terms]
        self._bits = np.dtype(f"int{8 * dtype.itemsize}")
        self._keep = np.iinfo(np.int64 if dtype.itemsize == 8 else np.int32).max if magnitudes else -1
        self._half = is_half(dtype)
        self._add: Callable[..., int]
        self._masks: tuple[Any, ...]
        self._space: tuple[Any, ...]
        self._arrays: tuple[NDArray[Any], ...]
        if dtype.itemsize == 8:
            self._add = windows.add_float64
            self._masks = (self._keep,)
            tiles = [np.empty(windows.TILE64, dtype) for dtype in (np.float64, np.float64, np.int64)]
            fields = tuple(np.zeros(windows.FIELDS64, dtype) for dtype in (np.uint64, np.int16))
            self._space, self._arrays = (*tiles, fields), (*tiles, *fields)
            return
        self._add, self._masks = windows.add_float32, (np.int32(self._keep),)
        self._space = np.empty(windows.TILE32), np.empty(windows.TILE32, np.int32)
        if is_narrow(dtype):
            self._add, self._masks = windows.add_narrow, (self._half, np.int32(self._keep))
            self._space += (np.empty(windows.NARROW, np.int32),)
        self._arrays = self._space

    def add(self, *arrays: NDArray[Any]) -> Flags:
        bits = readable(arrays[0], self._bits)
        codes = 0
        for at in range(0, bits.size, self._most):
            part = bits[at : at + self._most]
            codes |= self._add(part, *self._masks, self._squares, self._origin, self._limbs, *self._space)
        return self._noted(Flags(codes), bits.size)

    def claiming(self, claims: Claims) -> ClaimJob:
        """A job that adds the elements of all pieces that no other thread takes, of which `claims` are. Its sum counts
        when `claimed` has taken it in."""
        from warpfold.kernels.cpu.windows import jobs

        elements = claims.elements()
        bits = readable(elements, self._bits)
        words = np.zeros(jobs.WORDS, np.int64)
        words[jobs.FUNCTION] = jobs.compiled(self._bits.itemsize).address
        words[jobs.CONTROL : jobs.CONTROL + 3] = claims.control, bits.ctypes.data, bits.size
        words[jobs.SQUARES : jobs.SQUARES + 3] = self._squares, self._origin, self._limbs.ctypes.data
        words[jobs.KEEP], words[jobs.HALF] = self._keep, self._half
        space = [array.ctypes.data for array in self._arrays]
        words[jobs.SPACE : jobs.SPACE + len(space)] = space
        return ClaimJob(words, bits)

    def claimed(self, job: ClaimJob) -> None:
        """Count what a job, which is done, has added."""
        from warpfold.kernels.cpu.windows import jobs

        self._noted(Flags(int(job.words[jobs.FLAGS])), int(job.words[jobs.COUNT]))

    def _noted(self, flags: Flags, count: int) -> Flags:
        """Count elements that were added and their flags, which are returned as they are of such terms."""
        if self._unsigned and count:
            # Squares and magnitudes are neither −0 nor −∞.
            infinite = Flags.POS_INF if flags & (Flags.POS_INF | Flags.NEG_INF) else Flags.NONE
            flags = (flags & Flags.NAN) | infinite | Flags.NOT_NEGATIVE_ZERO
        self._flags |= flags
        self._count += count
        return flags

    def state(self) -> ExactState:
        return ExactState(self._terms, units_of(self._limbs), self._count, self._flags)


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

    def add(self, *arrays: NDArray[Any]) -> Flags:
        codes = 0
        for at in range(0, arrays[0].size, self._most):
            some = slice(at, at + self._most)
            left, right = (words.of(array[some]) for array, words in zip(arrays, self._words, strict=True))
            codes |= self._add(left, right, *self._fraction, self._origin, self._limbs, *self._space)
        self._flags |= Flags(codes)
        self._count += arrays[0].size
        return Flags(codes)

    def state(self) -> ExactState:
        return ExactState(Terms.PRODUCTS, units_of(self._limbs), self._count, self._flags)


class IntegerAccumulator:
    """The elements of one array, or the products of two, as the only group of an exact sum of integers."""

    def __init__(self, dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool = False) -> None:
        self._sum = IntegerSum(dtypes, terms, magnitudes=magnitudes)
        self._folded = Folded(self._sum, 1)

    def add(self, *arrays: NDArray[Any]) -> Flags:
        self._folded.update(tuple(np.ascontiguousarray(array) for array in arrays), One())
        return Flags.NOT_NEGATIVE_ZERO if arrays[0].size else Flags.NONE

    def state(self) -> ExactState:
        count = int(self._sum.counts(self._folded.state)[0])
        return self._sum.sums(self._folded.state).state(0, count) if count else ExactState.empty(self._sum.terms)


def units_of(limbs: NDArray[np.int64]) -> int:
    """The integer whose resolved digits are `limbs`, the last one with its sign."""
    digits = int.from_bytes(limbs[:-1].astype("<u4").tobytes(), "little")
    return (int(limbs[-1]) << (32 * (limbs.size - 1))) + digits
