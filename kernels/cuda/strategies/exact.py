"""Exact sums on the GPU as methods of the backend: each value is rounded once, from integers.

Floats go to the exact accumulator. Sums of integers are exact in a strategy of our own.
"""

from abc import ABC, abstractmethod
from typing import Any

from warpfold.kernels.cuda.exact import ExactAccumulator, ExactDot, ExactIntegerDot, ExactMoments
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.widening import widened
from warpfold.kernels.cuda.strategies import FAST, own_strategies
from warpfold.kernels.cuda.strategies.reducer import ExactIntegers, Finished, Method, OwnMethod
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ExactState, Flags, deviation, variance
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.operands import Operands, check_freedom, result_dtype
from warpfold.kernels.ops import OPS, Finish, Op, Terms


def exact_method(gpu: Gpu, op: Op, taken: Operands, *, pieces: int, omit_nan: bool = False) -> "Method | ExactPairs":
    """The exact computation of an op that adds something up, of at most so many `pieces`."""
    dtype = taken.source.dtype
    if op.sources == 2:
        left, right = taken.both
        return ExactPairs(gpu, op, left.dtype, right.dtype, omit_nan=omit_nan)
    if not dtype.is_float:
        return exact_integers(gpu, op, dtype, taken.ddof, pieces=pieces)
    if op.terms is Terms.MOMENTS:
        return ExactSpread(gpu, op, dtype, taken.ddof, omit_nan=omit_nan)
    return ExactSum(gpu, op, dtype, omit_nan=omit_nan)


def exact_integers(gpu: Gpu, op: Op, dtype: DType, ddof: int = 0, *, pieces: int = 1) -> Method:
    """The same for an op of one array of integers or truth values."""
    if op.terms is Terms.MOMENTS:
        return IntegerSpread(gpu, op, dtype, ddof, pieces=pieces)
    return ExactIntegers(OwnMethod(gpu, own_strategies()[FAST], op, dtype, pieces=pieces), op)


class ExactMethod(ABC):
    """A sum that leaves NaN elements out by itself if `omit_nan`, and counts them."""

    def __init__(self, *, omit_nan: bool) -> None:
        self._omit_nan = omit_nan
        self._added = 0

    @abstractmethod
    def _states(self) -> tuple[ExactState, ...]: ...

    @property
    def omitted(self) -> int:
        """How many elements, or pairs, are left out; waits for the work."""
        return self._added - self._states()[0].count if self._omit_nan else 0

    @abstractmethod
    def finish(self, count: int) -> Finished:
        """The value over `count` ≥ 1 elements, those left out not counted."""


class ExactSum(ExactMethod):
    """Sum, mean, norm1, sum of squares or norm2 of floats."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._op, self._dtype = op, dtype
        self._accumulator = ExactAccumulator(gpu, dtype, op.terms, magnitudes=op.magnitudes)

    def add(self, array: Any, first: int) -> None:
        self._added += int(array.size)
        self._accumulator.add(array)

    def _states(self) -> tuple[ExactState, ...]:
        return (self._accumulator.state(omit_nan=self._omit_nan),)

    def finish(self, count: int) -> Finished:
        (state,) = self._states()
        assert state.count == count, f"{state.count} elements were added, not {count}"
        return Finished(value_of(self._op, state, self._op.result_dtype(self._dtype)), True, state)


class ExactSpread(ExactMethod):
    """Variance or standard deviation of floats, from one read."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, ddof: int, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._op, self._dtype, self._ddof = op, dtype, ddof
        self._accumulator = ExactMoments(gpu, dtype)

    def add(self, array: Any, first: int) -> None:
        self._added += int(array.size)
        self._accumulator.add(array)

    def _states(self) -> tuple[ExactState, ExactState]:
        return self._accumulator.states(omit_nan=self._omit_nan)

    def finish(self, count: int) -> Finished:
        return spread(self._op, self._states(), self._ddof, DTYPES[self._op.result_dtype(self._dtype)])


class ExactPairs(ExactMethod):
    """The dot product of two arrays of floats, of different formats too, or of two of integers and truth values."""

    def __init__(self, gpu: Gpu, op: Op, left: DType, right: DType, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._gpu, self._op, self._dtypes = gpu, op, (left, right)
        self._wide = common_float(left, right) if left.is_float else None
        self._accumulator = ExactIntegerDot(gpu, left, right) if self._wide is None else ExactDot(gpu, self._wide)

    def add_pairs(self, left: Any, right: Any) -> None:
        """Take in two CuPy arrays of one dimension and of one length."""
        self._added += int(left.size)
        if self._wide is not None:
            left, right = (
                widened(self._gpu, part, dtype, self._wide)
                for part, dtype in zip((left, right), self._dtypes, strict=True)
            )
        self._accumulator.add(left, right)

    def _states(self) -> tuple[ExactState, ...]:
        return (self._accumulator.state(omit_nan=self._omit_nan),)

    def finish(self, count: int) -> Finished:
        (state,) = self._states()
        assert state.count == count, f"{state.count} pairs were added, not {count}"
        return Finished(value_of(self._op, state, result_dtype(self._op, *self._dtypes)), True, state)


class IntegerSpread:
    """Variance or standard deviation of integers and truth values, whose sums are exact in a strategy of our own."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, ddof: int, *, pieces: int) -> None:
        self._op, self._ddof = op, ddof
        own = own_strategies()[FAST]
        self._sums = tuple(OwnMethod(gpu, own, OPS[name], dtype, pieces=pieces) for name in ("sum", "sum_squares"))

    def add(self, array: Any, first: int) -> None:
        for method in self._sums:
            method.add(array, first)

    def finish(self, count: int) -> Finished:
        values, squares = (
            ExactState.from_limbs(
                OPS[name].terms,
                (sum(outcome.integer() for outcome in method.outcomes()),),
                0,
                count,
                Flags.NOT_NEGATIVE_ZERO,
            )
            for name, method in zip(("sum", "sum_squares"), self._sums, strict=True)
        )
        return spread(self._op, (values, squares), self._ddof, DTYPES["float64"])


def spread(op: Op, states: tuple[ExactState, ExactState], ddof: int, dtype: DType) -> Finished:
    """Variance or standard deviation, whichever `op` is, from the states of values and of squares.

    Raises InvalidInput where `ddof` leaves nothing to divide by. One state has not both sums: there is none.
    """
    check_freedom(op, states[0].count, ddof)
    finish = variance if op.finish is Finish.VARIANCE else deviation
    return Finished(finish(*states, ddof, dtype), True)
