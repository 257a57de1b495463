"""Reduces to many values on a GPU, along axes side by side and by segments.

The source is brought to the GPU as a whole, as it lies: an array in Fortran order is read as that of the reversed axes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import LISTED, GroupedReduction, Progress
from warpfold.kernels.cuda.exact.finishing import FINISHED_OPS
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.selecting import GroupedOp
from warpfold.kernels.cuda.grouped.totals import FinishedValues
from warpfold.kernels.cuda.grouped.values import Rounding
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.exact.column import StateColumn
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy, Op, Value
from warpfold.kernels.ops.empties import defined
from warpfold.kernels.parts.grouping import AlongAxes, Grouping
from warpfold.kernels.parts.state_tables import terms_of
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import EXACT

_MOST_LAUNCHES = 1 << 12

REFUSED_AXES = (
    "a GPU reduces axes that lie side by side, with at most 4,096 blocks of other axes before them; give the backend "
    "cpu or auto"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring elements, from `start` on, that make neighbouring values."""

    start: int
    stop: int
    layout: Layout


def reduce_groups(  # noqa: PLR0917
    gpu: Gpu,
    stager: Stager,
    source: Elements,
    shape: tuple[int, ...],
    grouping: Grouping,
    op: Op,
    nan_policy: NanPolicy,
    progress: Progress | None,
    ddof: int = 0,
    *,
    states: bool = False,
) -> GroupedReduction:
    """Reduce all elements of `source`, an array of `shape`, which must fit into the GPU's memory; with `states` the
    result has the exact state of every value, too. To be called while `gpu.active()`.

    Raises InvalidInput naming "axis" for axes that do not lie side by side, "source" where there are other than as many
    elements, "nan_policy" for a NaN where the policy is RAISE; OutOfMemory; CudaError.
    """
    result_shape = grouping.result_shape(shape)
    # NaNs are counted in the order of reading, and named by their index in C order.
    in_order = nan_policy is NanPolicy.RAISE or op.places
    turned = isinstance(grouping, AlongAxes) and not in_order and _lies_in_reverse(source, shape)
    parts = parts_of(shape, grouping, turned=turned)
    began, preparation = time.perf_counter(), gpu.preparation
    before_ms = prepared_ms(preparation)
    if turned and isinstance(source, ArraySource):
        source = ArraySource(source.array.T, source.file)
    array = stager.whole(source, progress)
    if array.size != prod(shape):
        raise InvalidInput(f"{array.size:,} elements have no shape {shape}", "source")
    refuses = nan_policy is NanPolicy.RAISE and source.dtype.is_float and array.size > 0
    nans = NanCounter(gpu, source.dtype) if refuses else None
    laid = [(array[part.start : part.stop], part.layout) for part in parts]
    omit_nan = nan_policy is NanPolicy.OMIT and source.dtype.is_float
    run: _Finished | _Fetched
    if op.adds and source.dtype.is_float:
        run = _Finished(gpu, laid, source.dtype, op, ddof, omit_nan=omit_nan, keep=states)
    else:
        run = _Fetched(gpu, laid, source.dtype, op, ddof, omit_nan=omit_nan)
    kernel_ms, new_ms = 0.0, preparation.total_ms
    for _ in range(2):  # again where kernels were compiled or loaded between the launches, which is no time of theirs
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            run.start()
        kernel_ms = stopwatch.total_ms()
        if preparation.total_ms == new_ms:
            break
        new_ms = preparation.total_ms
    if nans is not None:
        nans.add(array, 0)
    stages = stager.stages(kernel_ms / 1e3)
    if nans is not None:
        nans.refuse()
    counts, order = grouping.counts(shape), None
    if turned:  # the axes were read in reverse
        order = np.arange(counts.size).reshape(result_shape[::-1]).transpose().reshape(-1)
    kept = run.states(counts) if states else ()
    values, counts = run.values(counts, order)
    prepare_ms = prepared_ms(preparation) - before_ms
    total_ms = (time.perf_counter() - began) * 1e3
    return GroupedReduction(
        values=values,
        shape=result_shape,
        dtype=op.result_dtype(source.dtype),
        counts=counts if counts.size > LISTED else tuple(counts.tolist()),
        op=op.name,
        strategy=EXACT,
        kernel=run.kernel,
        correctly_rounded=True,
        load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=stages,
        states=kept if order is None else tuple(column.taken(order) for column in kept),
    )


Values = tuple[Value | None, ...] | NDArray[np.float64]


class _Finished:
    """Sums of floats, and what follows from them, which the GPU rounds; with `keep` totals are their states."""

    def __init__(
        self, gpu: Gpu, parts: Sequence[tuple[Any, Layout]], dtype: DType, op: Op, ddof: int,
        *, omit_nan: bool, keep: bool = False,
    ) -> None:  # fmt: skip
        self._op, self._dtype, self._ddof, self._omit_nan = op, dtype, ddof, omit_nan
        row = FINISHED_OPS[op.name]
        rounding = Rounding(row.finish, ddof, omit_nan)
        self._totals = [
            FinishedValues(gpu, array, layout, dtype, row.kind, rounding, keep=keep) for array, layout in parts
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
        self, gpu: Gpu, parts: Sequence[tuple[Any, Layout]], dtype: DType, op: Op, ddof: int, *, omit_nan: bool
    ) -> None:
        self._op, self._dtype, self._ddof = op, dtype, ddof
        self._parts = [GroupedOp(gpu, array, layout, dtype, op, ddof, omit_nan=omit_nan) for array, layout in parts]

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


def _beside(columns: Sequence[tuple[StateColumn, ...]], op: Op) -> tuple[StateColumn, ...]:
    """The states of neighbouring values as one column for each kind of terms."""
    return tuple(StateColumn.beside([each[at] for each in columns]) for at in range(len(terms_of(op))))


def _gathered(arrays: Sequence[Any]) -> Any:
    """The arrays on the host, one behind another."""
    if not arrays or arrays[0] is None:
        return None if arrays else np.zeros(0)
    return np.concatenate([array.get() for array in arrays])


def parts_of(shape: tuple[int, ...], grouping: Grouping, *, turned: bool) -> list[Stretch]:
    """The launches of a reduction; with `turned` axes are read in reverse. Raises InvalidInput naming "axis"."""
    count, blocks = prod(shape), 1
    layout: Layout | None = None
    if not isinstance(grouping, AlongAxes):
        if grouping.length is None:
            return [Stretch(0, count, OffsetsLayout.of(grouping.bounds(count)))]
        length = min(grouping.length, max(1, count))
        return [Stretch(0, count, RowsLayout(-(-count // length), length, count))]
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
    if layout is None:
        raise InvalidInput(REFUSED_AXES, "axis")
    size = count // blocks
    return [Stretch(number * size, (number + 1) * size, layout) for number in range(blocks)]


def _lies_in_reverse(source: Elements, shape: tuple[int, ...]) -> bool:
    """Whether the source is an array in Fortran order."""
    if not isinstance(source, ArraySource) or source.array.shape != shape:
        return False
    return bool(source.array.flags.f_contiguous) and not source.array.flags.c_contiguous
