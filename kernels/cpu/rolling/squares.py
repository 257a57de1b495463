"""Ops of sums of squares over windows, such as var and std: the exact sums of the elements and of their squares, of
which `cpu.finishing` makes the values, as it does along axes and by key."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.cpu.finishing import ValueFinish
from warpfold.kernels.cpu.rolling.elements import CHUNK, BlockTotals, FiniteElements, limbs_of
from warpfold.kernels.cpu.states import ManySums
from warpfold.kernels.cpu.windows import rolling
from warpfold.kernels.dtypes import DType
from warpfold.kernels.exact import ORIGIN, ExactState, Flags
from warpfold.kernels.ops import INTEGER, Op, Terms, terms_of
from warpfold.kernels.parts.grouping import Index

_AT_ONCE = 1 << 12
"""Values whose sums are made before they are finished."""

_EXACT = 1 << 53

_NONE = (1 << 63) - 1
"""The least magnitude of no elements, or of zeros."""


class MovingSquares:
    """Values of `op` of `elements` of a dtype, over windows of up to `longest`; with `omits` NaNs are left out."""

    def __init__(
        self, elements: NDArray[Any], dtype: DType, longest: int, op: Op, ddof: int, *, omits: bool
    ) -> None:  # fmt: skip
        self._finite = FiniteElements(elements, dtype, magnitudes=False, omits=omits)
        self._patterns = self._finite.patterns
        self._terms = terms_of(op)
        self._finish = ValueFinish(op, op.result_dtype(dtype), ddof)
        values = self._patterns.view(np.float64)
        self._totals = [BlockTotals(values, terms, longest) for terms in (Terms.VALUES, Terms.PRODUCTS)]
        starts = range(0, self._patterns.size, CHUNK)
        looks = [rolling.look(self._patterns[start : start + CHUNK]) for start in starts]
        self._most, self._least = (np.array([each[k] for each in looks], np.int64) for k in (0, 1))

    def values(self, begins: Index, ends: Index, counts: Index, out: NDArray[Any]) -> NDArray[Any]:
        """The values of windows that `counts` elements enter."""
        begin = int(begins[0])
        (end, sums), (_, squares) = (totals.begin(begin, int(ends[0])) for totals in self._totals)
        blocks = slice(begin // CHUNK, -(-int(ends[-1]) // CHUNK))  # those in which the elements lie, and some beside
        most, least = int(self._most[blocks].max(initial=0)), int(self._least[blocks].min(initial=_NONE))
        lowest, highest = max((least + 1) >> 52, 1) - 1075, max(most >> 52, 1) - 1022
        lowest = min(lowest, highest)  # also of zeros alone
        places = highest - lowest + self._patterns.size.bit_length()
        sizes = places // 32 + 4, (places + highest - lowest) // 32 + 4
        origins = lowest - ORIGIN[Terms.VALUES], 2 * lowest - ORIGIN[Terms.PRODUCTS]
        state = [
            limbs_of(units, origin, size) for units, origin, size in zip((sums, squares), origins, sizes, strict=True)
        ]
        flags = self._finite.flags(begins, ends, counts)
        if flags is None:
            flags = np.where(counts > 0, int(Flags.NOT_NEGATIVE_ZERO), 0)
        parts = []
        for first in range(0, begins.size, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, begins.size))
            made = [np.empty((begins[some].size, size), np.int64) for size in sizes]
            rolling.slide_squares(self._patterns, begins[some], ends[some], begin, end, *state, lowest, *made)
            begin, end = int(begins[some][-1]), int(ends[some][-1])
            of_values = ManySums(Terms.VALUES, lowest, made[0], flags[some])
            of_squares = ManySums(Terms.PRODUCTS, 2 * lowest, made[1], _of_squares(flags[some], counts[some]))
            wanted = [of_values if terms is not Terms.PRODUCTS else of_squares for terms in self._terms]
            parts.append(self._finish.values(wanted, counts[some]))
        values = np.concatenate(parts)
        return values.astype(object) if values.dtype == np.uint64 else values


class LongSquares:
    """The same of integers of any size, by Python's integers."""

    def __init__(self, elements: NDArray[Any], dtype: DType, op: Op, ddof: int) -> None:
        whole = elements.astype(object)
        self._running = {
            Terms.VALUES: np.concatenate([[0], np.cumsum(whole)]),
            Terms.PRODUCTS: np.concatenate([[0], np.cumsum(whole * whole)]),
        }
        self._terms = terms_of(op)
        self._finish = ValueFinish(op, op.result_dtype(dtype), ddof)
        self._least = op.least_count(ddof)

    def values(self, begins: Index, ends: Index, counts: Index, out: NDArray[Any]) -> NDArray[Any]:
        """The values of windows that `counts` elements enter."""
        out = np.zeros(counts.size, object) if self._finish.result == INTEGER else out
        for at in np.flatnonzero(counts >= max(1, self._least)).tolist():
            begin, end, count = int(begins[at]), int(ends[at]), int(counts[at])
            totals = {terms: running[end] - running[begin] for terms, running in self._running.items()}
            out[at] = self._finish.value(
                [
                    ExactState(terms, int(totals[terms]) << -ORIGIN[terms], count, Flags.NOT_NEGATIVE_ZERO)
                    for terms in self._terms
                ]
            )
        return out


def are_long(elements: NDArray[Any]) -> bool:
    """Whether float64 does not hold some of these integers."""
    return elements.size > 0 and max(-int(elements.min()), int(elements.max())) > _EXACT


def _of_squares(flags: Index, counts: Index) -> Index:
    """The flags of the squares of so many elements with these flags."""
    infinite = flags & int(Flags.POS_INF | Flags.NEG_INF) != 0
    squared: Index = (flags & int(Flags.NAN)) | np.where(infinite, int(Flags.POS_INF), 0)
    return squared | np.where(counts > 0, int(Flags.NOT_NEGATIVE_ZERO), 0)
