"""A GPU that reduces sources, by kernels of our own and by peers."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import GroupedReduction, Progress, Reduction
from warpfold.kernels.catalog import (
    grouped_backends,
    refused_on_gpu,
    resolve,
    resolve_grouped,
)
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.grouped.reducing import element_bytes, reduce_groups
from warpfold.kernels.cuda.keyed.reducing import group_by
from warpfold.kernels.cuda.picks.counted import SORTED
from warpfold.kernels.cuda.ranks.whole import read_anew, select
from warpfold.kernels.cuda.rolling.reducing import roll_on_gpu
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.parts import RingShape
from warpfold.kernels.cuda.staging.stager import Stager, piece_size
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, Reducer
from warpfold.kernels.driver import Backend
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput, OutOfMemory
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy, Op, empty_value
from warpfold.kernels.ops.operands import Operands, check_states, operands
from warpfold.kernels.parts.over_devices import reduce_spread
from warpfold.kernels.parts.selected import Selected
from warpfold.kernels.query import Answer, ByKey, Moving, OfElements, Query, Shaped, Whole
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements
from warpfold.kernels.strategy import EXACT


@dataclass(frozen=True, slots=True)
class _Reducing:
    """One reduction under way: its reducer, and a counter of NaNs for each source where NaNs are counted."""

    nans: tuple[NanCounter, ...]
    reducer: Reducer

    def add(self, arrays: tuple[Any, ...], first: int) -> None:
        """Put the reduction of a piece on the GPU's stream. The piece is one array of each source."""
        for counter, array in zip(self.nans, arrays, strict=bool(self.nans)):
            counter.add(array, first)
        self.reducer.add(arrays, first)


