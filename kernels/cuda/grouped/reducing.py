"""Reduces to many values on a GPU, along axes and by segments.

Sources are brought to the GPU as a whole, as they lie: arrays in Fortran order are read as those of the reversed axes.
Elements whose values no layout describes, for the axes do not lie side by side, are put in order there first.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import LISTED, GroupedReduction, Progress, Stages
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, Other, RowsLayout
from warpfold.kernels.cuda.grouped.selecting import GroupedOp
from warpfold.kernels.cuda.grouped.totals import FinishedValues
from warpfold.kernels.cuda.grouped.values import Rounding
from warpfold.kernels.cuda.picks.counted import BYTES, SORTED
from warpfold.kernels.cuda.picks.states import GroupedQuantiles, GroupedStates
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.cuda.staging.widening import widened
from warpfold.kernels.dtypes import DType, common_float
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy, Op, Value, terms_of
from warpfold.kernels.ops.empties import defined
from warpfold.kernels.ops.operands import result_dtype
from warpfold.kernels.parts.grouping import AlongAxes, Grouping
from warpfold.kernels.query import Shaped
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import EXACT

_MOST_LAUNCHES = 1 << 12


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring elements, from `start` on, that make neighbouring values."""

    start: int
    stop: int
    layout: Layout


def reduce_groups(  # noqa: PLR0917
    gpu: Gpu,
    stager: Stager,
    sources: Sequence[Elements],
    shape: tuple[int, ...],
    grouping: Grouping,
    op: Op,
    nan_policy: NanPolicy,
    progress: Progress | None,
    ddof: int = 0,
    *,
    states: bool = False,
) -> GroupedReduction:
    """Reduce all elements of one source, or the pairs of two, arrays of `shape`, which must fit into the GPU's memory
    (`element_bytes`); with `states` the result has the exact state of every value, too. To be called while
    `gpu.active()`.

    Raises InvalidInput naming "source" or "other" where there are other than as many elements, "nan_policy" for a NaN
    where the policy is RAISE; OutOfMemory; CudaError.
    """
    result_shape = grouping.result_shape(shape)
    # NaNs are counted in the order of reading, and named by their index in C order.
    in_order = nan_policy is NanPolicy.RAISE or op.in_order
    turned = isinstance(grouping, AlongAxes) and not in_order and all(_lies_in_reverse(each, shape) for each in sources)
    dtypes = [source.dtype for source in sources]
    common, omit_nan = _common(dtypes), nan_policy is NanPolicy.OMIT and dtypes[0].is_float
    began, preparation = time.perf_counter(), gpu.preparation
    before_ms = prepared_ms(preparation)
    brought = [_reversed(source) for source in sources] if turned else sources
    nans = [NanCounter(gpu, dtype) for dtype in dtypes if nan_policy is NanPolicy.RAISE and dtype.is_float]
    arrays: list[Any] = []
    stages: list[Stages] = []
    for array in _brought(gpu, stager, brought, prod(shape), progress, stages):
        if nans and array.size:
            nans[len(arrays)].add(array, 0)
        dtype = dtypes[len(arrays)]
        arrays.append(widened(gpu, array, dtype, common) if common.is_float else array)
    parts, axes = parts_of(shape, grouping, turned=turned)
    if axes is not None:
        read = shape[::-1] if turned else shape
        arrays = [array.reshape(read).transpose(axes).reshape(-1) for array in arrays]
    laid = [(part.layout, *(array[part.start : part.stop] for array in arrays)) for part in parts]
    run: _Finished | _Fetched | _Selected
    if op.ranks:
        run = _Selected(gpu, laid, dtypes[0], op, omit_nan=omit_nan)
    elif op.adds and common.is_float:
        run = _Finished(gpu, laid, common, op, ddof, omit_nan=omit_nan, keep=states)
    else:
        run = _Fetched(gpu, laid, dtypes, op, ddof, omit_nan=omit_nan)
    kernel_ms, new_ms = 0.0, preparation.total_ms
    for _ in range(2):  # again where kernels were compiled or loaded between the launches, which is no time of theirs
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            run.start()
        kernel_ms = stopwatch.total_ms()
        if preparation.total_ms == new_ms:
            break
        new_ms = preparation.total_ms
    stages.append(stager.stages(kernel_ms / 1e3))
    for counter, what in zip(nans, ("element", "other element"), strict=False):
        counter.refuse(what)
    counts, order = grouping.counts(shape), None
    if turned:  # the axes were read in reverse
        order = np.arange(counts.size).reshape(result_shape[::-1]).transpose().reshape(-1)
    kept = run.states(counts) if states else ()
    values, counts = run.values(counts, order)
    prepare_ms = prepared_ms(preparation) - before_ms
    total_ms = (time.perf_counter() - began) * 1e3
    return GroupedReduction(
        values=values,
        shape=op.shape_of(result_shape),
        dtype=result_dtype(op, *dtypes),
        counts=counts if counts.size > LISTED else tuple(counts.tolist()),
        op=op.name,
        strategy=EXACT,
        kernel=run.kernel,
        correctly_rounded=True,
        load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=reduce(add, stages),
        states=kept if order is None else tuple(column.taken(order) for column in kept),
    )


