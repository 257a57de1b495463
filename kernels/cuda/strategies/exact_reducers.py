"""Exact sums on the GPU as reducers: each value is rounded once, from integers.

Floats go to the exact accumulator. Sums of integers are exact in a strategy of our own.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from warpfold.kernels.cuda.exact import ExactAccumulator, ExactDot, ExactIntegerDot, ExactMoments
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.widening import widened
from warpfold.kernels.cuda.strategies.own import OwnReducer, OwnStrategy
from warpfold.kernels.cuda.strategies.partial_results import of_integer
from warpfold.kernels.cuda.strategies.strategy import Finished
from warpfold.kernels.dtypes import DTYPES, DType, common_float
from warpfold.kernels.exact import ExactState, Flags, deviation, variance
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.ops import OPS, SUMS_OF_MOMENTS, Finish, Op
from warpfold.kernels.ops.operands import check_freedom, result_dtype


class ExactReducer(ABC):
    """A sum that with `omit_nan` leaves NaN elements out by itself, and counts them."""

    def __init__(self, *, omit_nan: bool) -> None:
        self._omit_nan = omit_nan
        self._added = 0

    @abstractmethod
    def _states(self) -> tuple[ExactState, ...]: ...

    def omitted(self) -> int:
        """How many elements, or pairs, are left out; waits for the work."""
        return self._added - self._states()[0].count if self._omit_nan else 0

    @abstractmethod
    def finish(self, count: int) -> Finished:
        """The value over `count` ≥ 1 elements, those left out not counted."""


class ExactSum(ExactReducer):
    """Sum, mean, norm1, sum of squares or norm2 of floats."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._op, self._dtype = op, dtype
        self._accumulator = ExactAccumulator(gpu, dtype, op.terms, magnitudes=op.magnitudes)

    def add(self, arrays: Sequence[Any], first: int) -> None:
        (array,) = arrays
        self._added += int(array.size)
        self._accumulator.add(array)

    def _states(self) -> tuple[ExactState, ...]:
        return (self._accumulator.state(omit_nan=self._omit_nan),)

    def finish(self, count: int) -> Finished:
        (state,) = self._states()
        assert state.count == count, f"{state.count} elements were added, not {count}"
        return Finished(value_of(self._op, state, self._op.result_dtype(self._dtype)), True, state)


class ExactSpread(ExactReducer):
    """Variance or standard deviation of floats, from one read."""

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, ddof: int, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._op, self._dtype, self._ddof = op, dtype, ddof
        self._accumulator = ExactMoments(gpu, dtype)

    def add(self, arrays: Sequence[Any], first: int) -> None:
        (array,) = arrays
        self._added += int(array.size)
        self._accumulator.add(array)

    def _states(self) -> tuple[ExactState, ExactState]:
        return self._accumulator.states(omit_nan=self._omit_nan)

    def finish(self, count: int) -> Finished:
        return spread(self._op, self._states(), self._ddof, DTYPES[self._op.result_dtype(self._dtype)])


class ExactPairs(ExactReducer):
    """The dot product of two arrays of floats, of different formats too, or of two of integers and truth values."""

    def __init__(self, gpu: Gpu, op: Op, left: DType, right: DType, *, omit_nan: bool = False) -> None:
        super().__init__(omit_nan=omit_nan)
        self._gpu, self._op, self._dtypes = gpu, op, (left, right)
        self._wide = common_float(left, right) if left.is_float else None
        self._accumulator = ExactIntegerDot(gpu, left, right) if self._wide is None else ExactDot(gpu, self._wide)

    def add(self, arrays: Sequence[Any], first: int) -> None:
        left, right = arrays
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


class ExactIntegers:
    """Sums of integers and truth values, exact in any strategy of our own, with their state."""

    def __init__(self, reducer: OwnReducer, op: Op) -> None:
        self._reducer, self._op = reducer, op

    def add(self, arrays: Sequence[Any], first: int) -> None:
        self._reducer.add(arrays, first)

    def omitted(self) -> int:
        """0: no integer is NaN."""
        return 0

    def finish(self, count: int) -> Finished:
        total = sum(partial.integer() for partial in self._reducer.partial_results())
        state = ExactState.from_limbs(self._op.terms, (total,), 0, count, Flags.NOT_NEGATIVE_ZERO)
        return Finished(of_integer(self._op, total, count), True, state)


class IntegerSpread:
    """Variance or standard deviation of integers and truth values, whose sums are exact in a strategy of our own."""

    def __init__(self, gpu: Gpu, own: OwnStrategy, op: Op, dtype: DType, ddof: int, *, pieces: int) -> None:
        self._op, self._ddof = op, ddof
        self._sums = tuple(OwnReducer(gpu, own, OPS[name], dtype, pieces=pieces) for name in SUMS_OF_MOMENTS)

    def add(self, arrays: Sequence[Any], first: int) -> None:
        for reducer in self._sums:
            reducer.add(arrays, first)

    def omitted(self) -> int:
        """0: no integer is NaN."""
        return 0

    def finish(self, count: int) -> Finished:
        values, squares = (
            ExactState.from_limbs(
                OPS[name].terms,
                (sum(partial.integer() for partial in reducer.partial_results()),),
                0,
                count,
                Flags.NOT_NEGATIVE_ZERO,
            )
            for name, reducer in zip(SUMS_OF_MOMENTS, self._sums, strict=True)
        )
        return spread(self._op, (values, squares), self._ddof, DTYPES["float64"])


def spread(op: Op, states: tuple[ExactState, ExactState], ddof: int, dtype: DType) -> Finished:
    """Variance or standard deviation, whichever `op` is, from the states of values and of squares.

    Raises InvalidInput where `ddof` leaves nothing to divide by. The result has no state: one exact state cannot hold
    both sums.
    """
    check_freedom(op, states[0].count, ddof)
    finish = variance if op.finish is Finish.VARIANCE else deviation
    return Finished(finish(*states, ddof, dtype), True)
