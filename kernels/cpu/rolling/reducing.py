"""Values of windows: the elements are read at once, and neighbouring values are made on all cores."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.keys import Keys
from warpfold.kernels.aggregates.patterns import is_nan, widened
from warpfold.kernels.backend import GroupedReduction, Progress, Stages
from warpfold.kernels.catalog import check_rolling, resolve_grouped
from warpfold.kernels.cpu.rolling import elements as finite
from warpfold.kernels.cpu.rolling.float_sums import MovingSums
from warpfold.kernels.cpu.rolling.integer_sums import RunningSums, numbers_of
from warpfold.kernels.cpu.rolling.sources import elements_of, windows_of
from warpfold.kernels.cpu.rolling.squares import LongSquares, MovingSquares, are_long
from warpfold.kernels.cpu.rolling.threads import on_all_cores
from warpfold.kernels.cpu.windows.rolling import slide_least
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.machine.preparation import working_s
from warpfold.kernels.ops import INTEGER, Finish, NanPolicy, Op, Terms
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.parts.grouping import Index
from warpfold.kernels.parts.rolling import Spans
from warpfold.kernels.query import Moving
from warpfold.kernels.strategy import EXACT

Make = Callable[[Index, Index, Index, NDArray[Any]], NDArray[Any]]
"""The values of windows, given where each begins and ends, how many elements enter it, and room for the values. They
are written there, or come as an array of their own."""


def roll(query: Moving, progress: Progress | None) -> GroupedReduction:
    """The value of the op at each element, of the elements in its window. Raises InvalidInput naming "op", "strategy",
    "axis", "segments.offsets.…", "over", "keys", "window.width" or "source", and for a NaN where the policy is RAISE;
    OutOfMemory where the array and the values do not fit."""
    began = working_s()
    op, grouping, count = query.op, query.grouping, prod(query.shape)
    check_rolling(op)
    taken = operands(op, query.source, query.other, query.ddof)
    shape, dtype = grouping.result_shape(query.shape), query.source.dtype
    resolve_grouped(op, dtype, query.strategy)
    elements = elements_of(query)
    loaded = working_s()
    lines, spans = windows_of(query)
    made = _Chunks(lines.arranged(elements), dtype, query, spans)
    values, counts = np.empty(count, _stored(op, dtype)), np.empty(count, np.int64)
    for first, part in zip(range(0, count, made.chunk), made.all(values, counts), strict=True):
        if part.base is not values:
            values = values.astype(object) if part.dtype == object else values
            values[first : first + made.chunk] = part
        if progress is not None:
            progress(min(first + made.chunk, count), count)
    least = max(grouping.window.min_count, op.least_count(query.ddof))
    values, counts = lines.finished(values, counts, least)
    ended = working_s()
    return GroupedReduction(
        values=values,
        shape=shape,
        dtype=taken.result_dtype(op),
        counts=counts,
        op=op.name,
        strategy=EXACT,
        kernel="rolling",
        correctly_rounded=True,
        load_ms=(loaded - began) * 1e3,
        kernel_ms=(ended - loaded) * 1e3,
        stages=Stages(read_s=loaded - began, reduce_s=ended - loaded),
    )


def _stored(op: Op, dtype: DType) -> "np.dtype[Any]":
    """What holds the values, unless they are integers beyond int64."""
    result = op.result_dtype(dtype)
    if result == INTEGER:
        return np.dtype(np.int64)
    return np.dtype(np.float64) if DTYPES[result].is_float else DTYPES[result].numpy


class _Chunks:
    """Values of the op of a query, of `elements` which are arranged line after line, chunk by chunk."""

    def __init__(self, elements: NDArray[Any], dtype: DType, query: Moving, spans: Spans) -> None:
        self._elements, self._dtype, self._op, self._spans = elements, dtype, query.op, spans
        self._ddof, omits = query.ddof, query.nan_policy is NanPolicy.OMIT
        self.chunk = finite.CHUNK
        nans = is_nan(elements, dtype) if omits and dtype.is_float else None
        self._nans = numbers_of(nans) if nans is not None and nans.any() else None
        self._make = self._maker(omits=omits)

    def all(self, values: NDArray[Any], counts: Index) -> Iterator[NDArray[Any]]:
        """The values of all chunks, in their order, which may be written to `values`; writes how many elements entered
        each."""

        def make(first: int) -> NDArray[Any]:
            last = min(first + self.chunk, self._elements.size)
            begins, ends = self._spans.of(first, last)
            here = counts[first:last]
            np.subtract(ends, begins, out=here)
            if self._nans is not None:
                here -= self._nans.sums(begins, ends)
            return self._make(begins, ends, here, values[first:last])

        return on_all_cores(make, range(0, self._elements.size, self.chunk))

    def _maker(self, *, omits: bool) -> Make:
        op = self._op
        if op.extreme is not None:
            # Each chunk begins with its first window anew.
            self.chunk = max(finite.CHUNK, 4 * self._spans.longest)
            return self._extremes(Keys(op, self._dtype, omit=omits))
        if op.fold == "count":
            return lambda begins, ends, counts, _: counts
        if not op.adds:
            return self._tested(omits=omits)
        return self._added(omits=omits)

    def _added(self, *, omits: bool) -> Make:
        op, elements, dtype, longest = self._op, self._elements, self._dtype, self._spans.longest
        divides = op.finish is Finish.MEAN
        if op.terms is not Terms.VALUES:
            if not dtype.is_float and are_long(elements):
                return LongSquares(elements, dtype, op, self._ddof).values
            return MovingSquares(elements, dtype, longest, op, self._ddof, omits=omits).values
        if dtype.is_float:
            return MovingSums(elements, dtype, longest, magnitudes=op.magnitudes, divides=divides, omits=omits).values
        integers = RunningSums(elements, longest, magnitudes=op.magnitudes)
        if divides:
            return lambda begins, ends, counts, _: integers.means(begins, ends, np.maximum(counts, 1))
        return lambda begins, ends, counts, _: integers.sums(begins, ends)

    def _extremes(self, keys: Keys) -> Make:
        of_elements = keys.compiled(self._elements)
        none = of_elements.dtype.type(keys.none)
        whole = self._op.result_dtype(self._dtype) == INTEGER

        def make(begins: Index, ends: Index, counts: Index, _: NDArray[Any]) -> NDArray[Any]:
            first = int(begins[0])
            fronts, least = (np.empty(size, of_elements.dtype) for size in (int(ends[-1]) - first, begins.size))
            slide_least(of_elements, begins, ends, fronts, none, least)
            values = keys.elements(least)
            if self._dtype.is_float:
                return finite.as_float64(values, self._dtype)
            if whole and values.dtype == np.uint64:
                return values.astype(object if (values >> np.uint64(63)).any() else np.int64)
            return values.astype(np.int64) if whole else values

        return make

    def _tested(self, *, omits: bool) -> Make:
        nonzero, op = widened(self._elements, self._dtype) != 0, self._op.name
        if omits and self._dtype.is_float:
            nonzero &= ~is_nan(self._elements, self._dtype)
        numbers = numbers_of(nonzero)

        def make(begins: Index, ends: Index, counts: Index, _: NDArray[Any]) -> NDArray[Any]:
            held = numbers.sums(begins, ends)
            return held if op == "count_nonzero" else held == counts if op == "all" else held > 0

        return make