def element_bytes(query: Shaped) -> int:
    """Bytes that an element of each source takes on a GPU together: as it is, widened to what products of two formats
    have, and once more where elements are put in order there."""
    sizes = [source.dtype.itemsize for source in query.sources]
    common = _common([source.dtype for source in query.sources])
    wide = common.itemsize * sum(size < common.itemsize for size in sizes) if common.is_float else 0
    moved = sum(max(size, common.itemsize if common.is_float else 0) for size in sizes) if _moves(query) else 0
    return sum(sizes) + wide + moved + (BYTES if query.op.fold in SORTED else 0)


def _moves(query: Shaped) -> bool:
    """Whether elements are put in order on a GPU, whichever order of its axes an array lies in."""
    if not isinstance(query.grouping, AlongAxes):
        return False
    return any(parts_of(query.shape, query.grouping, turned=turned)[1] is not None for turned in (False, True))


def _common(dtypes: Sequence[DType]) -> DType:
    """The narrowest format that holds floats of both dtypes; of others the first dtype."""
    return common_float(dtypes[0], dtypes[-1]) if dtypes[0].is_float else dtypes[0]


def _brought(  # noqa: PLR0917
    gpu: Gpu, stager: Stager, sources: Sequence[Elements], count: int, progress: Progress | None, stages: list[Stages]
) -> Iterator[Any]:
    """The elements of each source, `count` of them, as a whole. The stages of all but the last go to `stages`. Raises
    InvalidInput naming "source" or "other", OutOfMemory."""
    for number, (source, field) in enumerate(zip(sources, ("source", "other"), strict=False)):
        if number:  # the one before is there
            gpu.stream.synchronize()
            stages.append(stager.stages(0.0))
        array = stager.whole(source, _part_of(progress, number, len(sources)))
        if array.size != count:
            raise InvalidInput(f"{array.size:,} elements are given, and the shape has {count:,}", field)
        yield array


