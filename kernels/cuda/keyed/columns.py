"""One column of values on a GPU by key: the sums that its ops need, each of them once, and the values they come to.

What has a correctly rounded value on the GPU is rounded there. All else that adds up leaves integers, which become
exact states on the host, and these are finished as those of a CPU slot are.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.cpu.finishing import column_of_states
from warpfold.kernels.cpu.keyed.sums import KeyedFloatSums, LevelOrigin
from warpfold.kernels.cpu.states import MergedStates
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.keyed.sample import Reach
from warpfold.kernels.cuda.keyed.shapes import SQUARE_PARTS, WIDE_SQUARES, squares_unit
from warpfold.kernels.cuda.keyed.sums import KeyedSums
from warpfold.kernels.dtypes import DTYPES, DType, Kind
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.ops import OPS, Finish, NanPolicy, Op, Terms, terms_of
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.keyed import (
    PART_ROWS,
    Aggregation,
    GroupColumn,
    GroupPlan,
    column_of,
    column_of_counts,
    whole_numbers,
)
from warpfold.kernels.parts.state_tables import StatesOf

UPPER = "upper words of squares"
"""What is added up beside the lower words of squares, which have 128 bits."""


class KeyedColumn:
    """The groups of a column, of which `asked` is wanted: CuPy arrays of its keys, of dtype `key`, and of its elements,
    of one length.

    `keys` and `counts` are the keys of the groups, in their order, and how many elements each has; `omitted` says how
    many NaNs were left out of each, or is None. With `numbered`, keys are numbers of groups 1 … `numbered`, and rows of
    key 0 are in none. To be used while `gpu.active()`.
    """

    def __init__(  # noqa: PLR0917
        self, gpu: Gpu, keys: Any, key: DType, elements: Any, dtype: DType, plan: GroupPlan, asked: Sequence[Op],
        numbered: int | None,
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self._gpu, self._rows, self._key, self._plan = gpu, keys, key, plan
        self._elements, self._held = _of_gpus(elements, dtype)
        self._omit = plan.nan_policy is NanPolicy.OMIT and dtype.is_float
        self._numbered = numbered
        self._sums: dict[tuple[str, bool], KeyedSums] = {}
        self._outside: tuple[Index, StateColumn] | None = None
        self.sums = self._add("values", self._rows, self._elements, self._held, keep=self._keeps(asked))
        groups = self.sums.groups()
        self.keys: NDArray[Any] = groups.keys.get()
        self.counts: Index = groups.counts.get().astype(np.int64)
        self.omitted: Index | None = None if groups.omitted is None else groups.omitted.get().astype(np.int64)

    # Values

    def column(self, asked: Aggregation) -> GroupColumn:
        """The values of an op, and their states where the plan asks for them."""
        op, counts = asked.op, self._spread(self.counts)
        if self._by_states(op):
            return self._of_states(asked)
        if op.extreme is not None:
            values = self._selected(op)
        elif op.fold == "nonzero" or self._tests(op):
            nonzero = self._spread(_put_together(*self._of("nonzero").values()))
            every = nonzero == counts
            tests = {"any": nonzero > 0, "all": every, "prod": every.astype(np.int64)}
            values = tests.get(op.name, nonzero)
        else:
            values = self._summed(op)
        return column_of(asked, self.dtype, values, counts, self._plan.min_count)

    def _keeps(self, asked: Sequence[Op]) -> bool:
        """Whether an op needs the sums of the elements as integers, which then serve all ops."""
        return any(self._by_states(op) and "values" in _kinds(op) for op in asked)

    def _by_states(self, op: Op) -> bool:
        return op.adds and (self._plan.states or not self._at_once(op))

    def _at_once(self, op: Op) -> bool:
        """Whether a GPU rounds sums of the op, or has nothing to round."""
        if self.dtype.is_float:
            halves = self._held is not self.dtype
            return op.terms is Terms.VALUES and not halves
        return op.finish is Finish.ITSELF or (op.finish is Finish.MEAN and op.terms is Terms.VALUES)

    def _tests(self, op: Op) -> bool:
        """Whether the op multiplies truth values: all of them are true, or one is not."""
        return op.fold == "product" and self.dtype.kind is Kind.BOOL

    def _summed(self, op: Op) -> NDArray[Any]:
        mean = op.finish is Finish.MEAN
        sums = self._of(_kinds(op)[0])
        if self._in_words(_kinds(op)[0]):
            low, high = (_put_together(*self._of(kind).values()).tolist() for kind in ("squares", UPPER))
            return self._spread(whole_numbers([a + (b << 64) for a, b in zip(low, high, strict=True)]))
        if self.dtype.is_float or mean:
            return self._spread(sums.values(mean=mean).get().astype(np.float64))
        return self._spread(_put_together(*sums.values()))

    def _selected(self, op: Op) -> NDArray[Any]:
        sums = self._of("magnitudes" if op.magnitudes else "values")
        orders = Keys(OPS["max"] if op.magnitudes else op, sums.held, omit=self._omit)
        least, rows = sums.least(*orders.numbers(), equal_zeros=op.places, first=op.places)
        if rows is not None:
            return self._spread(rows.get().view(np.int64))
        with np.errstate(invalid="ignore"):
            elements = orders.elements(self._spread(least.get().astype(orders.word)))
            if self.dtype.is_float:
                return elements.astype(np.float64)
        return whole_numbers(elements.tolist()) if op.magnitudes else elements.astype(self.dtype.numpy)

    def _of_states(self, asked: Aggregation) -> GroupColumn:
        op = asked.op
        groups = self.counts.size if self._numbered is None else self._numbered
        merged = [self._merged(*each, groups) for each in zip(_kinds(op), terms_of(op), strict=True)]
        if asked.state_only:
            made = column_of_counts(asked, self.dtype, merged[0].counts(groups).copy())
            return replace(made, states=tuple(each.encoded(groups) for each in merged))
        of = StatesOf(asked.name, op.name, (self.dtype.name,), op.result_dtype(self.dtype), asked.ddof)
        return column_of_states(of, merged, groups, self._plan.min_count, keep=self._plan.states)

    def _merged(self, kind: str, terms: Terms, groups: int) -> MergedStates:
        """The states of all groups. What levels did not hold has states of its own."""
        totals = self._of(kind, keep=True).totals(self.counts)
        if self._in_words(kind):
            totals = totals.with_words_above(self._of(UPPER, keep=True).totals(self.counts))
        numbers = np.arange(self.counts.size) if self._numbered is None else self.keys.astype(np.int64) - 1
        parts = [totals.missing(terms)]
        held = self.counts
        if kind == "squares" and self._outside is not None:
            places, states = self._outside
            held = held - np.bincount(places, minlength=held.size)
            parts.append((np.arange(held.size), states))
        parts.append((np.arange(held.size), totals.states(terms, held)))
        merged = MergedStates(terms)
        for places, states in parts:
            kept = np.flatnonzero(numbers[places] >= 0)
            merged.add(states if kept.size == places.size else states.taken(kept), numbers[places][kept], groups)
        return merged

    def _spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """The entries of the groups of the column, for all groups; 0 for those without elements here."""
        if self._numbered is None:
            return values
        spread = np.zeros(self._numbered + 1, values.dtype)
        spread[self.keys] = values
        return spread[1:]

    # What is added up

    def _add(self, kind: str, keys: Any, elements: Any, dtype: DType, *, keep: bool = False) -> KeyedSums:
        reach = None if self._numbered is None else Reach(0, self._numbered + 1)
        omit = self._omit and dtype.is_float
        sums = KeyedSums(self._gpu, keys, self._key, elements, dtype, omit_nan=omit, reach=reach, keep=keep)
        sums.add()
        self._sums[kind, keep] = sums
        return sums

    def _of(self, kind: str, *, keep: bool = False) -> KeyedSums:
        """The sums of elements, of their magnitudes or squares, or of 1 for each that is not zero; with `keep` as
        integers. Those that are integers serve where they need not be."""
        known = self._sums.get((kind, True)) or self._sums.get((kind, keep))
        if known is not None:
            return known
        keys, elements, dtype = self._rows, self._elements, self._held
        if kind == "magnitudes":
            elements, dtype = _magnitudes(elements, dtype)
        elif kind == UPPER or self._in_words(kind):
            elements, dtype = _words_of_squares(elements, dtype)[kind == UPPER], DTYPES["uint64"]
        elif kind == "squares":
            keys, elements, dtype = self._squares()
        elif kind == "nonzero":
            nonzero = (
                _without_sign(elements, dtype).view(f"uint{8 * dtype.itemsize}") != 0
                if dtype.is_float
                else elements != 0
            )
            if self._omit:
                nonzero &= elements == elements  # noqa: PLR0124 (no NaN)
            elements, dtype = nonzero.astype(np.int32), DTYPES["int32"]
        sums = self._add(kind, keys, elements, dtype, keep=keep)
        sums.groups()
        return sums

    def _in_words(self, kind: str) -> bool:
        """Whether the terms are integers of 128 bits, whose lower and upper words are added up apart."""
        return kind == "squares" and not self.dtype.is_float and self.dtype.itemsize == 8

    def _squares(self) -> tuple[Any, Any, DType]:
        """Keys and elements whose sums are those of the squares."""
        import cupy

        elements, held = self._elements, self._held
        count, blocks = np.uint64(elements.size), 8 * self._gpu.multiprocessors
        if held.name == "float32":
            squares = cupy.empty(int(count), np.float64)
            self._gpu.kernel(squares_unit(), WIDE_SQUARES)(blocks, 256, (elements, count, squares))
            return self._rows, squares, DTYPES["float64"]
        if not held.is_float:
            wide = DTYPES["uint64" if self.dtype.name == "uint32" else "int64"]
            whole = elements.astype(wide.numpy)
            return self._rows, whole * whole, wide
        parts, outside = cupy.empty(2 * int(count), np.float64), cupy.zeros(1, np.uint32)
        self._gpu.kernel(squares_unit(), SQUARE_PARTS)(blocks, 256, (elements, count, parts, outside))
        if int(outside.get()[0]):
            self._outside = self._squares_outside()
        return cupy.concatenate([self._rows, self._rows]), parts, held

    def _squares_outside(self) -> tuple[Index, StateColumn]:
        """The groups of the elements whose squares are not two float64, one for each, and the states that groups have
        of them: by a CPU."""
        import cupy

        size = _without_sign(self._elements, self._held)
        low, high = (size < 2.0**-480) & (size != 0), (size >= 2.0**500) & (size < np.inf)
        rows = cupy.flatnonzero(low | high)
        elements, keys = self._elements[rows].get(), self._rows[rows].get().astype(self.keys.dtype)
        places = np.searchsorted(self.keys, keys)
        sums = KeyedFloatSums(self.dtype, Terms.PRODUCTS, LevelOrigin(), magnitudes=False)
        for start in range(0, places.size, PART_ROWS):
            part = slice(start, start + PART_ROWS)
            sums.add(start, np.asarray(elements[part]), (places[part] + 1).astype(np.int32), self.keys.size)
        return places, sums.states(self.keys.size)


def _kinds(op: Op) -> tuple[str, ...]:
    """The terms of the sums of an op."""
    if op.terms is Terms.MOMENTS:
        return "values", "squares"
    return ("squares",) if op.terms is Terms.PRODUCTS else ("magnitudes" if op.magnitudes else "values",)


def _of_gpus(elements: Any, dtype: DType) -> tuple[Any, DType]:
    """Elements of 16 bits as the same numbers in float32; others as they are."""
    if not dtype.is_float or dtype.itemsize > 2:
        return elements, dtype
    if dtype.native:
        return elements.astype(np.float32), DTYPES["float32"]
    return (elements.view(np.uint16).astype(np.uint32) << 16).view(np.float32), DTYPES["float32"]


def _without_sign(elements: Any, dtype: DType) -> Any:
    """|x| of floats by their bits: arithmetic of CuPy takes subnormal float32 for 0."""
    bits = np.dtype(f"uint{8 * dtype.itemsize}")
    return (elements.view(bits) & bits.type(np.iinfo(bits).max >> 1)).view(elements.dtype)


def _magnitudes(elements: Any, dtype: DType) -> tuple[Any, DType]:
    if dtype.is_float:
        return _without_sign(elements, dtype), dtype
    if dtype.kind is not Kind.INT:
        return elements, dtype
    if dtype.itemsize < 8:
        return abs(elements.astype(np.int64)), DTYPES["int64"]
    return abs(elements).view(np.uint64), DTYPES["uint64"]  # |−2**63| has the pattern of 2**63


def _words_of_squares(elements: Any, dtype: DType) -> tuple[Any, Any]:
    """The squares of integers of 64 bits: (m 2**32 + n)² = m² 2**64 + m n 2**33 + n²."""
    size, half = _magnitudes(elements, dtype)[0], np.uint64(32)
    m, n = size >> half, size & np.uint64((1 << 32) - 1)
    low, mixed = size * size, m * n
    carry = (low < n * n).astype(np.uint64)
    return low, m * m + (mixed >> np.uint64(31)) + carry


def _put_together(low: Any, high: Any) -> NDArray[Any]:
    """Integers of 128 bits from their lower and upper words."""
    lower, upper = low.get(), high.get()
    signed = lower.view(np.int64)
    if (upper == signed >> 63).all():
        return np.asarray(signed)
    return whole_numbers([int(a) + (int(b) << 64) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)])
