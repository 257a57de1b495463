"""Windows on a GPU: the elements are brought there at once, and arranged line after line. What a GPU has no room or no
numbers for, the host computes."""

import time
from math import prod
from typing import Any

import numpy as np

from warpfold.kernels.backend import GroupedReduction, Progress
from warpfold.kernels.catalog import check_rolling, check_rolling_on, resolve_grouped
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.rolling.values import WindowPlaces, WindowValues
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy
from warpfold.kernels.ops.operands import operands
from warpfold.kernels.parts.rolling import RollingLines, Spans
from warpfold.kernels.query import Moving
from warpfold.kernels.sources.sequential import gathered
from warpfold.kernels.strategy import EXACT

_BYTES = 80
"""Bytes on the GPU for each element beside the element, at most."""


def roll_on_gpu(gpu: Gpu, stager: Stager, query: Moving, progress: Progress | None) -> GroupedReduction:
    """The value of the op at each element, of the elements in its window. To be called while `gpu.active()`. Raises
    InvalidInput as windows on a CPU do, and naming "backend" for an op that a GPU has no windows of; CudaError."""
    from warpfold.kernels.cpu.rolling.reducing import roll  # it imports Numba
    from warpfold.kernels.cpu.rolling.sources import windows_of

    began, before_ms = time.perf_counter(), prepared_ms(gpu.preparation)
    op, dtype, count = query.op, query.source.dtype, prod(query.shape)
    check_rolling(op)
    check_rolling_on(op, "cuda")
    taken = operands(op, query.source, query.other, query.ddof)
    shape = query.grouping.result_shape(query.shape)
    resolve_grouped(op, dtype, query.strategy)
    source = gathered(query.source)
    if source.count != count:
        raise InvalidInput(f"{source.count:,} elements do not fit the shape {query.shape}", "source")
    if not count or count * (_BYTES + dtype.itemsize) > _free():
        return roll(query, progress)
    array = stager.whole(source, progress)
    if query.nan_policy is NanPolicy.RAISE and dtype.is_float:
        nans = NanCounter(gpu, dtype)
        nans.add(array, 0)
        nans.refuse()
    lines, spans = windows_of(query)
    array, places = _arranged(lines, array), _places(query, lines, spans, count)
    omit = query.nan_policy is NanPolicy.OMIT
    while True:  # again where kernels were compiled or loaded, which is no time of theirs
        stopwatch, known_ms = Stopwatch(gpu.stream), gpu.preparation.total_ms
        with stopwatch:
            made = WindowValues(gpu, array, dtype, places, op, omit=omit)
            if not made.holds():
                return roll(query, progress)
            counts = made.counts()
            values = made.values(counts)
        if gpu.preparation.total_ms == known_ms:
            break
    kernel_ms = stopwatch.total_ms()
    stages = stager.stages(kernel_ms / 1e3)
    least = max(query.grouping.window.min_count, op.least_count(query.ddof))
    values, counts = lines.finished(values, counts, least)
    prepare_ms = prepared_ms(gpu.preparation) - before_ms
    return GroupedReduction(
        values=values,
        shape=shape,
        dtype=taken.result_dtype(op),
        counts=counts,
        op=op.name,
        strategy=EXACT,
        kernel="rolling",
        correctly_rounded=True,
        load_ms=max(0.0, (time.perf_counter() - began) * 1e3 - kernel_ms - prepare_ms),
        kernel_ms=kernel_ms,
        prepare_ms=prepare_ms,
        stages=stages,
    )


def _free() -> int:
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0]) + int(cupy.get_default_memory_pool().free_bytes())


def _arranged(lines: RollingLines, array: Any) -> Any:
    """The elements line after line."""
    import cupy

    if lines.order is not None:
        return array[cupy.asarray(lines.order)]
    if lines.moved is None:
        return array
    return cupy.ascontiguousarray(cupy.moveaxis(array.reshape(lines.shape), lines.moved, -1)).reshape(-1)


def _places(query: Moving, lines: RollingLines, spans: Spans, count: int) -> WindowPlaces:
    """Where the windows lie, by their numbers where all lines are equally long, else by arrays."""
    import cupy

    window, lengths = query.grouping.window, np.diff(lines.bounds)
    if window.width is None and (lengths == lengths[:1]).all():
        rows = window.rows or 0
        ahead = (rows - 1) // 2 if rows and window.centred else 0
        return WindowPlaces(None, None, int(lengths[0]), rows, ahead, spans.longest)
    begins, ends = spans.of(0, count)
    longest = int((ends - begins).max(initial=0))
    return WindowPlaces(cupy.asarray(begins), cupy.asarray(ends), count, 0, 0, longest)
