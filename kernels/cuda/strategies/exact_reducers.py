"""Exact sums on the GPU as reducers: each value is rounded once, from integers.

Floats go to the exact accumulator, and so do products of integers. Other sums of integers are exact in a strategy of
our own.
"""

from collections.abc import Sequence
from typing import Any

from warpfold.kernels.cuda.exact import ExactAccumulator, ExactIntegerDot, SumKind
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.staging.widening import widened
from warpfold.kernels.cuda.strategies.own import OwnReducer, OwnStrategy
from warpfold.kernels.cuda.strategies.strategy import Finished
from warpfold.kernels.dtypes import DType, common_float
from warpfold.kernels.exact import ExactState, Flags
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.ops import OPS, SUMS_OF_MOMENTS, Op, Terms, terms_of
from warpfold.kernels.ops.operands import check_freedom, result_dtype


def kind_of(op: Op) -> SumKind:
    """The kind of sum that the exact kernels compute for an op that adds."""
    match op.terms:
        case Terms.MOMENTS:
            return SumKind.MOMENTS
        case Terms.PRODUCTS:
            return SumKind.PRODUCTS if op.sources == 2 else SumKind.SQUARES
    return SumKind.MAGNITUDES if op.magnitudes else SumKind.VALUES


class ExactFloats:
    """An op that adds floats of one source, or products of two of floats, of different formats too, or of integers and
    truth values. With `omit_nan` it leaves NaN elements out by itself, and counts them."""

    def __init__(self, gpu: Gpu, op: Op, dtypes: Sequence[DType], ddof: int = 0, *, omit_nan: bool = False) -> None:
        self._gpu, self._op, self._dtypes, self._ddof = gpu, op, tuple(dtypes), ddof
        self._omit_nan, self._added = omit_nan, 0
        self._accumulator: ExactAccumulator | ExactIntegerDot
        if dtypes[0].is_float:
            self._wide = common_float(dtypes[0], dtypes[-1])
            self._accumulator = ExactAccumulator(gpu, self._wide, kind_of(op))
        else:
            self._accumulator = ExactIntegerDot(gpu, *dtypes)

    def add(self, arrays: Sequence[Any], first: int) -> None:
        self._added += int(arrays[0].size)
        if self._dtypes[0].is_float:
            arrays = [
                widened(self._gpu, part, dtype, self._wide) for part, dtype in zip(arrays, self._dtypes, strict=True)
            ]
        self._accumulator.add(*arrays)

    def _states(self) -> tuple[ExactState, ...]:
        return self._accumulator.states(omit_nan=self._omit_nan)

    def omitted(self) -> int:
        """How many elements, or pairs, are left out; waits for the work."""
        return self._added - self._states()[0].count if self._omit_nan else 0

    def finish(self, count: int) -> Finished:
        """The value over `count` ≥ 1 elements, those left out not counted."""
        states = self._states()
        assert states[0].count == count, f"{states[0].count} elements were added, not {count}"
        return finished(self._op, states, result_dtype(self._op, *self._dtypes), self._ddof)


class ExactIntegers:
    """An op that adds integers or truth values of one source: its sums are exact in any strategy of our own."""

    def __init__(self, gpu: Gpu, own: OwnStrategy, op: Op, dtype: DType, ddof: int = 0, *, pieces: int = 1) -> None:
        self._op, self._result, self._ddof = op, op.result_dtype(dtype), ddof
        names = SUMS_OF_MOMENTS if op.terms is Terms.MOMENTS else (op.name,)
        self._sums = [OwnReducer(gpu, own, OPS[name], dtype, pieces=pieces) for name in names]

    def add(self, arrays: Sequence[Any], first: int) -> None:
        for reducer in self._sums:
            reducer.add(arrays, first)

    def omitted(self) -> int:
        """0: no integer is NaN."""
        return 0

    def finish(self, count: int) -> Finished:
        totals = [sum(partial.integer() for partial in reducer.partial_results()) for reducer in self._sums]
        states = [
            ExactState.from_limbs(terms, (total,), 0, count, Flags.NOT_NEGATIVE_ZERO)
            for terms, total in zip(terms_of(self._op), totals, strict=True)
        ]
        return finished(self._op, states, self._result, self._ddof)


def finished(op: Op, states: Sequence[ExactState], result: str, ddof: int) -> Finished:
    """The value of `op` as a dtype named `result`, and the state if it is a single one: that of a variance cannot hold
    both sums. Raises InvalidInput where `ddof` leaves nothing to divide by."""
    check_freedom(op, states[0].count, ddof)
    return Finished(value_of(op, states, result, ddof), True, states[0] if len(states) == 1 else None)
