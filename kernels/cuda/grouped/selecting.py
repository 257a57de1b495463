"""Ops along axes and by segments on a GPU that leave words of each value (`folds.py`), which become values here.

They select, test or count elements, or add integers or their products. Sums of floats are rounded on the GPU
(`values.py`, `totals.py`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.grouped.folds import COUNT_NAN, DOT, GroupedFolds
from warpfold.kernels.cuda.grouped.layouts import Layout, Other
from warpfold.kernels.cuda.grouped.states import sums_of_integers
from warpfold.kernels.cuda.strategies.partial_results import NOWHERE, of_count, of_integer, reduction_of
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import OPS, Op, Terms, Value


class GroupedOp:
    """An op of the values of a layout of `array`, a CuPy array of one dimension, but no sum of floats; `other` is the
    second array of an op of two.

    With `omit_nan` elements that are NaN are left out. To be used while `gpu.active()`."""

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, array: Any, layout: Layout, dtype: DType, op: Op, ddof: int = 0,
        *, omit_nan: bool = False, other: Other | None = None,
    ) -> None:  # fmt: skip
        self._op, self._dtype, self._ddof = op, dtype, ddof
        self._nans: GroupedFolds | None = None
        ops = [OPS[name] for name in ("sum", "sum_squares")] if op.terms is Terms.MOMENTS else [op]
        names = [DOT] if other is not None else [reduction_of(part, dtype) for part in ops]
        self._folds = tuple(
            GroupedFolds(gpu, array, layout, dtype, name, omit_nan=omit_nan, other=other) for name in names
        )
        if omit_nan and dtype.is_float:
            self._nans = GroupedFolds(gpu, array, layout, dtype, COUNT_NAN)

    @property
    def kernel(self) -> str:
        """The name of what the shape chose."""
        return self._folds[0].kernel

    def start(self) -> None:
        """Have all values folded."""
        for part in (*self._folds, self._nans):
            if part is not None:
                part.start()

    def omitted(self) -> NDArray[np.int64]:
        """How many elements were left out of each value; waits for the work."""
        if self._nans is not None:
            return self._nans.words()[:, 0].astype(np.int64)
        return np.zeros(1, np.int64)

    def values(self, counts: NDArray[np.int64]) -> list[Value]:
        """The values, where `counts` elements entered each; arbitrary where these are too few for a value."""
        words = [part.words() for part in self._folds]
        if self._op.terms is Terms.MOMENTS:
            return spreads_of_integers(self._op, words, counts, self._ddof)
        if self._op.sources > 1:
            return list(_integers(words[0]))
        return _of_words(self._op, self._dtype, words[0], counts.tolist())

    def states(self, counts: NDArray[np.int64]) -> tuple[StateColumn, ...]:
        """The exact states of the values of an op that adds integers up, where `counts` elements entered each."""
        sums = sums_of_integers(self._op, [part.words() for part in self._folds])
        return tuple(each.states(counts) for each in sums)


def spreads_of_integers(
    op: Op, words: Sequence[NDArray[np.uint64]], counts: NDArray[np.int64], ddof: int
) -> list[Value]:
    """Variances or standard deviations, rounded once to float64, of so many integers each, of whose sums and sums of
    squares `words` has the words; arbitrary of no more than `ddof` integers."""
    values: list[Value] = ValueFinish(op, "float64", ddof).values(sums_of_integers(op, words), counts).tolist()
    return values


def _integers(words: NDArray[np.uint64]) -> list[int]:
    """Two's-complement integers whose words, lowest first, are the rows."""
    last = words.shape[1] - 1
    total: list[int] = words[:, last].view(np.int64).tolist() if last == 0 else _signed(words[:, last])
    for place in range(last - 1, -1, -1):
        total = [(high << 64) + low for high, low in zip(total, words[:, place].tolist(), strict=True)]
    return total


def _signed(column: NDArray[np.uint64]) -> list[int]:
    signed: list[int] = np.ascontiguousarray(column).view(np.int64).tolist()
    return signed


def _of_words(op: Op, dtype: DType, words: NDArray[np.uint64], counts: Sequence[int]) -> list[Value]:
    """The value of each row of words; any value where the count is 0."""
    first = np.ascontiguousarray(words[:, 0])
    truth = op.result_dtype(dtype) == "bool"
    match reduction_of(op, dtype):
        case "CountNonzero":
            pairs = zip(first.tolist(), counts, strict=True)
            made = [of_count(op, nonzero, count or 1) for nonzero, count in pairs]
            return [bool(value) for value in made] if truth else made
        case "ArgMin" | "ArgMax":  # where no element beat the worst key all equal it, and the first counts
            return [0 if index == NOWHERE else index for index in first.tolist()]
        case "Min" | "Max" | "NormInf" if dtype.is_float:
            return [float(value) for value in first.view(np.float64).tolist()]
        case "Min" | "Max" if dtype.name != "uint64":
            return list(_signed(first))
        case "Min" | "Max" | "NormInf":
            return list(first.tolist())
    return [of_integer(op, total, count or 1) for total, count in zip(_integers(words), counts, strict=True)]
