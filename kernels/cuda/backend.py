"""A GPU that reduces sources, by kernels of our own and by peers."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpfold.kernels.backend import Device, GroupedReduction, Progress, Reduction
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
from warpfold.kernels.cuda.grouped.reducing import reduce_groups
from warpfold.kernels.cuda.keyed.reducing import group_by
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.staging.parts import RingShape
from warpfold.kernels.cuda.staging.stager import Stager, piece_size
from warpfold.kernels.cuda.strategies.registry import cuda_strategies
from warpfold.kernels.cuda.strategies.strategy import CudaStrategy, Reducer
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.errors import InvalidInput
from warpfold.kernels.lowering.many_values import takes_meanings
from warpfold.kernels.lowering.nulls import group_with_nulls
from warpfold.kernels.lowering.reducing import group_meant, is_meant, reduce_meant
from warpfold.kernels.machine.preparation import prepared_ms
from warpfold.kernels.ops import NanPolicy, NullPolicy, Op, empty_value, op_named
from warpfold.kernels.ops.operands import Operands, check_states, operands
from warpfold.kernels.parts.grouping import Grouping
from warpfold.kernels.parts.keyed import GroupPlan, GroupTable, KeyedSource
from warpfold.kernels.parts.over_devices import Member, reduce_spread
from warpfold.kernels.source import ArraySource
from warpfold.kernels.sources.sequential import Elements


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


class CudaBackend:
    """The GPU that CUDA numbers `index`, ready to reduce; see `kernels.backend.Backend`.

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
        self._device = describe(self._gpu)
        for name in ("float32", "float64"):
            self.reduce(ArraySource(np.ones(1, dtype=DTYPES[name].numpy)), "sum")

    @property
    def device(self) -> Device:
        return self._device

    @property
    def gpu(self) -> Gpu:
        """The GPU, for benchmarks, which launch kernels directly."""
        return self._gpu

    def moments(self) -> NDArray[np.int64]:
        """When threads read the parts of the last file, for benchmarks (`staging.lanes.Lanes.moments`)."""
        return self._stager.moments()

    def reduce(
        self,
        source: Elements,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
    ) -> Reduction:
        """Reduce all elements of `source`, or pairs of it and `other`. All strategies but the peers take sources that
        are larger than the GPU's memory.

        Raises InvalidInput, Unavailable, OutOfMemory or CudaError, and whatever `progress` raises.
        """
        if is_meant(source, other):
            again = partial(self.reduce, strategy=strategy, nan_policy=nan_policy, progress=progress)
            return reduce_meant(op_named(op), source, other, nan_policy, again, ddof=ddof)
        row, dtype = op_named(op), source.dtype
        taken = operands(row, source, other, ddof)
        chosen = cuda_strategies()[resolve(row, dtype, strategy, "cuda", taken.other_dtype)]
        if source.count == 0:
            return self._empty(row, taken, chosen)
        began, preparation = time.perf_counter(), self._gpu.preparation
        before_ms = prepared_ms(preparation)
        with self._gpu.active(), cuda_errors(f"{op} by {chosen.name}"):
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

    @takes_meanings
    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
    ) -> GroupedReduction:
        """Reduce the elements of `source`, an array of `shape` in C order, to the values of `grouping`: by all ops but
        prod, unless of truth values, and dot. What does not fit into the GPU's memory is reduced in blocks of whole
        values, and longer values piece by piece. With `states` the result has the exact states of all values, too.

        Raises InvalidInput naming "backend" for another op or dtype, "strategy", "axis" or "states"; Unavailable,
        OutOfMemory or CudaError, and whatever `progress` raises.
        """
        row = op_named(op)
        if states:
            check_states(row)
        operands(row, source, other, ddof)
        resolve_grouped(row, source.dtype, strategy)
        if "cuda" not in grouped_backends(row, source.dtype):
            raise InvalidInput(refused_on_gpu(row, source.dtype), "backend")
        most = self.most(source)
        if prod(shape) > most:
            return reduce_spread(
                [self.at_once()], source, shape, grouping, op, most,
                nan_policy=nan_policy, progress=progress, ddof=ddof, states=states,
            )  # fmt: skip
        return self.reduce_at_once(source, shape, grouping, row, nan_policy, progress, ddof, states=states)

    def reduce_at_once(  # noqa: PLR0917
        self, source: Elements, shape: tuple[int, ...], grouping: Grouping, op: Op, nan_policy: NanPolicy,
        progress: Progress | None, ddof: int, *, states: bool = False,
    ) -> GroupedReduction:  # fmt: skip
        """Reduce an array that fits into the GPU's memory, as `reduce_groups` does. Raises OutOfMemory if it does
        not."""
        with self._gpu.active(), cuda_errors(f"{op.name} of many values"):
            return reduce_groups(
                self._gpu, self._stager, source, shape, grouping, op, nan_policy, progress, ddof, states=states
            )

    def at_once(self) -> Member:
        """The same GPU for blocks of arrays that do not fit it as a whole."""
        return _AtOnce(self)

    def most(self, source: Elements) -> int:
        """How many elements of `source` may be on the GPU at a time."""
        import cupy

        room = self._room
        if room is None:
            with self._gpu.active(), cuda_errors("memory of the device"):
                free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
            room = free // 5 * 4
        return max(1, room // source.dtype.itemsize)

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        """Reduce the rows of each group, which fit into the GPU's memory.

        Raises InvalidInput naming "backend" for an op of a dtype that a GPU does not compute, "max_groups" or
        "nan_policy"; what reading of the source raises; OutOfMemory or CudaError.
        """
        if any(source.meanings):
            return group_meant(lambda rows, plain: self.group_by(rows, plain, progress), source, plan)
        if plan.null_policy is NullPolicy.PROPAGATE:
            return group_with_nulls(lambda rows, wider: self.group_by(rows, wider, progress), source, plan)
        with self._gpu.active(), cuda_errors("groups by key"):
            return group_by(self._gpu, self._stager, source, plan, progress)

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


@dataclass(frozen=True, slots=True)
class _AtOnce:
    """A GPU that takes blocks of arrays that do not fit it as a whole, or shares of rows, on any thread."""

    backend: CudaBackend

    def _bind(self) -> None:
        """Make this GPU the thread's own. Calls of the driver, such as those that ask how many blocks of a kernel run
        at a time, need its context, and CuPy sets none where the number of the device is the current one already."""
        import cupy

        with cuda_errors("the thread of a GPU"):
            cupy.cuda.runtime.setDevice(self.backend.gpu.index)

    def reduce(self, source: Elements, op: str, **options: Any) -> Reduction:
        self._bind()
        return self.backend.reduce(source, op, **options)

    def reduce_groups(
        self,
        source: Elements,
        shape: tuple[int, ...],
        grouping: Grouping,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Elements | None = None,
        states: bool = False,
    ) -> GroupedReduction:
        self._bind()
        return self.backend.reduce_at_once(
            source, shape, grouping, op_named(op), nan_policy, progress, ddof, states=states
        )

    def group_by(self, source: KeyedSource, plan: GroupPlan, progress: Progress | None = None) -> GroupTable:
        self._bind()
        return self.backend.group_by(source, plan, progress)
