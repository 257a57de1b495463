"""Reduces to many values on a GPU: sums and means of float32 and float64, along axes side by side and by segments.

The source is brought to the GPU as a whole, as it lies: an array in Fortran order is read as that of the reversed axes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.backend import LISTED, GroupedReduction, Progress
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.grouped.layouts import ColumnsLayout, Layout, OffsetsLayout, RowsLayout
from warpfold.kernels.cuda.grouped.sums import GroupedSums
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.grouping import AlongAxes, Grouping
from warpfold.kernels.ops import Finish, NanPolicy, Op
from warpfold.kernels.sequential import Elements
from warpfold.kernels.source import ArraySource
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
) -> GroupedReduction:
    """Reduce all elements of `source`, an array of `shape`, which must fit into the GPU's memory. To be called while
    `gpu.active()`.

    Raises InvalidInput naming "axis" for axes that do not lie side by side, "source" where there are other than as many
    elements, "nan_policy" for a NaN where the policy is RAISE; OutOfMemory; CudaError.
    """
    result_shape = grouping.result_shape(shape)
    # NaNs are counted in the order of reading, and named by their index in C order.
    turned = isinstance(grouping, AlongAxes) and nan_policy is not NanPolicy.RAISE and _lies_in_reverse(source, shape)
    parts = parts_of(shape, grouping, turned=turned)
    began, preparation = time.perf_counter(), gpu.preparation
    before_ms = preparation.total_ms
    if turned and isinstance(source, ArraySource):
        source = ArraySource(source.array.T, source.file)
    array = stager.whole(source, progress)
    if array.size != prod(shape):
        raise InvalidInput(f"{array.size:,} elements have no shape {shape}", "source")
    nans = NanCounter(gpu, source.dtype) if nan_policy is NanPolicy.RAISE and array.size else None
    sums = [
        GroupedSums(
            gpu,
            array[part.start : part.stop],
            part.layout,
            source.dtype,
            mean=op.finish is Finish.MEAN,
            omit_nan=nan_policy is NanPolicy.OMIT,
        )
        for part in parts
    ]
    kernel_ms, new_ms = 0.0, preparation.total_ms
    for _ in range(2):  # again where kernels were compiled or loaded between the launches, which is no time of theirs
        stopwatch = Stopwatch(gpu.stream)
        with stopwatch:
            for part in sums:
                part.start()
            for part in sums:
                part.finish()
        kernel_ms = stopwatch.total_ms()
        if preparation.total_ms == new_ms:
            break
        new_ms = preparation.total_ms
    if nans is not None:
        nans.add(array, 0)
    stages = stager.stages(kernel_ms / 1e3)
    if nans is not None:
        nans.refuse()
    values, omitted = _gathered([part.values for part in sums]), _gathered([part.omitted for part in sums])
    counts = grouping.counts(shape)
    if turned:  # the axes were read in reverse
        values, omitted = (_reordered(part, result_shape) for part in (values, omitted))
    if omitted is not None:
        counts = counts - omitted
    prepare_ms = preparation.total_ms - before_ms
    total_ms = (time.perf_counter() - began) * 1e3
    rounded = values.astype(np.float64)
    listed = op.finish is Finish.MEAN and not counts.all()
    if listed or rounded.size <= LISTED:
        means = op.finish is Finish.MEAN
        values_found: Any = tuple(
            None if means and not count else value
            for value, count in zip(rounded.tolist(), counts.tolist(), strict=True)
        )
    else:
        values_found = rounded
    return GroupedReduction(
        values=values_found,
        shape=result_shape,
        dtype=source.dtype.name,
        counts=counts if counts.size > LISTED else tuple(counts.tolist()),
        op=op.name,
        strategy=EXACT,
        kernel=_name_of(sums),
        correctly_rounded=True,
        load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=stages,
    )


def _name_of(sums: Sequence[GroupedSums]) -> str:
    return next((part.kernel for part in sums if part.kernel), "rows")


def _gathered(arrays: Sequence[Any]) -> Any:
    """The arrays on the host, one behind another."""
    if not arrays or arrays[0] is None:
        return None if arrays else np.zeros(0)
    return np.concatenate([array.get() for array in arrays])


def _reordered(values: Any, result_shape: tuple[int, ...]) -> Any:
    return None if values is None else values.reshape(result_shape[::-1]).transpose().reshape(-1)


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