class CudaBackend(Backend):
    """The GPU that CUDA numbers `index`, ready to reduce.

    Compiled kernels are kept in the folder `cache` (by default `kernels.cuda.compile.default_cache()`). `ring` is for
    benchmarks, which compare shapes of the ring through which files come to the GPU. `room` is how many bytes of
    elements are on the GPU at a time where they make many values; by default four fifths of what is free. Opening runs
    the sums of float32 and float64 once, so that the first job does not pay for loading them; other reductions pay for
    that in their first run, as `prepare_ms`. Raises Unavailable where there is no such GPU, no driver or no CuPy.
    """

    def __init__(
        self, index: int = 0, cache: Path | None = None, ring: RingShape | None = None, room: int | None = None
    ) -> None:
        self._gpu = Gpu(index, cache)
        self._room = room
        self._stager = Stager(self._gpu, ring)
        self.device = describe(self._gpu)
        for name in ("float32", "float64"):
            self.reduce(ArraySource(np.ones(1, dtype=DTYPES[name].numpy)), "sum")

    @property
    def has_windows(self) -> bool:
        return True

    @property
    def gpu(self) -> Gpu:
        """The GPU, for benchmarks, which launch kernels directly."""
        return self._gpu

    def moments(self) -> NDArray[np.int64]:
        """When threads read the parts of the last file, for benchmarks (`staging.lanes.Lanes.moments`)."""
        return self._stager.moments()

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """As `Backend.aggregate`. All strategies but the peers take sources that are larger than the GPU's memory."""
        answer: Any
        match query:
            case Whole():
                answer = self._whole(query, progress)
            case Shaped():
                answer = self._shaped(query, progress)
            case Moving():
                with self._gpu.active(), cuda_errors("windows"):
                    answer = roll_on_gpu(self._gpu, self._stager, query, progress)
            case ByKey():
                with self._gpu.active(), cuda_errors("groups by key"):
                    answer = group_by(self._gpu, self._stager, query.source, query.plan, progress)
        return cast(Answer, answer)

    def _whole(self, query: Whole, progress: Progress | None) -> Reduction:
        row, source, other, nan_policy = query.op, query.source, query.other, query.nan_policy
        dtype = source.dtype
        taken = operands(row, source, other, query.ddof)
        chosen = cuda_strategies()[resolve(row, dtype, query.strategy, "cuda", taken.other_dtype)]
        if source.count == 0:
            return self._empty(row, taken, chosen)
        if row.ranks:
            return self._selected(query, progress).single(row, dtype)
        began, preparation = time.perf_counter(), self._gpu.preparation
        before_ms = prepared_ms(preparation)
        with self._gpu.active(), cuda_errors(f"{row.name} by {chosen.name}"):
            stopwatch = Stopwatch(self._gpu.stream)
            sources = (source,) if other is None else (source, other)
            count = 0
            run: _Reducing | None = None  # it starts when threads read already
            key = (chosen.name, row.name, nan_policy, *(part.dtype for part in sources))
            for arrays, first in self._arrays(sources, progress, whole=chosen.needs_whole):
                run = run or self._start(row, taken, chosen, nan_policy)
                if key not in preparation.ready:
                    self._try_out(self._start(row, taken, chosen, nan_policy), arrays, first)
                    preparation.ready.add(key)
                with stopwatch:
                    run.add(arrays, first)
                count = first + int(arrays[0].size)
            if run is None:
                return self._empty(row, taken, chosen)
            kernel_ms = stopwatch.total_ms()
            stages = self._stager.stages(kernel_ms / 1e3)
            nans, reducer, prepare_ms = run.nans, run.reducer, prepared_ms(preparation) - before_ms
            total_ms = (time.perf_counter() - began) * 1e3
            if nan_policy is NanPolicy.RAISE:
                for counter, what in zip(nans, ("element", "other element"), strict=False):
                    counter.refuse(what)
            omitted = reducer.omitted()
            missing = sum(counter.count() for counter in nans) if omitted is None else omitted
            if missing == count:
                return self._empty(row, taken, chosen)
            finished = reducer.finish(count - missing)
        return Reduction(
            value=finished.value,
            dtype=taken.result_dtype(row),
            count=count - missing,
            op=row.name,
            strategy=chosen.name,
            correctly_rounded=finished.correctly_rounded,
            load_ms=max(0.0, total_ms - kernel_ms - prepare_ms),
            kernel_ms=kernel_ms,
            state=None if finished.state is None else finished.state.to_bytes(),
            prepare_ms=prepare_ms,
            stages=stages,
        )

    def _selected(self, query: OfElements[Any], progress: Progress | None) -> Selected:
        """The values of all elements together, which need not fit into the GPU's memory. The host counts what a GPU has
        no room to sort."""
        try:
            with self._gpu.active(), cuda_errors(f"{query.op.name} by {EXACT}"):
                return select(self._gpu, self._stager, query.source, query.op, query.nan_policy, progress)
        except OutOfMemory:
            if query.op.fold not in SORTED:
                raise
        from warpfold.kernels.cpu.passes import kept  # it imports Numba

        read_anew(query.source)
        return kept(query.source, query.op, query.nan_policy, progress)

    def _shaped(self, query: Shaped, progress: Progress | None) -> GroupedReduction:
        """The values of all ops but prod, unless of truth values. What does not fit into the GPU's memory is reduced in
        blocks of whole values, and longer values piece by piece."""
        check_shaped(query)
        most = self.most(query)
        if prod(query.shape) > most:
            return reduce_spread([self.at_once()], query, most, progress)
        return self.reduce_at_once(query, progress)

    def reduce_at_once(self, query: Shaped, progress: Progress | None) -> GroupedReduction:
        """Reduce an array that fits into the GPU's memory, or is one value of an op that takes it in pieces. Raises
        OutOfMemory if it does not."""
        if query.op.ranks and query.is_whole:
            selected = self._selected(query, progress)
            return selected.grouped(query.op, query.source.dtype, query.grouping.result_shape(query.shape), "ranks")
        with self._gpu.active(), cuda_errors(f"{query.op.name} of many values"):
            return reduce_groups(
                self._gpu, self._stager, query.sources, query.shape, query.grouping, query.op, query.nan_policy,
                progress, query.ddof, states=query.states,
            )  # fmt: skip

    def empty_pool(self) -> None:
        """Give back the memory of the GPU that no array uses."""
        import cupy

        with self._gpu.active(), cuda_errors("freeing"):
            self._gpu.stream.synchronize()
            cupy.get_default_memory_pool().free_all_blocks()

    def at_once(self) -> Backend:
        """The same GPU for blocks of arrays that do not fit it as a whole."""
        return _AtOnce(self)

    def most(self, query: Shaped) -> int:
        """How many elements of each source may be on the GPU at a time."""
        import cupy

        room = self._room
        if room is None:
            with self._gpu.active(), cuda_errors("memory of the device"):
                free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
            room = free // 5 * 4
        return max(1, room // element_bytes(query))

    def _start(self, op: Op, taken: Operands, strategy: CudaStrategy, policy: NanPolicy) -> "_Reducing":
        sources = (taken.source,) if taken.other is None else taken.both
        nans = self._nan_counters(op, sources, strategy, policy)
        whole = strategy.needs_whole or taken.source.count is None
        pieces = 1 if whole else -(-(taken.source.count or 0) // piece_size(taken.source))
        return _Reducing(nans, strategy.start(self._gpu, op, taken, pieces=pieces, omit_nan=policy is NanPolicy.OMIT))

    def _try_out(self, run: "_Reducing", arrays: tuple[Any, ...], first: int) -> None:
        """Reduce the first piece in advance and forget the result. The first launch of a kernel loads it, and a peer
        compiles in its first call: neither is time of the reduction."""
        self._gpu.stream.synchronize()  # the wait for the data counts as loading
        with self._gpu.preparation:
            run.add(arrays, first)
            self._gpu.stream.synchronize()

    def _arrays(
        self, sources: Sequence[Elements], progress: Progress | None, *, whole: bool
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The pieces of the sources: for each piece one CuPy array of each source, and the index of its first
        element."""
        if whole:
            (source,) = sources
            array = self._stager.whole(source, progress)
            if array.size:
                yield (array,), 0
        else:
            yield from self._stager.pieces(*sources, progress=progress)

    def _nan_counters(
        self, op: Op, sources: Sequence[Elements], strategy: CudaStrategy, policy: NanPolicy
    ) -> tuple[NanCounter, ...]:
        """One counter for each source. The tuple is empty where no NaN has to be counted."""
        if policy is NanPolicy.PROPAGATE or not sources[0].dtype.is_float:
            return ()
        if policy is NanPolicy.OMIT and strategy.omits(op):
            return ()
        return tuple(NanCounter(self._gpu, source.dtype) for source in sources)

    def _empty(self, op: Op, taken: Operands, strategy: CudaStrategy) -> Reduction:
        state = strategy.state_of_nothing(op)
        return Reduction(
            value=empty_value(op, taken.source.dtype),
            dtype=taken.result_dtype(op),
            count=0,
            op=op.name,
            strategy=strategy.name,
            correctly_rounded=True,
            load_ms=0.0,
            kernel_ms=0.0,
            state=None if state is None else state.to_bytes(),
        )

    def copy_seconds(self, nbytes: int) -> Callable[[], float]:
        """A pass that copies `nbytes` from pinned memory to the GPU, and returns the seconds of device time that this
        took. The memory is given back with the function."""
        import cupy

        with self._gpu.active(), cuda_errors(f"pinned and device memory of {nbytes:,} bytes"):
            # Taken from CUDA and not from CuPy's pool, which would keep the memory.
            pinned = cupy.cuda.PinnedMemory(nbytes)
            array = cupy.empty(nbytes, dtype=np.uint8)

        def passed() -> float:
            with self._gpu.active(), cuda_errors("copying to the GPU"):
                stopwatch = Stopwatch(self._gpu.stream)
                with stopwatch:
                    array.data.copy_from_host_async(pinned.ptr, nbytes, self._gpu.stream)
                return stopwatch.total_ms() / 1e3

        return passed

    def close(self) -> None:
        """Give back the GPU's memory and modules."""
        self._stager.close()
        self._gpu.close()


class _AtOnce(Backend):
    """A GPU that takes blocks of arrays that do not fit it as a whole, or shares of rows, on any thread."""

    def __init__(self, backend: CudaBackend) -> None:
        self._backend, self.device = backend, backend.device

    def aggregate(self, query: Query[Answer], progress: Progress | None = None) -> Answer:
        """As `Backend.aggregate`."""
        import cupy

        # The GPU is made the thread's own. Calls of the driver, such as those that ask how many blocks of a kernel run
        # at a time, need its context, and CuPy sets none where the number of the device is the current one already.
        with cuda_errors("the thread of a GPU"):
            cupy.cuda.runtime.setDevice(self._backend.gpu.index)
        if isinstance(query, Shaped):
            return cast(Answer, self._backend.reduce_at_once(query, progress))
        return self._backend.aggregate(query, progress)


def check_shaped(query: Shaped) -> None:
    """Raise InvalidInput unless a GPU gives the values of this query: naming "backend" for another op or dtype,
    "other", "ddof", "strategy" or "states"."""
    op, dtype = query.op, query.source.dtype
    if query.states:
        check_states(op)
    operands(op, query.source, query.other, query.ddof)
    resolve_grouped(op, dtype, query.strategy)
    if "cuda" not in grouped_backends(op, dtype):
        raise InvalidInput(refused_on_gpu(op, dtype), "backend")
