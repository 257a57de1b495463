"""One GPU that reduces sources, by CuPy and by kernels of our own."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpfold.kernels.backend import Device, Progress, Reduction
from warpfold.kernels.catalog import EXACT, resolve
from warpfold.kernels.cuda.baselines import baselines
from warpfold.kernels.cuda.baselines.reducer import BaselineMethod
from warpfold.kernels.cuda.gpu.device import describe
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.stopwatch import Stopwatch
from warpfold.kernels.cuda.staging.feed import Feed, piece_size
from warpfold.kernels.cuda.staging.nans import NanCounter
from warpfold.kernels.cuda.strategies import CUPY, FAST, own_strategies
from warpfold.kernels.cuda.strategies.cupy_ import CupyMethod
from warpfold.kernels.cuda.strategies.exact import ExactMethod, ExactPairs, exact_method
from warpfold.kernels.cuda.strategies.reducer import Method, OwnMethod
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.exact.state import ORIGIN, ExactState
from warpfold.kernels.operands import Operands, operands
from warpfold.kernels.ops import NanPolicy, Op, empty_value, op_named
from warpfold.kernels.source import ArraySource, Source


class CudaBackend:
    """The GPU that CUDA numbers `index`, ready to reduce; see `kernels.backend.Backend`.

    Compiled kernels are kept in the folder `cache` (by default `kernels.cuda.compile.default_cache()`). Opening runs
    the sums of float32 and float64 once, so that the first job does not pay for loading them. Raises Unavailable where
    there is no such GPU, no driver or no CuPy.
    """

    def __init__(self, index: int = 0, cache: Path | None = None) -> None:
        self._gpu = Gpu(index, cache)
        self._feed = Feed(self._gpu)
        self._device = describe(self._gpu)
        for name in ("float32", "float64"):
            self.reduce(ArraySource(np.ones(1, dtype=DTYPES[name].numpy)), "sum")

    @property
    def device(self) -> Device:
        return self._device

    @property
    def gpu(self) -> Gpu:
        """For launching kernels directly, as benchmarks do."""
        return self._gpu

    def reduce(
        self,
        source: Source,
        op: str,
        *,
        strategy: str = "auto",
        nan_policy: NanPolicy = NanPolicy.PROPAGATE,
        progress: Progress | None = None,
        ddof: int = 0,
        other: Source | None = None,
    ) -> Reduction:
        """Reduce all elements of `source`, or pairs of it and `other`. All strategies but peers' take sources larger
        than the GPU's memory.

        Raises InvalidInput, Unavailable, OutOfMemory or CudaError, and whatever `progress` raises.
        """
        row, dtype = op_named(op), source.dtype
        taken = operands(row, source, other, ddof)
        name = resolve(row, dtype, strategy, "cuda", taken.other_dtype)
        if source.count == 0:
            return self._empty(row, taken, name)
        began = time.perf_counter()
        with self._gpu.active(), cuda_errors(f"{op} by {name}"):
            stopwatch = Stopwatch(self._gpu.stream)
            sources = (source,) if other is None else (source, other)
            nans = self._nan_counters(row, sources, name, nan_policy)
            method = self._method(row, taken, name, omit_nan=nan_policy is NanPolicy.OMIT)
            if name == CUPY or name in baselines():
                pieces: Iterator[tuple[tuple[Any, ...], int]] = iter([((self._feed.whole(source, progress),), 0)])
            else:
                pieces = self._feed.pieces(*sources, progress=progress)
            for arrays, first in pieces:
                with stopwatch:
                    for counter, array in zip(nans, arrays, strict=bool(nans)):
                        counter.add(array, first)
                    if isinstance(method, ExactPairs):
                        method.add_pairs(arrays[0], arrays[1])
                    else:
                        method.add(arrays[0], first)
            kernel_ms = stopwatch.total_ms()
            total_ms = (time.perf_counter() - began) * 1e3
            if nan_policy is NanPolicy.RAISE:
                for counter, what in zip(nans, ("element", "other element"), strict=False):
                    counter.refuse(what)
            missing = method.omitted if isinstance(method, ExactMethod) else sum(counter.count() for counter in nans)
            if missing == source.count:
                return self._empty(row, taken, name)
            finished = method.finish(source.count - missing)
        return Reduction(
            value=finished.value,
            dtype=taken.result_dtype(row),
            count=source.count - missing,
            op=row.name,
            strategy=name,
            correctly_rounded=finished.correctly_rounded,
            load_ms=max(0.0, total_ms - kernel_ms),
            kernel_ms=kernel_ms,
            state=None if finished.state is None else finished.state.to_bytes(),
        )

    def _nan_counters(
        self, op: Op, sources: Sequence[Source], strategy: str, policy: NanPolicy
    ) -> tuple[NanCounter, ...]:
        """One a source, or none where none is needed."""
        if policy is NanPolicy.PROPAGATE or not sources[0].dtype.is_float:
            return ()
        if policy is NanPolicy.OMIT and strategy == EXACT and op.adds:
            return ()  # the exact accumulator leaves them out, and counts them
        return tuple(NanCounter(self._gpu, source.dtype) for source in sources)

    def _method(self, op: Op, taken: Operands, strategy: str, *, omit_nan: bool) -> Method | ExactPairs:
        source, dtype = taken.source, taken.source.dtype
        if strategy == CUPY:
            return CupyMethod(op, dtype, omit_nan=omit_nan)
        if strategy in baselines():
            return BaselineMethod(self._gpu, baselines()[strategy], op, dtype, omit_nan=omit_nan)
        pieces = -(-source.count // piece_size(source))
        if strategy == EXACT and op.adds:
            return exact_method(self._gpu, op, taken, pieces=pieces, omit_nan=omit_nan)
        own = own_strategies()[FAST if strategy == EXACT else strategy]
        return OwnMethod(self._gpu, own, op, dtype, pieces=pieces, omit_nan=omit_nan)

    def _empty(self, op: Op, taken: Operands, strategy: str) -> Reduction:
        state = None
        if strategy == EXACT and op.terms in ORIGIN:
            state = ExactState.empty(op.terms).to_bytes()
        return Reduction(
            value=empty_value(op, taken.source.dtype),
            dtype=taken.result_dtype(op),
            count=0,
            op=op.name,
            strategy=strategy,
            correctly_rounded=True,
            load_ms=0.0,
            kernel_ms=0.0,
            state=state,
        )

    def close(self) -> None:
        """Give back the GPU's memory and modules."""
        self._feed.close()
        self._gpu.close()