def _part_of(progress: Progress | None, number: int, sources: int) -> Progress | None:
    """What reports the progress of one of several sources."""
    if progress is None or sources == 1:
        return progress
    return lambda done, total: progress((number * total + done) // sources, total)


Laid = tuple[Any, ...]
"""A layout, and the elements of one array or of two that it describes."""
Values = tuple[Value | None, ...] | NDArray[np.float64]


class _Finished:
    """Sums of floats, and what follows from them, which the GPU rounds; with `keep` totals are their states."""

    def __init__(
        self, gpu: Gpu, parts: Sequence[Laid], dtype: DType, op: Op, ddof: int, *, omit_nan: bool, keep: bool = False,
    ) -> None:  # fmt: skip
        self._op, self._dtype, self._ddof, self._omit_nan = op, dtype, ddof, omit_nan
        row = FINISHED_OPS[op.name]
        rounding = Rounding(row.finish, ddof, omit_nan)
        self._totals = [
            FinishedValues(gpu, array, layout, dtype, row.kind, rounding, keep=keep, other=other[0] if other else None)
            for layout, array, *other in parts
        ]

    @property
    def kernel(self) -> str:
        return next((part.kernel for part in self._totals), "rows")

    def start(self) -> None:
        for part in self._totals:
            part.start()
        for part in self._totals:
            part.finish()

    def values(self, counts: NDArray[np.int64], order: Any) -> tuple[Values, NDArray[np.int64]]:
        """The values and how many elements entered each, in an order of the result."""
        values = _gathered([part.values for part in self._totals]).view(self._dtype.numpy).astype(np.float64)
        if self._omit_nan:
            counts = counts - _gathered([part.omitted for part in self._totals])
        if order is not None:
            values, counts = values[order], counts[order]
        return defined(self._op, self._dtype, values, counts, self._ddof), counts

    def states(self, counts: NDArray[np.int64]) -> tuple[StateColumn, ...]:
        """The states of values of so many elements, NaNs that are left out among them, in the order of the launches."""
        columns, start = [], 0
        for kept in (kept for part in self._totals for kept in part.kept):
            entered = counts[start : start + kept.heads.shape[0]]
            start += entered.size
            entered = entered - kept.omitted() if self._omit_nan else entered
            columns.append(kept.states(entered, omit_nan=self._omit_nan))
        return _beside(columns, self._op)


class _Fetched:
    """Other ops, whose words are fetched."""

    def __init__(
        self, gpu: Gpu, parts: Sequence[Laid], dtypes: Sequence[DType], op: Op, ddof: int, *, omit_nan: bool
    ) -> None:
        dtype, *second = dtypes
        self._op, self._dtype, self._ddof = op, dtype, ddof
        self._parts = []
        for layout, array, *other in parts:
            pair = Other(other[0], second[0]) if other else None
            self._parts.append(GroupedOp(gpu, array, layout, dtype, op, ddof, omit_nan=omit_nan, other=pair))

    @property
    def kernel(self) -> str:
        return next((part.kernel for part in self._parts if part.kernel), "rows")

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def values(self, counts: NDArray[np.int64], order: Any) -> tuple[Values, NDArray[np.int64]]:
        """The values and how many elements entered each, in an order of the result."""
        each = counts.size // max(1, len(self._parts))
        made: list[Value] = []
        entered = [counts[:0]]
        for number, part in enumerate(self._parts):
            entered.append(counts[number * each : (number + 1) * each] - part.omitted())
            made += part.values(entered[-1])
        counts = np.concatenate(entered)
        if order is not None:
            made, counts = [made[number] for number in order], counts[order]
        return defined(self._op, self._dtype, made, counts, self._ddof), counts

    def states(self, counts: NDArray[np.int64]) -> tuple[StateColumn, ...]:
        """The states of values of so many integers, in the order of the launches."""
        each = counts.size // max(1, len(self._parts))
        columns = [part.states(counts[at * each : (at + 1) * each]) for at, part in enumerate(self._parts)]
        return _beside(columns, self._op)


class _Selected:
    """Quantiles, of which the GPU finds the neighbours, and which the host rounds; picked elements, and counts."""

    def __init__(self, gpu: Gpu, parts: Sequence[Laid], dtype: DType, op: Op, *, omit_nan: bool) -> None:
        self._op, self._dtype = op, dtype
        make = GroupedQuantiles if op.selects else GroupedStates
        self._parts = [make(gpu, array, layout, dtype, op, omit_nan=omit_nan) for layout, array in parts]

    @property
    def kernel(self) -> str:
        return next((part.kernel for part in self._parts), "rows")

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def values(self, counts: NDArray[np.int64], order: Any) -> tuple[Values, NDArray[np.int64]]:
        """The values and how many elements entered each, in an order of the result."""
        listed, each = self._op.listed or 1, counts.size // max(1, len(self._parts))
        made = [part.values() for part in self._parts]
        entered = [counts[:0]]
        for number, part in enumerate(self._parts):
            entered.append(counts[number * each : (number + 1) * each] - part.omitted())
        values, counts = np.concatenate(made or [np.zeros(0)]), np.repeat(np.concatenate(entered), listed)
        if order is not None:
            places = (order[:, None] * listed + np.arange(listed)).reshape(-1)
            values, counts = values[places], counts[places]
        return defined(self._op, self._dtype, values, counts), counts

    def states(self, counts: NDArray[np.int64]) -> tuple[StateColumn, ...]:
        """There are none, and `check_states` refuses to be asked for some."""
        raise AssertionError(f"{self._op.name} adds nothing up")


def _beside(columns: Sequence[tuple[StateColumn, ...]], op: Op) -> tuple[StateColumn, ...]:
    """The states of neighbouring values as one column for each kind of terms."""
    return tuple(StateColumn.beside([each[at] for each in columns]) for at in range(len(terms_of(op))))


def _gathered(arrays: Sequence[Any]) -> Any:
    """The arrays on the host, one behind another."""
    if not arrays or arrays[0] is None:
        return None if arrays else np.zeros(0)
    return np.concatenate([array.get() for array in arrays])


def parts_of(
    shape: tuple[int, ...], grouping: Grouping, *, turned: bool
) -> tuple[list[Stretch], tuple[int, ...] | None]:
    """The launches of a reduction, and in which order of their axes the elements must lie first; None where they may
    lie as they are. With `turned` axes are read in reverse. Raises InvalidInput naming "axis"."""
    count, blocks = prod(shape), 1
    layout: Layout | None = None
    if not isinstance(grouping, AlongAxes):
        if grouping.length is None:
            return [Stretch(0, count, OffsetsLayout.of(grouping.bounds(count)))], None
        length = min(grouping.length, max(1, count))
        return [Stretch(0, count, RowsLayout(-(-count // length), length, count))], None
    match grouping.runs(shape, reversed_axes=turned):
        case _ if count == 0:
            layout = RowsLayout(prod(grouping.result_shape(shape)), 1, 0)
        case []:
            layout = RowsLayout(1, 1, 1)
        case [(length, reduced)]:
            layout = RowsLayout(1, length, count) if reduced else RowsLayout(length, 1, count)
        case [(rows, False), (length, True)]:
            layout = RowsLayout(rows, length, count)
        case [(height, True), (width, False)]:
            layout = ColumnsLayout(width, height)
        case [(some, False), (height, True), (width, False)] if some <= _MOST_LAUNCHES:
            blocks, layout = some, ColumnsLayout(width, height)
    if layout is None:  # values become rows
        values = prod(grouping.result_shape(shape))
        return [Stretch(0, count, RowsLayout(values, count // values, count))], _in_rows(shape, grouping, turned=turned)
    size = count // blocks
    return [Stretch(number * size, (number + 1) * size, layout) for number in range(blocks)], None


def _in_rows(shape: tuple[int, ...], grouping: AlongAxes, *, turned: bool) -> tuple[int, ...]:
    """The axes in the order of reading, those that are reduced last."""
    reduced = grouping.reduced(len(shape))
    gone = [axis in reduced for axis in range(len(shape))][:: -1 if turned else 1]
    return tuple(sorted(range(len(shape)), key=lambda place: gone[place]))


def _reversed(source: Elements) -> Elements:
    """An array with its axes in reverse, as it lies."""
    return ArraySource(source.array.T, source.file) if isinstance(source, ArraySource) else source


def _lies_in_reverse(source: Elements, shape: tuple[int, ...]) -> bool:
    """Whether the source is an array in Fortran order."""
    if not isinstance(source, ArraySource) or source.array.shape != shape:
        return False
    return bool(source.array.flags.f_contiguous) and not source.array.flags.c_contiguous
