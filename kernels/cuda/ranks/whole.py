"""Quantiles, picked elements and counts of a whole source on a GPU. What fits into its memory is brought there once for
quantiles; what does not is read anew for each digit of a key. All else takes one read, piece by piece."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.aggregates.by_name import aggregate_of
from warpfold.kernels.aggregates.quantile import Ranks
from warpfold.kernels.backend import Progress
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.grouped.layouts import RowsLayout
from warpfold.kernels.cuda.picks.counted import SORTED
from warpfold.kernels.cuda.picks.states import GroupedStates
from warpfold.kernels.cuda.ranks.digits import DigitCounts
from warpfold.kernels.cuda.ranks.kernels import values_of
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.stager import Stager
from warpfold.kernels.dtypes import DType
from warpfold.kernels.errors import OutOfMemory
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy, Op
from warpfold.kernels.parts.selected import Selected
from warpfold.kernels.sources.sequential import Elements, SequentialSource


class _Brought:
    """The elements of a source, as often as they are asked for. NaNs are counted the first time."""

    def __init__(self, gpu: Gpu, stager: Stager, source: Elements, progress: Progress | None) -> None:
        self._stager, self._source, self._progress = stager, source, progress
        self._read = 0
        self.nans = NanCounter(gpu, source.dtype) if source.dtype.is_float else None
        try:
            self._array = stager.whole(source, self._reporting())
        except OutOfMemory:
            self._array = None

    def pieces(self) -> Iterator[Any]:
        nans = None if self._read else self.nans
        for array, first in self._from_anywhere():
            if nans is not None and array.size:
                nans.add(array, first)
            yield array
        self._read += 1

    def _from_anywhere(self) -> Iterator[tuple[Any, int]]:
        if self._array is not None:
            yield self._array, 0
            return
        read_anew(self._source)
        for (array,), first in self._stager.pieces(self._source, progress=self._reporting()):
            yield array, first

    def _reporting(self) -> Progress | None:
        """Reports as if there were as many reads as an element has bytes."""
        progress, before, reads = self._progress, self._read, self._source.dtype.itemsize
        if progress is None:
            return None
        return lambda done, total: progress((min(before, reads - 1) * total + done) // reads, total)


def read_anew(source: Elements) -> None:
    """Have a source read again, which counts its elements and its nulls only once."""
    if isinstance(source, SequentialSource):
        source.tally.elements = source.tally.nulls = 0


def select(  # noqa: PLR0917
    gpu: Gpu, stager: Stager, source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None
) -> Selected:
    """The values of all elements. To be called while `gpu.active()`. Raises InvalidInput naming "nan_policy" for a
    NaN where the policy is RAISE, OutOfMemory where there is no room to sort elements, and CudaError."""
    began, before_ms = time.perf_counter(), prepared_ms(gpu.preparation)
    stopwatch = Stopwatch(gpu.stream)
    made = _quantiles if op.selects else _sorted if op.fold in SORTED else _in_pieces
    values, count = made(gpu, stager, source, op, nan_policy, progress, stopwatch)
    kernel_ms, prepare_ms = stopwatch.total_ms(), prepared_ms(gpu.preparation) - before_ms
    stages = stager.stages(kernel_ms / 1e3)
    total_ms = (time.perf_counter() - began) * 1e3
    return Selected(values, count, max(0.0, total_ms - kernel_ms - prepare_ms), kernel_ms, stages, prepare_ms)


def _sorted(  # noqa: PLR0917
    gpu: Gpu, stager: Stager, source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None,
    stopwatch: Stopwatch,
) -> tuple[NDArray[Any], int]:  # fmt: skip
    """The value, and of how many elements, of an op that has all of them in their order."""
    array, omit = stager.whole(source, progress), nan_policy is NanPolicy.OMIT
    size = int(array.size)
    if nan_policy is NanPolicy.RAISE and source.dtype.is_float and size:
        nans = NanCounter(gpu, source.dtype)
        nans.add(array, 0)
        nans.refuse()
    made = GroupedStates(gpu, array, RowsLayout(1, max(1, size), size), source.dtype, op, omit_nan=omit)
    _try_out(gpu, op, source.dtype, made)
    with stopwatch:
        made.start()
    values = made.values()
    return values, size - int(made.omitted()[0])


def _try_out(gpu: Gpu, op: Op, dtype: DType, made: GroupedStates) -> None:
    """Have the kernels loaded of an op that did not run before. That is no time of the reduction, and the wait for the
    elements is one of loading."""
    if (op.name, dtype) not in gpu.preparation.ready:
        gpu.stream.synchronize()
        with gpu.preparation:
            made.start()
            gpu.stream.synchronize()
        gpu.preparation.ready.add((op.name, dtype))


def _in_pieces(  # noqa: PLR0917
    gpu: Gpu, stager: Stager, source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None,
    stopwatch: Stopwatch,
) -> tuple[NDArray[Any], int]:  # fmt: skip
    """The values, and of how many elements, of the states of pieces."""
    dtype, omit, count = source.dtype, nan_policy is NanPolicy.OMIT, 0
    aggregate = aggregate_of(op, dtype, omit=omit)
    state = aggregate.begun(1)
    nans = NanCounter(gpu, dtype) if nan_policy is NanPolicy.RAISE and dtype.is_float else None
    for (array,), first in stager.pieces(source, progress=progress):
        size = int(array.size)
        if not size:
            continue
        if nans is not None:
            nans.add(array, first)
        piece = GroupedStates(gpu, array, RowsLayout(1, size, size), dtype, op, omit_nan=omit, first=first)
        _try_out(gpu, op, dtype, piece)
        with stopwatch:
            piece.start()
        state.merge(piece.state(), groups=1)
        count += size - int(piece.omitted()[0])
    if nans is not None:
        nans.refuse()
    return aggregate.finish(state.rows(0, 1), np.array([count])), count


def _quantiles(  # noqa: PLR0917
    gpu: Gpu, stager: Stager, source: Elements, op: Op, nan_policy: NanPolicy, progress: Progress | None,
    stopwatch: Stopwatch,
) -> tuple[NDArray[Any], int]:  # fmt: skip
    brought = _Brought(gpu, stager, source, progress)
    digits = DigitCounts(gpu, source.dtype, brought.pieces, stopwatch)
    nans = 0 if brought.nans is None else brought.nans.count()
    if nans and nan_policy is NanPolicy.RAISE and brought.nans is not None:
        brought.nans.refuse()
    count = digits.count - (nans if nan_policy is NanPolicy.OMIT else 0)
    ranks = Ranks(op, np.array([count]))
    if not count or (nans and nan_policy is not NanPolicy.OMIT):
        return np.full(ranks.quantiles, np.nan), count
    keys = digits.keys(ranks.sorted[0].tolist()).reshape(1, -1)
    return values_of(keys, ranks, None, op, source.dtype), count
