"""Exact accumulators of the CPU. They take arrays and return an `ExactState`, and each serves one thread."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.aggregate import Folded, One
from warpfold.kernels.aggregates.float_words import FloatWords, is_half
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
    assert dtypes[0].is_float == dtypes[-1].is_float, f"{dtypes} are floats, or none is"
    if not compiled:
        return InterpretedSum(terms, magnitudes=magnitudes)
    if not dtypes[0].is_float:
        return IntegerAccumulator(dtypes, terms, magnitudes=magnitudes)
    return FloatAccumulator(dtypes, terms, magnitudes=magnitudes)


class FloatAccumulator:
    """The compiled windows of `kernels.cpu.windows` and their working space. The narrower array of a pair is widened to
    the words of the other."""

    def __init__(self, dtypes: Sequence[DType], terms: Terms, *, magnitudes: bool) -> None:
        from warpfold.kernels.cpu.windows import LIMBS, MAX_ELEMENTS, adding

        self._most = MAX_ELEMENTS
        self._terms, self._origin = terms, ORIGIN[terms]
        self._squares = terms is Terms.PRODUCTS
        self._unsigned = magnitudes or (self._squares and len(dtypes) == 1)
        self._limbs = np.zeros(LIMBS, dtype=np.int64)
        self._flags = Flags.NONE
        self._count = 0
        width, self._half = dtypes[0].itemsize, is_half(dtypes[0])
        self._keep = adding.mask_of(width, magnitudes=magnitudes)
        self._bits = np.dtype(f"int{8 * width}")
        self._words: tuple[FloatWords, ...] = ()
        self._masks: tuple[Any, ...] = ()
        if len(dtypes) == 1:
            self._masks = self._keep, self._squares
            self._add, self._space = adding.adding(width), adding.working_space(width, half=self._half)
            return
        width = 8 if common_float(*dtypes) is DTYPES["float64"] else 4
        self._words = tuple(FloatWords(dtype, double=width == 8) for dtype in dtypes)
        if not dtypes[0].itemsize > 2 < dtypes[1].itemsize:
            self._most = _NARROW
        fraction = sum(dtype.precision - 1 for dtype in dtypes)
        self._add, self._space = adding.adding_products(width), adding.space_of_products(width, fraction)

    def add(self, *arrays: NDArray[Any]) -> Flags:
        codes, size = 0, arrays[0].size
        for at in range(0, size, self._most):
            some = slice(at, at + self._most)
            if self._words:
                words = [each.of(array[some]) for each, array in zip(self._words, arrays, strict=True)]
            else:
                words = [readable(arrays[0][some], self._bits)]
            codes |= self._add(*words, *self._masks, self._origin, self._limbs, *self._space)
        return self._noted(Flags(codes), size)

    def claiming(self, claims: Claims) -> ClaimJob:
        """A job that adds the elements of all pieces that no other thread takes, of which `claims` are; of one array.
        Its sum counts when `claimed` has taken it in."""
        from warpfold.kernels.cpu.windows import adding, jobs

        elements = claims.elements()
        bits = readable(elements, self._bits)
        words = np.zeros(jobs.WORDS, np.int64)
        words[jobs.FUNCTION] = jobs.compiled(self._bits.itemsize).address
        words[jobs.CONTROL : jobs.CONTROL + 3] = claims.control, bits.ctypes.data, bits.size
        words[jobs.SQUARES : jobs.SQUARES + 3] = self._squares, self._origin, self._limbs.ctypes.data
        words[jobs.KEEP], words[jobs.HALF] = self._keep, self._half
        space = [array.ctypes.data for array in adding.arrays_of(self._space)]
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
